# shellcheck shell=bash
# Jobs on an emulated GPU whose losses in several precisions PyTorch has, and the comparison: source behind common.sh.

sequences=reference/sequences
g='name: g, kind: cuda, memory: 1GiB' h='name: h, kind: cuda, gpu: 1, memory: 1GiB'

# precision_job NAME PRECISION: to NAME.yaml
precision_job() {
    local data="inputs: {input: reference/$1/inputs.npy}, labels: reference/$1/labels.npy" file=reference/$1/model.onnx
    local train='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 8'
    case $1 in gpt | lstm)
        data="inputs: {tokens: $sequences/tokens.npy}, labels: $sequences/labels.npy" file=$sequences/$1.pt2
        train='optimizer: {adamw: {lr: 0.01, weight_decay: 0.01}}, clip_norm: 0.5, batch: 4'
        ;;
    esac
    cat >"$1.yaml" <<Y
version: 1
model: {file: $file}
data: {train: {format: npy, $data}}
train: {loss: softmax_cross_entropy, $train, steps: 20, epochs: 99, shuffle: false}
devices: [{$g}]
numerics: {precision: $2}
Y
}

hash() {
    json 'd["parameters_hash"]' <"$1"
}

# compare_losses FLOOR NAME.PRECISION...: those of NAME.PRECISION.json, of the first steps, are PyTorch's. Operands near
# the middle of two numbers may be rounded either way when they differ in their last bits. So a loss may be off by what
# PyTorch's own float32 is from its float64, of all steps the most, times four; the first one by FLOOR at least.
compare_losses() {
    python3 - "$@" <<'P' || die "other losses"
import json, sys
rows = {}
for line in open("reference/precision/losses.txt"):
    name, precision, *numbers = line.split()
    rows[name, precision] = [float(n) for n in numbers]
for of in sys.argv[2:]:
    name, precision = of.split(".")
    numbers = rows[name, precision]
    found = [s["loss"] for s in json.load(open(f"{of}.json"))["steps"]]
    wide, single, unrounded = numbers[:20], numbers[20:], rows[name, "float32"][:20]
    off, own, effect = ([abs(a - b) / b for a, b in zip(wide, other)] for other in (found, single, unrounded))
    first, most = max(float(sys.argv[1]), 4 * own[0]), max(1e-4, 4 * max(own))
    print(f"{name:6} {precision:9} first {off[0]:.1e} of {first:.1e}, {effect[0]:.1e} unrounded; "
          f"all {max(off):.1e} of {most:.1e}, {max(effect):.1e} unrounded")
    assert len(found) >= 4 and off[0] <= first and max(off) <= most, (name, precision, found, wide)
    if precision == "bfloat16":  # the bound tells it from what is not rounded
        assert effect[0] > first or max(effect) > most, (name, effect)
P
}
