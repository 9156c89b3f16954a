# Language models and recurrent networks on an emulated GPU: losses are PyTorch's, all operators have kernels
# there, and the bits are the same in every order of threads. What is dropped is what a cpu device drops.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"

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
    train_in_orders "$model"
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
