# data.train.mask: tokens are found by those around them; the same losses on two workers and after a stop; what does not go.
. tests/end_to_end/common.sh

# of three tokens in a row the last is the sum of the two before, modulo 10; 10 is "masked"
python3 - <<'END'
import random
random.seed(4)
tokens = bytearray()
for _ in range(3000):
    a, b = random.randrange(10), random.randrange(10)
    tokens += bytes([a, b, (a + b) % 10])
open("tokens.bin", "wb").write(tokens)
END
# job FILE TRAIN [HOST]
job() {
    cat >"$1" <<END
version: 1
model:
  inputs: {x: {shape: [3], dtype: int64}}
  layers:
    - embedding: {input_dim: 11, output_dim: 16}
    - flatten
    - dense: {units: 96, activation: relu}
    - dense: {units: 33}
    - reshape: {target_shape: [3, 11]}
data:
  train: {format: tokens, file: tokens.bin, element: uint8, sequence: 3, mask: {token: 10, vocabulary: 11}}
  holdout: 0.1
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.01}}, batch: 100, microbatches: 2, seed: 3, $2}
devices: [{name: a, threads: 1${3:-}}, {name: b, threads: 1${3:-}}]
END
}
job one.yaml 'ignore_index: -100, epochs: 2'
sed -i '$ s/, {name: b.*}//' one.yaml
job many.yaml 'ignore_index: -100, epochs: 2' ', host: localhost'
whole=$(train_losses one.yaml)
evaluated=$(json 'repr(d["evaluation"]["loss"])' <losses.json)
[ "$(train_losses many.yaml)" = "$whole" ] || die 'other losses on two workers'
[ "$(json 'repr(d["evaluation"]["loss"])' <losses.json)" = "$evaluated" ] || die 'another evaluation'
first=$(train_losses one.yaml --steps 30 --checkpoint kept)
[ "$first $(train_losses many.yaml --resume kept)" = "$whole" ] || die 'other losses after a stop'

# sums are learned: a tenth would be right by chance
job long.yaml 'ignore_index: -100, epochs: 12'
train_losses long.yaml >/dev/null
check 'd["evaluation"]["accuracy"] > 0.6' losses.json

job wrong.yaml 'epochs: 1'
fails 3 'wrong.yaml:11:.*mask: the labels of tokens that are not masked are -100, expected .ignore_index: -100' \
    "$PENSTOCK" train wrong.yaml
job wrong.yaml 'ignore_index: -100, epochs: 1'
sed -i 's/holdout: 0.1/read_on: workers/' wrong.yaml
fails 3 'data.read_on: found workers, which mask nothing' "$PENSTOCK" train wrong.yaml
