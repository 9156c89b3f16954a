# A network of planes with borders, groups and resized parts, and a language model as exported transformers are, on
# an emulated GPU: losses with options are PyTorch's, all operators have kernels there, and the bits are the same in
# every order of threads.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/emulated_gpu.sh"

planes=reference/planes

# job NAME INPUT TRAIN
job() {
    cat >"$1.yaml" <<Y
version: 1
model: {file: $planes/$1.pt2}
data: {train: {format: npy, inputs: {$2: $planes/$1_inputs.npy}, labels: $planes/$1_labels.npy}}
train: {$3, batch: 4, steps: 6, epochs: 9, shuffle: false}
devices: [{name: g, kind: cuda, memory: 1GiB}]
Y
}
job outline x "loss: softmax_cross_entropy, class_axis: 1, ignore_index: 255, label_smoothing: 0.1,
    class_weights: [0.5, 2, 0.25, 1, 3.25], optimizer: {nadam: {lr: 0.01, weight_decay: 0.001}}"
job rotary tokens "loss: softmax_cross_entropy, ignore_index: 0, optimizer: {radam: {lr: 0.02}}"

for model in outline rotary; do
    train_in_orders "$model"
done

# a loss: 1e-4, or twice what PyTorch's own float32 errs
python3 - <<'P' || die "other losses"
import json
for line in open("reference/planes/losses.txt"):
    name, *numbers = line.split()
    numbers = [float(n) for n in numbers]
    wide, single = numbers[:6], numbers[6:]
    found = [s["loss"] for s in json.load(open(name + ".json"))["steps"]]
    assert len(found) == 6, (name, found)
    for a, b, c in zip(found, wide, single):
        assert abs(a - b) <= max(1e-4 * b, 2 * abs(c - b)), (name, found, wide)
P
