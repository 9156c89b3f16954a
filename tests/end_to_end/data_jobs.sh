# shellcheck shell=bash
# Jobs that differ in their data, for those who test where it comes from: source behind common.sh.

one='{name: a, memory: 1GiB, threads: 1}'
# shellcheck disable=SC2034 # for those who source this
started='{name: a, host: localhost, memory: 1GiB, threads: 1}, {name: b, host: localhost, memory: 1GiB, threads: 1}'

# job NAME DATA DEVICES [READ_ON [NORMALIZE [KEY_OF_DATA]]]
job() {
    cat >"$1.yaml" <<YAML
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: $2
  normalize: {mean: 0.25, std: 0.5${5:+, $5}}
  read_on: ${4:-auto}
${6:+  $6}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4,
  epochs: 2, seed: 3}
devices: [$3]
YAML
}

# numbers JOB: losses and hash
numbers() {
    train_losses "$1.yaml"
    json 'd["parameters_hash"]' <losses.json
}

# sql REST...: data of $connection, with what is unlike in each job
sql() {
    printf '{format: sql, connection: "%s", %s}' "$connection" "$*"
}

# refused PATTERN REST...: one job that must fail with code 3, and leave nothing half made
refused() {
    local pattern=$1
    shift
    job refused "$(sql "$@")" "$one"
    fails 3 "$pattern" "$PENSTOCK" train refused.yaml
    no_halves
}

no_halves() {
    local left
    left=$(find . -name '*.part' -o -name '*.old')
    [ -z "$left" ] || die "something half made is left: $left"
}
