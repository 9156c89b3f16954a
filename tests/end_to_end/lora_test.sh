# adapt: {lora: …}: PyTorch's losses; the same bits on any devices and replicas, and after a stop; what is written has the
# adapters in its weights, or has them alone; what does not go is refused, all of it at once.
. tests/end_to_end/trainings.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp gpt

# ---- PyTorch's losses

# reference MODEL TRAIN ADAPT
reference() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/$1/model.onnx}
data: {train: {format: npy, inputs: {input: reference/$1/inputs.npy}, labels: reference/$1/labels.npy}}
train: {loss: softmax_cross_entropy, $2, batch: 8, steps: 12, shuffle: false, seed: 3}
adapt: {lora: {$3}}
END
    train_losses "$1.yaml" >found
    python3 - "$1" <<'END' || die "$1: not PyTorch's losses"
import sys
found = [float(word) for word in open("found").read().split()]
rows = [line.split() for line in open(f"reference/lora/{sys.argv[1]}.txt")]
assert len(found) == len(rows) == 12
for step, (loss, (exact, single)) in enumerate(zip(found, rows)):
    exact, single = float(exact), float(single)
    bound = max(1e-4, 2 * abs(single / exact - 1))
    assert abs(loss / exact - 1) <= bound, (sys.argv[1], step, loss, exact, bound)
END
}
reference mlp 'optimizer: {sgd: {lr: 0.05, momentum: 0.9}}' 'nodes: "^/layers[.][01]/"'
reference lenet 'optimizer: {adamw: {lr: 0.01}}, groups: [{match: "^fc3"}]' \
    'nodes: "^/(conv2|fc1|fc2)/", rank: 4, alpha: 6'

# ---- the same bits

adamw='optimizer: {adamw: {lr: 0.01}}, clip_norm: 0.5, batch: 16, microbatches: 4, lanes: 4, steps: 6'
lora='adapt: {lora: {nodes: "^gemm", rank: 4}}'
# job FILE MODEL TRAIN [DEVICES [HOST [PLACEMENT [MORE]]]]
job() {
    write_job "$1" "$2" "$3" "${4:-1}" "${5:-process}" "${6:-time_limit: 1s}" "${7:-$lora}"
}
# same MODEL ADAPT "DEVICES HOST PLACEMENT"...
same() {
    local expected found shape
    job one.yaml "$1" "$adamw" 1 process '' "$2"
    expected=$(numbers one.yaml)
    for shape in "${@:3}"; do
        set -- "$1" "$2" $shape
        job many.yaml "$1" "$adamw" "$3" "$4" "${*:5}" "$2"
        found=$(numbers many.yaml)
        [ "$found" = "$expected" ] || die "$1, $2, $shape: $found, one device: $expected"
    done
}
same mlp "$lora" '2 process' '2 localhost replicas: 2'
same gpt 'adapt: {lora: {nodes: "^matmul([0-9]|1[0-6])$", rank: 2}}' '2 process'

# killed while it trains, and gone on with on two devices
long=${adamw/steps: 6/steps: 400}
job long.yaml mlp "$long"
job many.yaml mlp "$long" 2
whole=$(numbers long.yaml)
"$PENSTOCK" train -q long.yaml --checkpoint killed --every '5 steps' >out 2>messages &
training=$!
await_commits killed 3
kill -9 $training 2>/dev/null || die "it was over before it could be killed: $(cat messages)"
wait $training 2>/dev/null || true
rest=$(numbers many.yaml --resume killed)
case $whole in *" $rest") ;; *) die "killed and gone on with: $rest, not the end of $whole" ;; esac

# ---- what is written

job one.yaml mlp "$adamw"
sed -i 's/^devices:/outputs: {dir: left, export: merged.onnx, adapters: adapters.safetensors}\ndevices:/' one.yaml
sed '/^adapt:/d; s/^outputs:.*//; s/mlp.onnx/merged.onnx/' one.yaml >merged.yaml
sed '/^adapt:/d; s/^outputs:.*//' one.yaml >plain.yaml
penstock train --json one.yaml --checkpoint kept --save saved.safetensors >out 2>messages || die "$(cat messages)"
penstock checkpoint export kept -o merged.safetensors || die 'export'
penstock checkpoint export kept --all -o all.safetensors || die 'export --all'
penstock checkpoint export kept --adapters -o alone.safetensors || die 'export --adapters'
cmp alone.safetensors adapters.safetensors || die 'outputs.adapters and export --adapters differ'
penstock train --json plain.yaml --steps 1 --checkpoint plain >out 2>messages || die "$(cat messages)"
penstock checkpoint export plain --all -o plain.safetensors || die 'export'
PYTHONPATH=$top/tests/end_to_end python3 - <<'END' || die 'what is written is not W + scale (B A)'
from safetensors import read
whole, merged, alone = read("all.safetensors"), read("merged.safetensors"), read("adapters.safetensors")
plain = read("plain.safetensors")
states = {name.rsplit("/", 1)[1] for name in plain if "/" in name}
parameters = {name for name in plain if "/" not in name}
assert len(states) == 2 and set(merged) == parameters, (states, set(merged) ^ parameters)
changed, stems = 0, set()
for name in sorted(parameters):
    stem = name.removesuffix(".weight")
    shape, weight = whole[name]
    if f"{stem}.lora_A.weight" not in whole:
        assert merged[name] == whole[name], name
        continue
    stems.add(stem)
    (ra, a), (rb, b) = (whole[f"{stem}.lora_{x}.weight"] for x in "AB")
    scale = whole[f"{stem}.lora_scale"][1][0]
    assert scale == 4 and ra[0] == 4 and rb[1] == 4, (scale, ra, rb)
    assert any(b), "B is still zero"
    columns = shape[1]
    for i in range(0, len(weight), 7):
        row, column = divmod(i, columns)
        total = weight[i] + scale * sum(b[row * 4 + k] * a[k * columns + column] for k in range(4))
        found = merged[name][1][i]
        assert abs(found - total) <= 6e-8 * abs(total) + 1e-12, (name, i, found, total)
        changed += found != weight[i]
    for x in "AB":
        assert alone[f"base_model.model.{stem}.lora_{x}.weight"] == whole[f"{stem}.lora_{x}.weight"]
