# Metrics of evaluations: that they are those of the outputs that predict writes, the same bits wherever the model is,
# and that they judge which parameters are best.
. tests/end_to_end/common.sh

/usr/bin/python3 - <<'PY'
import numpy as np
random = np.random.RandomState(1)
truth = random.randn(12, 4)
inputs = random.randn(160, 12).astype(np.float32)
scores = inputs @ truth + 3 * random.randn(160, 4)
one_hot = np.eye(4, dtype=np.float32)[scores.argmax(1)]
for name, part in (("train", slice(0, 96)), ("eval", slice(96, 160))):
    np.save(f"{name}_x.npy", inputs[part])
    np.save(f"{name}_y.npy", scores[part].argmax(1))
    np.save(f"{name}_p.npy", one_hot[part] * np.float32(0.7) + np.float32(0.1))
    np.save(f"{name}_b.npy", (scores[part, :1] > 0).astype(np.float32))
    np.save(f"{name}_n.npy", scores[part, :1].astype(np.float32))
PY

one='{name: a, threads: 1}'
two='{name: a, threads: 1}, {name: b, threads: 1, host: localhost}'

# job DEVICES UNITS LOSS LABELS EVALUATION [MORE]
job() {
    cat >job.yaml <<YAML
version: 1
model:
  inputs: {x: {shape: [12]}}
  layers: [dense: {units: 32, activation: relu}, dense: {units: $2}]
data:
  train: {format: npy, inputs: {x: train_x.npy}, labels: train_$4.npy}
  eval: {format: npy, inputs: {x: eval_x.npy}, labels: eval_$4.npy}
train: {loss: $3, seed: 3, optimizer: {adam: {lr: 0.01}}, batch: 24, microbatches: 2, lanes: 2, epochs: 3}
devices: [$1]
evaluation: {every: 3 steps, $5}
checkpoint: {dir: kept}
outputs: {dir: out, from: best}
${6:-}
YAML
}

# told FILE: what all evaluations said, and which was best
told() {
    json '[[s["step"], s["evaluation"]] for s in d["steps"] if "evaluation" in s] + [d["best"]]' <"$1"
}

# ---- the metrics of a job on one device, with those of the rows that predict writes
# same CODE: compares the best evaluation with what CODE puts into `expected`, from rows `z` and labels `y`
same() {
    rm -rf kept out
    penstock train -q --json job.yaml >run.json
    told run.json >told
    penstock eval -q --json job.yaml >eval.json
    penstock predict -q -o rows.npy job.yaml
    /usr/bin/python3 - "$1" "$2" <<'PY' || die "$1: $(cat eval.json)"
import json, sys
import numpy as np
found, best = json.load(open("eval.json")), json.load(open("run.json"))["best"]
z, y, expected = np.load("rows.npy").astype(float), np.load(sys.argv[1]), {}
def area(score, is_of): # pairs, one by one
    above = score[is_of][:, None] - score[~is_of][None]
    return ((above > 0) + (above == 0) / 2).mean()
exec(sys.argv[2])
for name, value in expected.items():
    assert abs(found[name] - value) <= 1e-5 * abs(value), (name, found[name], value)
assert found[best["metric"]] == best["value"], (found, best) # the bits of the training's own evaluation
PY
}

classes='top_2, top_3, precision, recall_weighted, f1, f1_micro, mean_iou, auc, perplexity'
job "$one" 4 softmax_cross_entropy y "metric: f1, metrics: [$classes]"
same eval_y.npy '
log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
order, answer = np.argsort(-z, axis=1), z.argmax(1)
pairs = [((answer == c) & (y == c)).sum() / max(1, ((answer == c) | (y == c)).sum()) for c in range(4)]
expected["mean_iou"] = np.mean(pairs)
expected["f1"] = np.mean([2 * p / (1 + p) for p in pairs])
expected["accuracy"] = expected["f1_micro"] = expected["recall_weighted"] = (answer == y).mean()
expected["top_2"] = (order[:, :2] == y[:, None]).any(1).mean()
expected["top_3"] = (order[:, :3] == y[:, None]).any(1).mean()
expected["precision"] = np.mean([((answer == c) & (y == c)).sum() / max(1, (answer == c).sum()) for c in range(4)])
expected["auc"] = np.mean([area(log_p[:, c], y == c) for c in range(4)])
expected["perplexity"] = np.exp(-log_p[np.arange(len(y)), y].mean())'
check 'd["best"]["metric"] == "f1" and d["best"]["value"] == max(s["evaluation"]["f1"] for s in d["steps"] if "evaluation" in s)' run.json
penstock eval -q job.yaml >text
grep -qE '^top_2 +0\.[0-9]+$' text || die "$(cat text)"

