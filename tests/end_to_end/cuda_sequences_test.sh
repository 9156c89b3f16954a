# Language models and recurrent networks on an emulated GPU: losses are PyTorch's, all operators have kernels
# there, and the bits are the same in every order of threads. What is dropped is what a cpu device drops.
. tests/end_to_end/common.sh

export LD_LIBRARY_PATH=${PENSTOCK%/penstock}/tests/cuda
sequences=reference/sequences

for model in gpt lstm gru drops; do
    cat >$model.yaml <<Y
version: 1
model: {file: $sequences/$model.pt2}
data: {train: {format: npy, inputs: {tokens: $sequences/tokens.npy}, labels: $sequences/labels.npy}}
train:
  {loss: softmax_cross_entropy, optimizer: {adamw: {lr: 0.01, weight_decay: 0.01}}, clip_norm: 0.5,
   batch: 4, steps: 6, epochs: 9, shuffle: false}
devices: [{name: g, kind: cuda, memory: 1GiB}]
Y
    penstock train $model.yaml --json >$model.json 2>messages
    ! grep "run on the host" messages || die "$model: not all of it has kernels"
    for settings in order=1 'order=2 late=50'; do
        FAKE_CUDA=$settings penstock train $model.yaml --json --set train.steps=2 >again.json 2>messages
        python3 -c 'import json, sys
a, b = ([s["loss"] for s in json.load(open(f))["steps"]] for f in sys.argv[1:])
assert len(a) == 2 and a == b[:2], (a, b)' again.json $model.json || die "$model: other losses with $settings"
    done
done
penstock train drops.yaml --json --set 'devices[0].kind=cpu' >dropped.json 2>messages

# a loss: 1e-4, or twice what PyTorch's own float32 errs; of cpu and GPU 1e-5
python3 - <<'P' || die "other losses"
import json
losses = lambda file: [s["loss"] for s in json.load(open(file))["steps"]]
for line in open("reference/sequences/losses.txt"):
    name, *numbers = line.split()
    numbers = [float(n) for n in numbers]
    wide, single, found = numbers[:6], numbers[6:], losses(name + ".json")
    assert len(found) == 6, (name, found)
    for a, b, c in zip(found, wide, single):
        assert abs(a - b) <= max(1e-4 * b, 2 * abs(c - b)), (name, found, wide)
a, b = losses("drops.json"), losses("dropped.json")
assert len(a) == 6 and all(abs(x - y) <= 1e-5 * y for x, y in zip(a, b)), (a, b)
P
