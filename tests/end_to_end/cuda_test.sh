# A job on a GPU: an emulated one, which the command finds as it would find the driver of a real one.
# Without a driver it says what is missing; mistakes in a job have their place.
. tests/end_to_end/common.sh

cat >job.yaml <<'Y'
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 8, steps: 8, epochs: 9}
devices: [{name: g, kind: cuda, memory: 1GiB}]
Y

# ---- mistakes
fails 2 'devices\[0\].memory: missing, expected with kind cuda' \
    "$PENSTOCK" train job.yaml --set 'devices=[{name: g, kind: cuda}]'
fails 2 'devices\[0\].gpu: found 1 with kind cpu, expected it with kind cuda' \
    "$PENSTOCK" train job.yaml --set 'devices=[{name: g, gpu: 1}]'
fails 2 'devices\[0\].kind: found cuda, expected it without per' \
    "$PENSTOCK" train job.yaml --set 'devices=[{name: g, kind: cuda, memory: 1GiB, per: task}]'

# ---- no driver, where this machine has none
if ! python3 -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then
    fails 4 "libcuda.so.1, the driver of NVIDIA's GPUs, cannot be loaded" "$PENSTOCK" train job.yaml
    penstock doctor | grep -q "^GPUs  *none: libcuda.so.1" || die "doctor does not say what is missing"
fi

# ---- an emulated GPU
. "$top/tests/end_to_end/emulated_gpu.sh"
penstock doctor | grep -q "^GPUs  *0: emulated GPU, 4.00 GiB" || die "doctor finds no GPU"
penstock train job.yaml --json >first.json 2>messages
! grep -q "run on the host" messages || die "not all of it has kernels: $(cat messages)"
for optimizer in rmsprop adagrad adadelta adamax nadam radam lion lamb adafactor; do
    penstock train job.yaml --json --set "train.optimizer={$optimizer: {}}" --set train.steps=2 \
        --set 'train.average={decay: 0.9}' >/dev/null 2>messages
    ! grep "run on the host" messages || die "$optimizer: not all of it has kernels"
done
layers='{reshape: {target_shape: [28, 28]}}, {gru: {units: 8, activation: softsign}}, {dense: 10}' # a function without a kernel
penstock train job.yaml --json --set "model={inputs: {input: {shape: [1, 28, 28]}}, layers: [$layers]}" >/dev/null 2>messages
grep -q "device 'g': .* nodes run on the host, of operators without a kernel: gru" messages ||
    die "what runs on the host is not named: $(cat messages)"
usual=${layers/activation: softsign/reset_after: false}
penstock train job.yaml --json --set "model={inputs: {input: {shape: [1, 28, 28]}}, layers: [$usual]}" >/dev/null 2>messages
! grep "run on the host" messages || die "a gru that resets before the product runs on the host"
for settings in order=1 'order=2 late=200'; do
    FAKE_CUDA=$settings penstock train job.yaml --json >again.json 2>/dev/null
    [ "$(json 'd["parameters_hash"]' <again.json)" = "$(json 'd["parameters_hash"]' <first.json)" ] ||
        die "other bits with $settings"
done
penstock train job.yaml --json --set 'devices[0].kind=reference' >reference.json 2>/dev/null
found=$(json '[s["loss"] for s in d["steps"]]' <first.json)
expected=$(json '[s["loss"] for s in d["steps"]]' <reference.json)
python3 -c 'import sys
a, b = (eval(text) for text in sys.argv[1:])
assert len(a) == len(b) == 8 and all(abs(x - y) <= 1e-5 * abs(y) for x, y in zip(a, b)), (a, b)' \
    "$found" "$expected" || die "losses of another training"

# ---- a step is awaited once, however many microbatches it has
waits() { # waits STEPS [OPTION...]
    FAKE_CUDA='gpus=2 count=1' "$PENSTOCK" train job.yaml --set train.epochs=99 --set "train.steps=$1" "${@:2}" 2>&1 >/dev/null |
        sed -n 's/^fake driver: .* launches, \([0-9]*\) waits$/\1/p'
}
for microbatches in 1 4; do
    few=$(waits 4 --set train.microbatches=$microbatches)
    many=$(waits 12 --set train.microbatches=$microbatches)
    [ $((many - few)) = 8 ] || die "$((many - few)) waits in 8 steps of $microbatches microbatches"
done
# of two stages: for each microbatch a loss, and two updates; what goes on and comes back is awaited by no thread
stages=(--set 'devices=[{name: g, kind: cuda, memory: 1GiB}, {name: h, kind: cuda, gpu: 1, memory: 1GiB}]'
    --set train.microbatches=4 --set placement.strategy=dynamic_programming --set pipeline.schedule=1f1b)
few=$(waits 4 "${stages[@]}")
many=$(waits 12 "${stages[@]}")
[ $((many - few)) = $((8 * (4 + 2))) ] || die "$((many - few)) waits in 8 steps of two stages"

# ---- what goes wrong on it
fails 8 'step [0-9]+, microbatch 0 on device .g.: first in gemm' \
    "$PENSTOCK" train job.yaml --set train.optimizer.sgd.lr=1e30
fails 5 "device 'g': a buffer of .* does not fit" "$PENSTOCK" train job.yaml --set 'devices[0].memory=1kB'
fails 4 "found no GPU 1, this machine has 1, from 0" "$PENSTOCK" train job.yaml --set 'devices[0].gpu=1'