# ---- the same bits with several devices, processes, replicas, and after a worker was lost
cp told whole
for more in '' 'placement: {replicas: 2}' 'recovery: {on_loss: wait}'; do
    devices=$two failpoint=
    case $more in recovery*) devices='{name: a, threads: 1, host: localhost}, {name: b, threads: 1, host: localhost}' failpoint=worker.updated:5:kill ;; esac
    job "$devices" 4 softmax_cross_entropy y "metric: f1, metrics: [$classes]" "$more"
    rm -rf kept out
    PENSTOCK_FAILPOINT=$failpoint penstock train -q --json job.yaml >run.json 2>messages || die "$more: $(cat messages)"
    told run.json >told
    [ -z "$failpoint" ] || check 'd["measured"]["recoveries"] > 0' run.json
    cmp whole told || die "$more: $(cat told), expected $(cat whole)"
    penstock eval -q --json job.yaml >again.json
    [ "$(json '[d[k] for k in sorted(d) if k != "seconds"]' <eval.json)" = \
        "$(json '[d[k] for k in sorted(d) if k != "seconds"]' <again.json)" ] || die "$more: $(cat again.json)"
done

# ---- a training that goes on compares with what was best by the same metric
job "$one" 4 softmax_cross_entropy y "metric: f1, metrics: [$classes]"
rm -rf kept out
for steps in 4 7 12; do
    penstock train -q --json --continue --steps $steps job.yaml >run.json