assert changed > 1000 and len(stems) == 7 and len(alone) == 14, (changed, stems, set(alone))
kept = {name for name in whole if name.rsplit("/", 1)[-1] in states}
expected = {f"{stem}.lora_{x}.weight/{state}" for stem in stems for x in "AB" for state in states}
assert kept == expected, kept ^ expected
END
cmp saved.safetensors left/parameters.safetensors || die '--save and outputs.dir differ'
sed -i 's/^data: {\(.*\)}$/data: {\1, holdout: 0.2}/' one.yaml merged.yaml plain.yaml
loss=$(penstock eval --json one.yaml --parameters saved.safetensors | json 'd["loss"]')
for job in 'merged.yaml' 'plain.yaml --parameters saved.safetensors' 'plain.yaml --parameters merged.safetensors'; do
    # shellcheck disable=SC2086
    penstock eval --json $job 2>messages | json "abs(d['loss'] / $loss - 1) < 1e-5" | grep -q True || die "$job: not $loss"
done

# adapters alone, beside the model as it was
sed 's/rank: 4/rank: 4, weights: adapters.safetensors/; s/^outputs:.*//' one.yaml >again.yaml
penstock eval --json again.yaml 2>messages | json "abs(d['loss'] / $loss - 1) < 1e-5" | grep -q True ||
    die "adapters: not $loss: $(cat messages)"
sed 's/rank: 4/rank: 5/' again.yaml >wrong.yaml
fails 3 "adapters.safetensors: 'base_model.model.fc1.lora_A.weight' is .*4,64.*, expected .*5,64" \
    "$PENSTOCK" train wrong.yaml
[ "$(grep -c 'lora_[AB].weight. is' fails.err)" -eq 14 ] || die "not all are named: $(cat fails.err)"
sed 's/\^gemm/^gemm[1-6]/' again.yaml >wrong.yaml
fails 3 'wrong.yaml:6:.*adapters.safetensors has 14 tensors, expected 12: the adapters alone' "$PENSTOCK" train wrong.yaml

# what is frozen takes no memory for gradients and the optimizer's states
memory() {
    penstock plan --json "$1" 2>messages | json "d['devices'][0]['memory']['$2']"
}
for what in gradients optimizer_state; do
    before=$(memory plain.yaml $what)
    after=$(memory one.yaml $what)
    [ $((10 * after)) -lt "$before" ] || die "$what: $after bytes with adapters, $before without"
done

# ---- what does not go

job wrong.yaml mlp "$adamw" 1 process '' 'adapt: {lora: {nodes: "^gem_3"}}'
fails 3 'wrong.yaml:.*no node matches "\^gem_3", near: gemm' "$PENSTOCK" train wrong.yaml
job wrong.yaml mlp "$adamw" 1 process '' 'adapt: {lora: {nodes: "^relu"}}'
fails 3 'none of the nodes multiplies by a weight; these can be adapted' "$PENSTOCK" train wrong.yaml
job wrong.yaml mlp "$adamw" 1 process '' 'adapt: {lora: {nodes: "^gemm", rank: 96}}'
fails 3 '7 nodes cannot be adapted:' "$PENSTOCK" train wrong.yaml
grep -q 'the rank 96 is too large for a weight of 96 inputs and 10 outputs; it must be less than 10' fails.err ||
    die "$(cat fails.err)"
job wrong.yaml gpt "$adamw" 1 process '' 'adapt: {lora: {nodes: ".*", rank: 2}}'
fails 3 "its weight 'table' is read by .*, too, which is not adapted" "$PENSTOCK" train wrong.yaml
job wrong.yaml mlp "$adamw" 1 process '' 'outputs: {adapters: a.safetensors}'
fails 3 'outputs.adapters: found, but no adapters' "$PENSTOCK" train wrong.yaml

# ---- the recipe of docs/job.md, word by word

mkdir recipe
cd recipe
python3 - "$top/docs/job.md" <<'END'
import re, sys
section = open(sys.argv[1]).read().split("### Fine-tuning with LoRA")[1].split("\n### ")[0]
(_, data), (_, old), (_, new), (_, verbs) = re.findall(r"```(\w+)\n(.*?)```", section, re.S)
for name, text in ("data.sh", data), ("old.yaml", old), ("new.yaml", new), ("verbs.sh", verbs):
    open(name, "w").write(text)
END
bash -e data.sh || die 'the recipe: data'
export -f penstock
export PENSTOCK
bash -e verbs.sh >out 2>messages || die "the recipe: $(cat messages)"
grep '^accuracy' out >accuracies
python3 - <<'END' || die "the recipe: $(cat accuracies)"
before, after = (float(line.split()[1]) for line in open("accuracies"))
assert before < 0.3 and after > 0.85, (before, after)
END
[ -s adapters.safetensors ] || die 'the recipe: no adapters'
