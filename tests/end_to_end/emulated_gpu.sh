# shellcheck shell=bash
# For trainings on an emulated GPU: source behind common.sh. With PEN_TEST_GPU the GPU is a real one.
[ -n "${PEN_TEST_GPU:-}" ] || export LD_LIBRARY_PATH=${PENSTOCK%/penstock}/tests/cuda

# stages_job TRAIN DEVICES: a job on standard output, of small layers that are cut into stages
stages_job() {
    cat <<Y
version: 1
model:
  inputs: {input: {shape: [1, 28, 28]}}
  layers: [flatten, {dense: 32}, relu, {dense: 16}, softmax, {dense: 32}, {dense: 10}]
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, $1}
devices: [$2]
placement: {strategy: dynamic_programming}
pipeline: {schedule: 1f1b}
Y
}

# told_by PROCESSES SETTINGS COMMAND...: what so many processes say of their drivers when they end, to `told`. One that a
# busy machine keeps from ending is killed and says nothing: then all is done again.
told_by() {
    local processes=$1 settings=$2
    shift 2
    for _ in 1 2 3; do
        FAKE_CUDA="$settings count=1" timeout -k 5 120 "$@" 2>told >/dev/null
        [ "$(grep -c '^fake driver: .* waits$' told)" != "$processes" ] || return 0
    done
    die "not $processes processes: $(cat told)"
}

# train_in_orders NAME: trains NAME.yaml on the emulated GPU, without a node on the host, to NAME.json. In other
# orders of threads, and with late commands, the losses have the same bits.
train_in_orders() {
    local settings
    penstock train "$1.yaml" --json >"$1.json" 2>messages
    ! grep "run on the host" messages || die "$1: not all of it has kernels"
    for settings in order=1 'order=2 late=50'; do
        FAKE_CUDA=$settings penstock train "$1.yaml" --json --set train.steps=2 >again.json 2>messages
        python3 -c 'import json, sys
a, b = ([s["loss"] for s in json.load(open(f))["steps"]] for f in sys.argv[1:])
assert len(a) == 2 and a == b[:2], (a, b)' again.json "$1.json" || die "$1: other losses with $settings"
    done
}
