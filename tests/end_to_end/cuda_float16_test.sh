# Products of float16 (numerics.precision), whose loss is scaled as PyTorch's GradScaler does it: losses, scales and the
# steps that are skipped are those of PyTorch, also over several GPUs, and all are the same after a kill. Whoever cannot
# is told by name.
. tests/end_to_end/common.sh

sequences=reference/sequences
g='name: g, kind: cuda, memory: 1GiB'

# job NAME
job() {
    local data="inputs: {input: reference/$1/inputs.npy}, labels: reference/$1/labels.npy" file=reference/$1/model.onnx
    local train='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 8' initial=1048576
    case $1 in gpt | lstm)
        data="inputs: {tokens: $sequences/tokens.npy}, labels: $sequences/labels.npy" file=$sequences/$1.pt2
        train='optimizer: {adamw: {lr: 0.01, weight_decay: 0.01}}, clip_norm: 0.5, batch: 4' initial=4194304
        ;;
    esac
    cat >"$1.yaml" <<Y
version: 1
model: {file: $file}
data: {train: {format: npy, $data}}
train: {loss: softmax_cross_entropy, $train, steps: 24, epochs: 99, shuffle: false}
devices: [{$g}]
numerics: {precision: float16, loss_scale: {initial: $initial, every: 4}}
Y
}

# ---- mistakes, and who cannot: known without a driver
job mlp
fails 3 "error: .*float16, but device 'a' is of kind cpu, which computes in float32 only" \
    "$PENSTOCK" train mlp.yaml --set 'devices=[{name: a, kind: cpu}]'
fails 3 "error: .*float16, but device 'a' is of kind cpu, which computes in float32 only" \
    "$PENSTOCK" train mlp.yaml --set "devices=[{$g}, {name: a, kind: cpu}]"
fails 2 'numerics.loss_scale.floor: found 2e\+06, above initial, which is 1.04858e\+06' \
    "$PENSTOCK" train mlp.yaml --set numerics.loss_scale.floor=2e6
fails 2 'numerics.loss_scale.initial: found ".nan", expected a number from 1e-07 to 1e\+30' \
    "$PENSTOCK" train mlp.yaml --set numerics.loss_scale.initial=.nan
fails 3 'numerics.precision: float16 is for train.consistency sync' \
    "$PENSTOCK" train mlp.yaml --set train.microbatches=2 --set train.lanes=2 --set 'train.consistency={async: {staleness: 1}}'
fails 3 'numerics.loss_scale is for precision float16, found bfloat16: leave it out' \
    "$PENSTOCK" train mlp.yaml --set numerics.precision=bfloat16
fails 2 'numerics.loss_scale.backoff: found "1", expected a number above 0 and below 1' \
    "$PENSTOCK" train mlp.yaml --set numerics.loss_scale.backoff=1

. "$top/tests/end_to_end/emulated_gpu.sh"
export FAKE_CUDA=gpus=3

# ---- losses, scales and skipped steps
# LeNet and the GPT take most of the time: their first skipped steps suffice, but for PEN_LONG.
for model in mlp lenet gpt lstm; do
    job $model
    steps=24
    [ -n "${PEN_LONG:-}" ] || case $model in lenet | gpt) steps=6 ;; esac
    penstock train $model.yaml --json --set train.steps=$steps >$model.json 2>messages || die "$model: $(cat messages)"
    ! grep -E 'run on the host' messages || die "$model: something runs on the host"
    grep -qE "step [0-9]+ is skipped: a gradient is not finite with a loss scale of" messages || die "nothing is said"
done
# As in cuda_precision_test.sh: four times what PyTorch's float32 is off from its float64.
python3 - <<'P' || die "other losses"
import json
for line in open("reference/precision/scales.txt"):
    name, *numbers = line.split()
    numbers = [float(n) for n in numbers]
    wide, single, scales, skipped = (numbers[i:i + 24] for i in range(0, 96, 24))
    steps = json.load(open(f"{name}.json"))["steps"]
    found = [s["loss"] for s in steps]
    assert len(steps) >= 6 and sum(s["skipped"] for s in steps) > 0, (name, steps)
    wide, single, scales, skipped = (n[:len(steps)] for n in (wide, single, scales, skipped))
    assert [s["loss_scale"] for s in steps] == scales, (name, [s["loss_scale"] for s in steps])
    assert [float(s["skipped"]) for s in steps] == skipped, (name, steps)
    off, own = ([abs(a - b) / b for a, b in zip(wide, other)] for other in (found, single))
    first, most = max(2e-6, 4 * own[0]), max(1e-4, 4 * max(own))
    print(f"{name:6} first {off[0]:.1e} of {first:.1e}, all {max(off):.1e} of {most:.1e}; {sum(skipped):.0f} skipped")
    assert off[0] <= first and max(off) <= most, (name, found, wide)
