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

# pictures: their folders say how many classes there are; the same bits with any number of threads, of devices and of
# readers, and the same examples with any number of microbatches
python3 "$top/tests/end_to_end/make_data.py" . 40
pictures() { # pictures FILE MIX MICROBATCHES THREADS READERS
    cat >"$1" <<END
version: 1
model: {inputs: {x: {shape: [28, 28, 1]}}, layers: [{conv2d: {filters: 8, kernel_size: 3}}, flatten, {dense: {units: 10}}]}
data: {train: {format: images, folder: pictures, size: 28, channels: 1, data_format: channels_last}, threads: $5, $2}
train: {loss: softmax_cross_entropy, probabilities: true, optimizer: {sgd: {lr: 0.05}}, batch: 16, microbatches: $3,
  epochs: 3, seed: 3}
devices: [{name: a, threads: $4}]
END
}
close() { # close TEXT MOST: the losses of pictures.yaml are no further from $expected
    python3 -c 'import sys
a, b, most = sys.argv[1].split(), sys.argv[2].split(), float(sys.argv[3])
assert len(a) == len(b) == 9 and all(abs(float(x) - float(y)) <= most for x, y in zip(a, b)), (a, b)' \
        "$expected" "$(train_losses pictures.yaml)" "$2" || die "$1"
}
for kind in 'mixup: 0.4' 'cutmix: 1' 'mixup: 0.4, cutmix: 1'; do
    pictures pictures.yaml "mix: {$kind, classes: 10}" 1 1 1
    expected=$(train_losses pictures.yaml)
    hash=$(json 'd["parameters_hash"]' <losses.json)
    for threads in '1 4' '3 2'; do
        pictures pictures.yaml "mix: {$kind}" 1 "${threads% *}" "${threads#* }"
        [ "$(train_losses pictures.yaml)" = "$expected" ] || die "$kind: other losses with threads $threads"
        [ "$(json 'd["parameters_hash"]' <losses.json)" = "$hash" ] || die "$kind: other parameters with threads $threads"
    done
    for microbatches in 2 16; do
        pictures pictures.yaml "mix: {$kind}" "$microbatches" 2 2
        close "$kind: other examples with $microbatches microbatches" 1e-5
    done
done
sed 's/seed: 3/seed: 4/' pictures.yaml >other.yaml
[ "$(train_losses other.yaml)" != "$(train_losses pictures.yaml)" ] || die 'another seed mixes alike'

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
