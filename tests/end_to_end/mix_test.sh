# data.mix: the same bits wherever devices are, with replicas and after a stop; an evaluation; what does not go.
. tests/end_to_end/common.sh

python3 - <<'END'
import random
random.seed(5)
with open("points.csv", "w") as file:
    print("x,y,label", file=file)
    for i in range(330):
        print(f"{random.gauss(i % 3, 0.4):.4f},{random.gauss(-(i % 3), 0.4):.4f},{i % 3}", file=file)
END
# job FILE DATA TRAIN [HOST [MORE]]
job() {
    cat >"$1" <<END
version: 1
model: {inputs: {x: {shape: [2]}}, layers: [dense: {units: 8, activation: tanh}, dense: {units: 3}]}
data: {train: {format: csv, file: points.csv, label_column: label}, holdout: 0.1, $2}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.05}}, batch: 32, microbatches: 2, lanes: 2, seed: 3, $3}
devices: [{name: a, threads: 1${4:-}}, {name: b, threads: 1${4:-}}]
${5:-}
END
}
mix='mix: {mixup: 0.4, classes: 3}'
training='probabilities: true, epochs: 2'
job one.yaml "$mix" "$training"
sed -i 's/, {name: b.*}//' one.yaml
job many.yaml "$mix" "$training" ', host: localhost'
job twice.yaml "$mix" "$training" ', host: localhost' 'placement: {replicas: 2}'
job plain.yaml 'flatten: false' 'epochs: 2'
whole=$(train_losses one.yaml)
check 'd["evaluation"]["loss"] < 0.9' losses.json 'the loss of an evaluation with classes'
evaluated=$(json 'repr(d["evaluation"]["loss"])' <losses.json)
[ "$(train_losses twice.yaml)" = "$whole" ] || die 'other losses with two replicas'
[ "$(json 'repr(d["evaluation"]["loss"])' <losses.json)" = "$evaluated" ] || die 'another evaluation'
[ "$(train_losses plain.yaml)" != "$whole" ] || die 'mixing changes nothing'
first=$(train_losses one.yaml --steps 7 --checkpoint kept)
[ "$first $(train_losses many.yaml --resume kept)" = "$whole" ] || die 'other losses after a stop'

# a batch that is never mixed has the loss of class indices
job never.yaml 'mix: {mixup: 0.4, classes: 3, probability: 0}' "$training"
train_losses never.yaml >never
train_losses plain.yaml >plain
python3 -c 'a, b = (list(map(float, open(f).read().split())) for f in ("never", "plain"))
assert len(a) == len(b) and all(abs(x - y) < 1e-5 for x, y in zip(a, b)), (a, b)' || die 'other losses unmixed'

wrong() { # wrong DATA TRAIN PATTERN
    job wrong.yaml "$1" "$2"
    fails 3 "$3" "$PENSTOCK" train wrong.yaml
}
wrong 'mix: {classes: 3}' "$training" 'wrong.yaml:3:.*mix: found neither mixup nor cutmix'
wrong 'mix: {mixup: 0}' "$training" 'wrong.yaml:3:.*mixup'
wrong 'mix: {mixup: 1}' "$training" 'wrong.yaml:3:.*mix: the labels are class indices, expected .classes: N.'
wrong 'mix: {cutmix: 1, classes: 3}' "$training" "wrong.yaml:3:.*mix: the input '' is no picture"
wrong "$mix" 'epochs: 1' 'wrong.yaml:3:.*data.mix: labels become probabilities'
wrong "$mix, read_on: workers" "$training" 'wrong.yaml:3:.*data.read_on: found workers, which have no whole batch'
wrong 'mix: {mixup: 1, classes: 2}' "$training" 'wrong.yaml:3:.*the data gives 2 elements an example for .labels., which takes .16,3.'