done
[ "$(json 'd["best"]' <run.json)" = "$(sed "s/.*, {'step'/{'step'/; s/]$//" whole)" ] || die "$(json 'd["best"]' <run.json)"
job "$one" 4 softmax_cross_entropy y 'metric: perplexity'
penstock train --continue --set train.epochs=4 job.yaml 2>messages
grep -q 'compared by f1: the best is looked for anew, by perplexity' messages || die "$(cat messages)"

# ---- other losses
job "$one" 4 'softmax_cross_entropy, probabilities: true' p 'metric: accuracy, metrics: [f1, top_2]'
same eval_p.npy 'y = y.argmax(1); expected["accuracy"] = (z.argmax(1) == y).mean()
expected["top_2"] = (np.argsort(-z, axis=1)[:, :2] == y[:, None]).any(1).mean()'
job "$one" 1 binary_cross_entropy_with_logits b 'metric: auc, metrics: [accuracy, precision, recall, mean_iou]'
same eval_b.npy 'answer, y = z[:, 0] > 0, y[:, 0] > 0.5
expected["accuracy"], expected["recall"] = (answer == y).mean(), answer[y].mean()
expected["precision"], expected["auc"] = y[answer].mean(), area(z[:, 0], y)
expected["mean_iou"] = np.mean([(answer & y).sum() / (answer | y).sum(), (~answer & ~y).sum() / (~answer | ~y).sum()])'
errors='metrics: [mean_squared_error, root_mean_squared_error]'
job "$one" 1 mean_squared_error n "metric: mean_absolute_error, $errors"
same eval_n.npy 'expected["mean_absolute_error"] = abs(z - y).mean()
expected["mean_squared_error"], expected["root_mean_squared_error"] = ((z - y) ** 2).mean(), ((z - y) ** 2).mean() ** 0.5'
check 'd["best"]["value"] == min(s["evaluation"]["mean_absolute_error"] for s in d["steps"] if "evaluation" in s)' run.json
cp told whole
job "$two" 1 mean_squared_error n "metric: mean_absolute_error, $errors"
rm -rf kept out
penstock train -q --json --log log.jsonl --metrics gauges --tensorboard board job.yaml >run.json
told run.json >told
cmp whole told || die "$(cat told), expected $(cat whole)"
grep -q '"event": "evaluation".*"mean_absolute_error": [0-9.]*, "mean_squared_error"' log.jsonl || die "$(cat log.jsonl)"
grep -q '^penstock_[a-z_]*evaluation_mean_absolute_error' gauges || die "$(cat gauges)"
grep -qa 'evaluation/root_mean_squared_error' board/* || die 'not in the event file'

# ---- metrics of steps. Each step has all examples, so before its update they are what the evaluation after the step
# before it found, which counts them by itself: from the outputs, not where the loss is.
# follow METRICS: trains job.yaml, whose steps are epochs, and leaves run.json
follow() {
    rm -rf kept out board
    penstock train -q --json --log log.jsonl --metrics gauges --tensorboard board job.yaml >run.json
    python3 - $1 <<'PY' || die "$1: $(cat job.yaml run.json)"
import json, sys
steps = json.load(open("run.json"))["steps"]
assert len(steps) == 6
for before, step in zip(steps, steps[1:]):
    for name in sys.argv[1:]:
        expected = before["evaluation"][name]
        is_share = name == "accuracy" or name.startswith("top") # of classes: whole numbers before
        assert abs(step[name] - expected) <= (0 if is_share else 2e-6 * abs(expected)), (step, name, expected)
PY
}
# steps DEVICES UNITS LOSS LABELS METRICS: names of metrics
steps() {
    job "$1" "$2" "$3" "$4" "metrics: [${5// /, }]" "${6:-}"
    sed -i "s/eval_/train_/g; s/every: 3 steps/every: 1 steps/; s/batch: 24, microbatches: 2/batch: 96, microbatches: 4/; s/epochs: 3/epochs: 6/" job.yaml
    follow "$5"
}
# those of steps alone, which must be the same wherever they run
alone() { json '[[s[k] for k in sorted(s) if k not in ("seconds", "wait_seconds", "evaluation")] for s in d["steps"]]' <run.json; }
for case in 'softmax_cross_entropy y 4 top_2 top_3 perplexity' 'mean_squared_error n 1 mean_absolute_error root_mean_squared_error' \
    'l1 n 1 mean_squared_error' 'huber n 1 mean_absolute_error'; do
    read -r loss labels units names <<<"$case"
    steps "$one" "$units" "$loss" "$labels" "$names"
    alone >whole
    for more in '' 'placement: {replicas: 2}'; do
        steps "$two" "$units" "$loss" "$labels" "$names" "$more"
        alone | cmp - whole || die "$case, $more: $(alone), one device $(cat whole)"
    done
    for name in $names; do
        grep -q "^penstock_train_$name{" gauges || die "$name: $(cat gauges)"
        grep -q "\"event\": \"step\".*\"$name\": [0-9]" log.jsonl || die "$name: $(cat log.jsonl)"
        LC_ALL=C grep -qazE "[^/_]$name" board/* || die "$name is not in the event file"
    done
done
# a layer of classes in slices
steps "$one" 4 softmax_cross_entropy y 'top_2'
tops=$(json '[s["top_2"] for s in d["steps"]]' <run.json)
sed -i 's/lanes: 2/lanes: 2, shard: [{nodes: "dense", ways: 2}]/' job.yaml
rm -rf kept out
penstock train -q --json job.yaml >run.json
check 'all(abs(s["top_2"] - w) < 1e-9 for s, w in zip(d["steps"], '"$tops))" run.json
# labels that are ignored count nowhere
/usr/bin/python3 - <<'PY'
import numpy as np
labels = np.load("train_y.npy")
labels[::3] = 2
np.save("train_i.npy", labels)
PY
steps "$two" 4 'softmax_cross_entropy, ignore_index: 2' i 'accuracy top_2 perplexity'
# a GPU's kernels count as the evaluation does; the GPU is emulated
. "$top/tests/end_to_end/emulated_gpu.sh"
steps '{name: g, kind: cuda, memory: 1GiB}' 12 softmax_cross_entropy y 'top_2 top_5 top_10'
# of several losses they are of the one that evaluations are of, or of none: of the first over classes, which takes
# probabilities here
job "$one" 4 softmax_cross_entropy y 'metrics: [top_2]'
sed -i -E 's/labels: (train|eval)_y.npy/labels: {p: \1_p.npy, y: \1_y.npy}/; s/units: 4/units: 4, name: z/' job.yaml
sed -i 's/loss: \([a-z_]*\)/losses: [{output: z, labels: p, kind: \1, probabilities: true}, {output: z, labels: y, kind: \1}]/' job.yaml
rm -rf kept out
penstock train -q --json job.yaml >run.json
check 'not any("top_2" in s for s in d["steps"]) and any("top_2" in s.get("evaluation", {}) for s in d["steps"])' run.json
# beside as many losses as there may be, all that steps can tell is told
job "$two" 4 softmax_cross_entropy y 'metrics: [top_2, top_3, perplexity, mean_absolute_error, mean_squared_error, root_mean_squared_error]'
sed -i -E 's/labels: (train|eval)_y.npy/labels: {p: \1_p.npy, y: \1_y.npy}/; s/units: 4/units: 4, name: z/' job.yaml
sed -i "s/loss: [a-z_]*/losses: [{output: z, labels: y, kind: softmax_cross_entropy}$(printf ', {output: z, labels: p, kind: l1}%.0s' {1..15})]/" job.yaml
rm -rf kept out
penstock train --json job.yaml >run.json 2>messages
check 'all(len(s["losses"]) == 16 and {"top_2", "top_3", "perplexity", "mean_absolute_error", "mean_squared_error", "root_mean_squared_error"} < set(s) for s in d["steps"])' run.json
# all that there are of classes, in an event file: its record has room for them
averages() { printf "$1, $1_macro, $1_micro, $1_weighted, "; }
all="$(averages precision)$(averages recall)$(averages f1)top_2, top_3, top_5, top_10, mean_iou, auc, perplexity"
job "$one" 12 softmax_cross_entropy y "metrics: [$all]"
rm -rf kept out board
penstock train -q --tensorboard board job.yaml
for name in ${all//,/}; do
    LC_ALL=C grep -qa "evaluation/$name" board/* || die "$name is not in the event file"
done
# what nobody asks for is not there
job "$one" 4 softmax_cross_entropy y 'metric: accuracy'
rm -rf kept out
penstock train -q --json job.yaml >run.json
check 'not any("top" in k for s in d["steps"] for k in s)' run.json

# ---- steps that a mask leaves out count nowhere
/usr/bin/python3 - <<'PY'
import numpy as np
random = np.random.RandomState(0)
words = random.randint(1, 20, (50, 8))
for row, length in zip(words, random.randint(3, 9, 50)):
    row[length:] = 0
np.save("words.npy", words)
np.save("kinds.npy", words % 5)
np.save("sizes.npy", (words % 7)[:, :, None].astype(np.float32))
PY
cat >job.yaml <<'YAML'
version: 1
model:
  inputs: {x: {shape: [8], dtype: int64}}
  layers: [embedding: {input_dim: 20, output_dim: 6, mask_zero: true}, lstm: {units: 8, return_sequences: true}, dense: {units: 5}]
data:
  train: {format: npy, inputs: {x: words.npy}, labels: kinds.npy}
  eval: {format: npy, inputs: {x: words.npy}, labels: kinds.npy}
train: {loss: softmax_cross_entropy, seed: 3, optimizer: {adam: {lr: 0.01}}, batch: 24, epochs: 2}
devices: [{name: a, threads: 1}]
evaluation: {every: 1 epoch, metric: accuracy, metrics: [top_2, recall_micro, auc, perplexity]}
checkpoint: {dir: kept}
outputs: {dir: out, from: best}
YAML
same kinds.npy 'is_there = np.load("words.npy") > 0
z, y = z[is_there], y[is_there]
log_p = z - np.log(np.exp(z).sum(1, keepdims=True))
expected["accuracy"] = expected["recall_micro"] = (z.argmax(1) == y).mean()
expected["top_2"] = (np.argsort(-z, axis=1)[:, :2] == y[:, None]).any(1).mean()
expected["auc"] = np.mean([area(log_p[:, c], y == c) for c in range(5)])
expected["perplexity"] = np.exp(-log_p[np.arange(len(y)), y].mean())
assert found["targets"] == len(y)'
# so it is with those of steps, in microbatches of which each has another share that counts, wherever they run
masked() { # DEVICES LOSS METRICS
    sed "s/loss: [a-z_]*/loss: $2/; s/batch: 24, epochs: 2/batch: 50, microbatches: 5, lanes: 2, epochs: 6/
        s/devices: .*/devices: [$1]/; s/metric: accuracy.*/metrics: [${3// /, }]}/" whole.yaml >job.yaml
    follow "$3"
    alone >alone
}
cp job.yaml whole.yaml
for loss in softmax_cross_entropy 'softmax_cross_entropy, ignore_index: 2'; do
    masked "$one" "$loss" 'accuracy top_2 perplexity'
    cp alone first
    masked "$two" "$loss" 'accuracy top_2 perplexity'
    cmp first alone || die "$loss: $(cat alone), one device $(cat first)"
done
sed -i 's/dense: {units: 5}/dense: {units: 1}/; s/kinds/sizes/' whole.yaml
for loss in mean_squared_error l1; do
    masked "$two" $loss 'mean_absolute_error mean_squared_error root_mean_squared_error'
done
sed -i 's/metrics: \[/metric: mean_absolute_error, metrics: [/; s/^outputs.*/outputs: {dir: out, from: best}/' job.yaml
same sizes.npy 'is_there = np.load("words.npy") > 0
z, y = z[is_there], y[is_there]
expected["mean_absolute_error"], expected["mean_squared_error"] = abs(z - y).mean(), ((z - y) ** 2).mean()'
# a step of which nothing counts has no metrics, not those of a loss of 0
/usr/bin/python3 -c 'import numpy as np
words = np.load("words.npy")
words[:25] = 0
np.save("words.npy", words)'
sed 's/batch: 24, epochs: 2/batch: 25, shuffle: false/; s/loss: [a-z_]*/loss: l1/
    s/metric: accuracy.*/metrics: [mean_absolute_error, root_mean_squared_error]}/' whole.yaml >job.yaml
rm -rf kept out
penstock train -q --json job.yaml >run.json
for name in mean_absolute_error root_mean_squared_error; do
    check '["'$name'" in s for s in d["steps"][:2]] == [False, True]' run.json
done

# ---- what cannot be
rm -rf kept out
job "$two" 1 mean_squared_error n "$errors"
fails 3 'job.yaml:[0-9:]+ error: evaluation: found f1, but the loss is over no classes' \
    "$PENSTOCK" train --set evaluation.metric=f1 job.yaml
fails 2 'evaluation: found auc, but the loss is over no classes' \
    "$PENSTOCK" eval --set 'evaluation.metrics=[auc]' job.yaml
job "$one" 4 softmax_cross_entropy y 'metrics: [top_5]'
fails 3 'job.yaml:[0-9:]+ error: evaluation: found top_5, but there are 4 classes' "$PENSTOCK" train job.yaml
job "$one" 4 'softmax_cross_entropy, label_smoothing: 0.1' y 'metrics: perplexity'
fails 3 'evaluation: found perplexity, but the loss is no plain cross-entropy' "$PENSTOCK" train job.yaml
fails 2 'evaluation.metric: found "f2", expected' "$PENSTOCK" train --set evaluation.metric=f2 job.yaml