P

# ---- a skipped step leaves no trace: killed before the next, parameters, moments and averages are those of before
average=(--set 'train.average={decay: 0.8, from: 1 step}')
penstock train lstm.yaml -q --json --steps 4 "${average[@]}" --checkpoint before >before.json 2>messages
penstock train lstm.yaml -q --json --steps 5 "${average[@]}" --checkpoint after >after.json 2>messages
check 'd["steps"][4]["skipped"] and d["steps"][4]["loss_scale"] == 8388608' after.json
for folder in before after; do
    penstock checkpoint export $folder --all -o $folder.safetensors >out 2>messages || die "$(cat messages)"
done
cmp before.safetensors after.safetensors || die "a skipped step has changed something"

# ---- killed after each step: the same bits and the same decisions
few=(--set train.steps=12)
penstock train lstm.yaml -q --json "${few[@]}" >whole.json 2>messages
kills=0
rm -rf kept
while ! PENSTOCK_FAILPOINT=coordinator.manifest_published:1:kill penstock train lstm.yaml -q --json "${few[@]}" \
    --checkpoint kept --every 1 --continue >part.json 2>messages; do
    kills=$((kills + 1))
    [ $kills -le 12 ] || die "it gets no further: $(cat messages)"
done
[ $kills -ge 6 ] || die "killed $kills times only: $(cat messages)"
[ "$(json 'd["parameters_hash"]' <part.json)" = "$(json 'd["parameters_hash"]' <whole.json)" ] ||
    die "other bits when it is killed"
for k in 3 5; do
    rm -rf kept
    penstock train lstm.yaml -q --steps $k --checkpoint kept >out 2>messages || die "$(cat messages)"
    penstock train lstm.yaml -q --json "${few[@]}" --checkpoint kept --continue >rest.json 2>messages || die "$(cat messages)"
    python3 - $k <<'P' || die "other decisions after step $k"
import json, sys
whole, rest = (json.load(open(f"{n}.json"))["steps"] for n in ("whole", "rest"))
keys = ("step", "loss", "loss_scale", "skipped")
assert [[s[k] for k in keys] for s in whole[int(sys.argv[1]):]] == [[s[k] for k in keys] for s in rest], rest
P
done

# ---- several GPUs: the scales of PyTorch, and the bits of one
hash() {
    json 'd["parameters_hash"]' <"$1"
}
same() { # NAME OPTION...: as one.json
    local name=$1
    shift
    penstock train lstm.yaml -q --json "$@" >several.json 2>messages || die "$name: $(cat messages)"
    python3 - "$name" <<'P' || die "$name: other decisions"
import json, sys
rows = [line.split() for line in open("reference/precision/scales.txt")]
row = [float(n) for name, *numbers in rows for n in numbers if name == "lstm"]
one, several = (json.load(open(f"{n}.json"))["steps"] for n in ("one", "several"))
count = len(several)
first = len(one) - count
assert count > 5 and [s["loss"] for s in several] == [s["loss"] for s in one[first:]], several
assert [s["loss_scale"] for s in several] == row[48 + first:48 + first + count], several
assert [float(s["skipped"]) for s in several] == row[72 + first:72 + first + count], several
P
    [ "$(hash several.json)" = "$(hash one.json)" ] || die "$name: other bits"
}
h='name: h, kind: cuda, gpu: 1, memory: 1GiB' i='name: i, kind: cuda, gpu: 2, memory: 1GiB'
halves=(--set train.microbatches=2 --set placement.strategy=round_robin "${average[@]}")
penstock train lstm.yaml -q --json "${halves[@]}" >one.json 2>messages || die "$(cat messages)"
same "in one process" "${halves[@]}" --set "devices=[{$g}, {$h}, {$i}]"
apart=("${halves[@]}" --set "devices=[{$g, host: localhost}, {$h, host: localhost}]" --set 'recovery={on_loss: wait}')
PENSTOCK_FAILPOINT=worker.updated:50:kill same "a worker is lost" "${apart[@]}" --checkpoint lost --every 3
check 'd["measured"]["recoveries"] > 0' several.json
penstock train lstm.yaml -q "${apart[@]}" --steps 5 --checkpoint kept-apart >out 2>messages || die "$(cat messages)"
same "continued with others" "${halves[@]}" --set "devices=[{$h}, {$i}]" --checkpoint kept-apart --continue
lanes=(--set train.microbatches=4 --set train.lanes=2 --set train.steps=12)
penstock train lstm.yaml -q --json "${lanes[@]}" >one.json 2>messages || die "$(cat messages)"
same replicas "${lanes[@]}" --set "devices=[{$g}, {$h}]" --set placement.replicas=2
fails 8 'with a loss scale of 1.04858e\+06: a smaller one would be below numerics.loss_scale.floor, which is 1e\+06' \
    "$PENSTOCK" train mlp.yaml -q "${halves[@]}" --set "devices=[{$g}, {$h}]" --set numerics.loss_scale.floor=1e6

