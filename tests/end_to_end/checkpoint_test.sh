# Folders of checkpoints, looked at, damaged and exported.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 40
cat >job.yaml <<YAML
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 20, steps: 10}
checkpoint: {dir: kept, every: 2 steps, keep: 3}
outputs: {export: trained.onnx}
YAML
penstock train -q job.yaml

# times and losses differ between machines
penstock checkpoint ls kept | sed -E 's/[0-9]{4}-[0-9-]+T[0-9:]+Z/WRITTEN             /; s/ +[0-9.]+  yes/ LOSS  yes/'
penstock checkpoint verify kept
penstock checkpoint ls kept --json >ls.json
check '[c["step"] for c in d["checkpoints"]] == [10, 8, 6] and d["generation"] == 1' ls.json
check 'all(c["complete"] and c["loss"] > 0 and len(c["shards"]) == 1 for c in d["checkpoints"])' ls.json

# the parameters, and with --all the optimizer's states
penstock checkpoint export kept --output model.safetensors
penstock checkpoint export kept --step 8 --all --output all.safetensors
python3 - <<'PYTHON'
import json, struct
def names(path):
    data = open(path, "rb").read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    assert max(v["data_offsets"][1] for v in header.values()) == len(data) - 8 - length
    return sorted(header)
model, all_names = names("model.safetensors"), names("all.safetensors")
states = [n for n in all_names if n.endswith("_moment")]
assert model == [n for n in all_names if n not in states], (model, all_names)
assert len(states) == 2 * len(model), (model, states)
print("\n".join(model))
PYTHON
# what was exported is what the training ended with
penstock train -q --json job.yaml --checkpoint again --overwrite --steps 10 >ended.json
cat >started.yaml <<YAML
$(sed -n '1,3p' job.yaml)
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 1.0e-30}}, batch: 20, steps: 1}
YAML
penstock train -q --json started.yaml --parameters model.safetensors >started.json
[ "$(json 'd["parameters_hash"]' <ended.json)" = "$(json 'd["parameters_hash"]' <started.json)" ] || die 'other parameters'

# damage is named, with file and byte; the training goes on from the checkpoint before
python3 - <<'PYTHON'
with open("kept/shards/g1-s10-w0.safetensors", "r+b") as file:
    file.seek(200000)
    byte = file.read(1)[0]
    file.seek(200000)
    file.write(bytes([byte ^ 4]))
PYTHON
code=0
penstock checkpoint verify kept | sed -E 's/checksum is [0-9a-f]+, [0-9a-f]+/checksum is FOUND, WRITTEN/' || code=$?
[ $code -eq 7 ] || die "exit code $code for damage"
penstock train -q --json job.yaml --continue >continued.json 2>messages
grep -q 'the checkpoint of step 10 cannot be used, the one before is tried' messages || die "$(cat messages)"
check '[s["step"] for s in d["steps"]] == [9, 10]' continued.json
[ "$(json 'd["parameters_hash"]' <ended.json)" = "$(json 'd["parameters_hash"]' <continued.json)" ] || die 'other numbers'
rm kept/shards/g2-s10-w0.safetensors
penstock checkpoint ls kept --json >ls.json
check 'not d["checkpoints"][0]["complete"]' ls.json
newest=$(find kept/commit -name 'commit.*' | sort | tail -n 1)
echo x >>"$newest"
code=0
penstock checkpoint verify kept --json >verified.json 2>messages || code=$?
[ $code -eq 7 ] || die "exit code $code for a damaged record"
grep -q "warning: '$newest' is damaged, and passed over: " messages || die "$(cat messages)"
check 'd["damaged_records"] == 1' verified.json

# what cannot be
mkdir empty
fails 4 'there is no checkpoint in empty: it is empty' "$PENSTOCK" checkpoint ls empty
fails 4 'there is no checkpoint in nowhere: no such folder' "$PENSTOCK" checkpoint verify nowhere
fails 4 "there is no checkpoint in ., but: .*" "$PENSTOCK" checkpoint ls .
fails 4 'kept has no checkpoint of step 3, but of: 8, 6' "$PENSTOCK" checkpoint export kept --step 3 -o x
fails 2 "found action 'list', possible: ls, verify, export" "$PENSTOCK" checkpoint list kept
fails 2 'export: found no --output' "$PENSTOCK" checkpoint export kept
fails 2 'ls: found --step, --best, --output, --plain, --adapters or --all' "$PENSTOCK" checkpoint ls kept --all

# what chose the best is told for each checkpoint, as the training said it; nothing of it before the first evaluation
sed 's/labels: labels.npy}}/labels: labels.npy}, holdout: 0.5}/; s/steps: 10/steps: 12/; s/dir: kept, every: 2 steps, keep: 3/dir: judged, every: 2 steps, keep: 9/
    s/trained.onnx/judged.onnx/' job.yaml >judged.yaml
echo 'evaluation: {every: 4 steps, metric: accuracy}' >>judged.yaml
penstock train -q --json judged.yaml >judged.json
penstock checkpoint ls judged --json >ls.json
penstock checkpoint ls judged >ls.txt
python3 - <<'PYTHON'
import json
run, listed, lines = json.load(open("judged.json")), json.load(open("ls.json")), open("ls.txt").read().splitlines()
assert "  best so far  " in lines[0] and lines[0].endswith("  complete"), lines[0]
accuracy = {s["step"]: s["evaluation"]["accuracy"] for s in run["steps"] if "evaluation" in s}
assert sorted(accuracy) == [4, 8, 12], accuracy
for line, checkpoint in zip(lines[1:], listed["checkpoints"], strict=True):
    so_far = {step: value for step, value in accuracy.items() if step <= checkpoint["step"]}
    assert ("evaluated" in checkpoint) == bool(so_far), checkpoint
    if not so_far:
        assert line.split()[-2:] == ["-", "yes"], line
        continue
    best = max(so_far, key=lambda step: (so_far[step], -step))
    found = checkpoint["evaluated"]
    assert (found["metric"], found["step"], found["value"]) == ("accuracy", best, so_far[best]), (found, so_far)
    assert found["evaluations"] == len(so_far) and found["since_best"] == len([s for s in so_far if s > best]), found
    assert f"  accuracy {so_far[best]:.6g} of {best} " in line, line
    assert line.endswith("; the best evaluation") == checkpoint["best"] == (checkpoint["step"] == run["best"]["step"])
assert run["best"].items() >= listed["checkpoints"][0]["evaluated"].items(), (run["best"], listed["checkpoints"][0])
assert len(lines) == 7
PYTHON

# workers with disks of their own: their shards are copied to the coordinator before they count
cat >apart.yaml <<YAML
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 20, microbatches: 4, steps: 9}
devices: [{name: a, host: localhost}, {name: b, host: localhost}, {name: c, host: localhost}]
placement: {strategy: round_robin}
checkpoint: {dir: apart, every: 2 steps, shared: false}
YAML
penstock train -q --json apart.yaml >whole.json
(cd apart/shards && find . -type f | sed -E 's/penstock-[0-9a-f]{16}/job/' | sort)
rm -rf apart
penstock train -q --json apart.yaml --steps 5 >first.json
rm -r apart/shards/penstock-*
penstock train -q --json apart.yaml --continue >second.json
check '[s["step"] for s in d["steps"]] == [6, 7, 8, 9]' second.json
[ "$(json 'd["parameters_hash"]' <whole.json)" = "$(json 'd["parameters_hash"]' <second.json)" ] || die 'other numbers'
grep -q '^holders: 127.0.0.1:[0-9]*$' apart/commit/commit.* || die 'no holders'
penstock checkpoint verify apart
