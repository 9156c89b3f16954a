# Predictions for new rows of a table, which have no labels, with the classes' words as the names of columns.
. tests/end_to_end/common.sh
/usr/bin/python3 - <<'END'
import random
random.seed(1)
with open("train.csv", "w") as file:
    print("kind,weight,colour", file=file)
    for _ in range(200):
        weight, colour = random.gauss(0, 1), random.choice(["red", "white"])
        kind = "good" if weight > 0 and colour == "red" else "bad"
        print(kind, f"{weight:.3f}", colour, sep=",", file=file)
END
{ echo weight,colour; sed 1d train.csv | cut -d, -f2-; } >new.csv
cat >job.yaml <<'END'
version: 1
model: {inputs: {x: {shape: [3]}}, layers: [dense: {units: 8, activation: relu}, dense: {units: 2}]}
data: {train: {format: csv, file: train.csv, label_column: kind, categories: one_hot}}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.05}}, batch: 20, epochs: 10}
outputs: {dir: out}
END
penstock train -q job.yaml
penstock predict job.yaml -q -o labelled.csv --set 'data.eval={format: csv, file: train.csv, label_column: kind, categories: one_hot}'
penstock predict job.yaml -q -o new.out.csv --set 'data.eval={format: csv, file: new.csv, categories: one_hot}'
cmp labelled.csv new.out.csv || die 'rows without labels have other scores'
[ "$(head -1 new.out.csv)" = example,bad,good ] || die "$(head -1 new.out.csv)"
fails 2 'the data has no labels, which the loss needs' "$PENSTOCK" eval job.yaml --set 'data.eval={format: csv, file: new.csv, categories: one_hot}'