# ---- a loss that is not finite, of some examples: skipped; of data that is not finite, and of too many steps: the end
spoil() { # FILE NUMBER FIRST END
    python3 - "$@" <<'P'
import array, sys
data = open("reference/mlp/inputs.npy", "rb").read()
head = 10 + int.from_bytes(data[8:10], "little")
x = array.array("f", data[head:])
each = len(x) // 40
for i in range(int(sys.argv[3]) * each, int(sys.argv[4]) * each):
    x[i] = x[i] * float(sys.argv[2])
open(sys.argv[1], "wb").write(data[:head] + x.tobytes())
P
}
spoil large.npy 1e9 8 12
spoil larger.npy 1e9 0 40
spoil nothing.npy nan 8 9
for devices in "{$g}" "{$g}, {$h}"; do
    over=(--set train.microbatches=2 --set placement.strategy=round_robin --set "devices=[$devices]")
    penstock train mlp.yaml --json "${over[@]}" --set 'data.train.inputs={input: large.npy}' --set train.steps=8 \
        >large.json 2>messages || die "$(cat messages)"
    check '[s["step"] for s in d["steps"] if s["skipped"]] == [1, 2, 7]' large.json "$devices"
    check '[s["step"] for s in d["steps"] if s["loss"] is None] == [2, 7]' large.json "$devices"
    grep -q 'step 2 is skipped: the loss is not finite with a loss scale of 524288, which is 262144 from here on' \
        messages || die "$(cat messages)"
    fails 8 'after 10 steps in a row without a finite loss, which no scale changes' \
        "$PENSTOCK" train mlp.yaml -q "${over[@]}" --set 'data.train.inputs={input: larger.npy}'
    fails 8 "the data: example 8 .counted from 0. has the value nan for 'input'" \
        "$PENSTOCK" train mlp.yaml -q "${over[@]}" --set 'data.train.inputs={input: nothing.npy}'
done

larger=(--set 'data.train.inputs={input: larger.npy}')
penstock train mlp.yaml -q "${larger[@]}" --steps 6 --checkpoint counted >out 2>messages || die "$(cat messages)"
penstock checkpoint ls counted | tail -1 | grep -qE ' - +yes$' ||
    die "a loss that there was not: $(penstock checkpoint ls counted)"
penstock checkpoint ls counted --json >counted.json
check 'all(c["loss"] is None for c in d["checkpoints"])' counted.json
fails 8 'in step 10$' "$PENSTOCK" train mlp.yaml -q "${larger[@]}" --checkpoint counted --continue

# ---- an infinite loss whose gradients are finite: parameters have changed, so no node and no device is blamed
python3 - <<'P'
import array
for name, number in ("ones", 1), ("huge", 1e38):
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (8, 1), }".ljust(117) + b"\n"
    with open(f"{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
        file.write(array.array("f", [number] * 8).tobytes())
P
cat >l1.yaml <<Y
version: 1
model: {inputs: {input: {shape: [1]}}, layers: [{dense: 1}, {dense: 1}]}
data: {train: {format: npy, inputs: {input: ones.npy}, labels: huge.npy}}
train: {loss: l1, optimizer: {sgd: {lr: 1.0e36}}, batch: 8, steps: 3, epochs: 99, shuffle: false}
devices: [{$g}]
numerics: {precision: float16, loss_scale: {initial: 1}}
Y
infinite='the loss of step 1 is infinite, but all its gradients are finite: a number of the loss itself is beyond'
two=(--set train.microbatches=2 --set placement.strategy=round_robin)
fails 8 "$infinite" "$PENSTOCK" train l1.yaml -q
fails 8 "$infinite" "$PENSTOCK" train l1.yaml -q "${two[@]}" --set "devices=[{$g}, {$h}]"

# ---- several microbatches in lanes decide as one; the log has it
penstock train mlp.yaml -q --json --set train.microbatches=4 --set train.lanes=2 --log log.jsonl >lanes.json 2>messages ||
    die "$(cat messages)"
check 'd["steps"][0]["skipped"] and not d["steps"][1]["skipped"]' lanes.json
grep -m 1 '"event": "step"' log.jsonl | grep -q '"loss_scale": 1048576, "skipped": true' || die "$(head -3 log.jsonl)"

# ---- what no scale helps ends with the reason
fails 8 "in gemm '/layers.*an overflow in it.*" "$PENSTOCK" train mlp.yaml -q --set train.optimizer.sgd.lr=1e38
