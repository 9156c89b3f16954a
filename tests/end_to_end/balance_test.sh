# data.balance: class: the same bits wherever devices are and after a stop; a rare class is learned; what does not go.
. tests/end_to_end/common.sh

# one of 25 examples is of class 1: where x is above 2
python3 - <<'END'
import random
random.seed(7)
with open("rare.csv", "w") as file:
    print("x,y,label", file=file)
    for i in range(1000):
        rare = i % 25 == 0
        x = random.gauss(1.5 if rare else 0, 1)
        print(f"{x:.4f},{random.gauss(0, 1):.4f},{int(rare)}", file=file)
END
# job FILE DATA TRAIN [HOST]
job() {
    cat >"$1" <<END
version: 1
model: {inputs: {x: {shape: [2]}}, layers: [dense: {units: 8, activation: tanh}, dense: {units: 2}]}
data: {train: {format: csv, file: rare.csv, label_column: label}, $2}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.02}}, batch: 50, microbatches: 2, seed: 3, $3}
devices: [{name: a, threads: 1${4:-}}, {name: b, threads: 1${4:-}}]
END
}
job one.yaml 'balance: class' 'epochs: 3'
sed -i '$ s/, {name: b.*}//' one.yaml
job many.yaml 'balance: class' 'epochs: 3' ', host: localhost'
job plain.yaml 'balance: none' 'epochs: 3'
whole=$(train_losses one.yaml)
[ "$(train_losses many.yaml)" = "$whole" ] || die 'other losses on two workers'
[ "$(train_losses plain.yaml)" != "$whole" ] || die 'balance changes nothing'
first=$(train_losses one.yaml --steps 25 --checkpoint kept)
[ "$first $(train_losses many.yaml --resume kept)" = "$whole" ] || die 'other losses after a stop'

# how many are found to be of the rare class, of all that there are: few where classes are as they come
found() {
    penstock train -q "$1" --save "$1.safetensors" >out 2>messages || die "$(cat messages)"
    grep ',1$\|^x' rare.csv >one.csv
    sed 's/{train: \(.*rare.csv\)/{eval: \1/; s/rare.csv/one.csv/; s/, balance: [a-z]*//' "$1" >eval.yaml
    penstock eval --json eval.yaml --parameters "$1.safetensors" 2>messages | json 'd["accuracy"]'
}
plain=$(found plain.yaml)
balanced=$(found one.yaml)
python3 -c "assert $plain < 0.2 and $balanced > 0.6" || die "of the rare class $balanced are found, $plain as they come"

job wrong.yaml 'balance: class, read_on: workers' 'epochs: 1'
fails 3 'wrong.yaml:3:.*data.read_on: found workers, which know no classes' "$PENSTOCK" train wrong.yaml
job wrong.yaml 'balance: class' 'epochs: 1, shuffle: false'
fails 3 'wrong.yaml:3:.*data.balance: found class, which draws examples by chance' "$PENSTOCK" train wrong.yaml
job wrong.yaml 'balance: class' 'epochs: 1'
sed -i 's/softmax_cross_entropy/mean_squared_error/; s/units: 2/units: 1/; s/label_column: label/&, label_type: number/' wrong.yaml
fails 3 'wrong.yaml:3:.*balance: found labels that are numbers, expected one class index' "$PENSTOCK" train wrong.yaml
