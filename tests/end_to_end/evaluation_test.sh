# Evaluations while a training runs: which one is best, what is kept of it, when the training ends
# because none was better; and that all of it comes out the same however often it is killed.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/four_classes.sh"

one='{name: a, threads: 1}'
two='{name: a, threads: 1}, {name: b, threads: 1, host: localhost}'

# job DEVICES EVALUATION [MORE]: 6 steps an epoch, 60 in all
job() {
    cat >job.yaml <<YAML
version: 1
model:
  inputs: {x: {shape: [12]}}
  layers: [dense: {units: 32, activation: relu}, dropout: {rate: 0.1}, dense: {units: 4}]
data:
  train: {format: npy, inputs: {x: train_x.npy}, labels: train_y.npy}
  eval: {format: npy, inputs: {x: eval_x.npy}, labels: eval_y.npy}
train: {loss: softmax_cross_entropy, seed: 3, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 2, lanes: 2, epochs: 10}
devices: [$1]
evaluation: {$2}
${3:-"checkpoint: {dir: kept, every: 5 steps}
outputs: {dir: out, from: best}"}
YAML
}

# What keras.callbacks.EarlyStopping decides (patience 3, min_delta), from the values alone.
cat >decide.py <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
key, sign, least = sys.argv[2], -1 if sys.argv[2] == "loss" else 1, float(sys.argv[3])
best = best_step = wait = 0
told = [step for step in run["steps"] if "evaluation" in step]
for i, step in enumerate(told):
    value = step["evaluation"][key]
    is_best = i == 0 or sign * (value - best) > least
    assert step["evaluation"]["best"] == is_best, step
    best, best_step, wait = (value, step["step"], 0) if is_best else (best, best_step, wait + 1)
    assert (wait >= 3) == (i == len(told) - 1), "the training ends too early or too late"
assert run["steps"][-1]["step"] == told[-1]["step"] < 60
said = run["best"]
assert (said["step"], said["value"], said["evaluations"]) == (best_step, best, len(told)), said
assert said["since_best"] == 3 and said["metric"] == key
print(best_step)
PY

for metric in loss accuracy; do
    least=$([ $metric = loss ] && echo 0.01 || echo 0)
    rm -rf kept out
    job "$one" "every: 4 steps, patience: 3, metric: $metric, min_delta: $least"
    penstock train -q --json job.yaml >run.json
    step=$(python3 decide.py run.json $metric "$least")
    # the best checkpoint stays, beside the two newest, and is what the outputs have
    penstock checkpoint ls --json kept >list.json
    check "[c['step'] for c in d['checkpoints'] if c['best']] == [$step]" list.json
    check "len(d['checkpoints']) == 3" list.json
    penstock checkpoint export --best -o best.safetensors kept
    cmp best.safetensors out/parameters.safetensors || die "the outputs are not the best parameters"
    penstock eval -q --json --parameters best.safetensors job.yaml >eval.json
    json "d['$metric']" <eval.json >found
    json "d['best']['value']" <run.json >expected
    cmp found expected || die "the best parameters evaluate to $(cat found), not to $(cat expected)"
done

# ---- killed wherever it may be, it ends at the same step, with the same best and the same bits
result() {
    json "(d['best'], d['evaluation']['loss'], d['parameters_hash'])" <"$1"
    sha256sum <out/parameters.safetensors
}

penstock train -q --json --overwrite job.yaml >run.json
result run.json >whole
last=$(json "d['steps'][-1]['step']" <run.json)
for devices in "$one" "$two"; do
    job "$devices" 'every: 4 steps, patience: 3, metric: accuracy'
    for place in manifest_written:1 manifest_published:2 shards_durable:3 pruned:3 manifest_published:4; do
        rm -rf kept out
        PENSTOCK_FAILPOINT=coordinator.$place:kill penstock train -q job.yaml 2>messages && die "$place: not killed"
        penstock train -q --json --continue job.yaml >again.json || die "$place: cannot go on"
        result again.json >again
        cmp whole again || die "$place: $(cat again), expected $(cat whole)"
    done
    rm -rf kept out # after steps that are no evaluation's and no checkpoint's; and once more when it is over
    for steps in 2 7 13 "$last"; do
        penstock train -q --continue --steps "$steps" job.yaml 2>messages
    done
    penstock train -q --json --continue job.yaml >again.json
    result again.json >again
    cmp whole again || die "stopped: $(cat again), expected $(cat whole)"
done
job '{name: a, threads: 1, host: localhost}, {name: b, threads: 1, host: localhost}' \
    'every: 4 steps, patience: 3, metric: accuracy' "checkpoint: {dir: kept, every: 5 steps}
recovery: {on_loss: wait}
outputs: {dir: out, from: best}"
rm -rf kept out
PENSTOCK_FAILPOINT=worker.updated:9:kill penstock train -q --json job.yaml >again.json 2>messages ||
    die "a worker is lost: $(cat messages)"
check 'd["measured"]["recoveries"] > 0' again.json
result again.json >again
cmp whole again || die "a worker is lost: $(cat again), expected $(cat whole)"

# ---- a rate that falls on plateaus falls after the same steps
job "$one" 'every: 2 steps'
sed -i 's/epochs: 10/epochs: 4, learning_rate: {plateau: {patience: 1, factor: 0.5, threshold: 0.05}}/' job.yaml
rm -rf kept out
penstock train -q --json job.yaml >run.json
check 'len(set(s["learning_rate"] for s in d["steps"])) >= 3' run.json
json '[s["learning_rate"] for s in d["steps"]]' <run.json >rates
result run.json >decayed
rm -rf kept out
for steps in 3 4 9 12 13; do
    penstock train --continue --steps "$steps" job.yaml 2>messages
done
grep -q "the plateau's learning rate is 0.00[0-9]*, as evaluations left it" messages || die "$(cat messages)"
penstock train -q --json --continue job.yaml >again.json
json '[s["learning_rate"] for s in d["steps"]]' <again.json >again
python3 -c 'import sys; w, a = (eval(open(n).read()) for n in ("rates", "again")); assert w[-len(a):] == a, (w, a)'
result again.json >again
cmp decayed again || die "a plateau: $(cat again), expected $(cat decayed)"
job "$one" 'every: 4 steps, patience: 3, metric: accuracy'

# ---- with another metric nothing is compared with what it was before
rm -rf kept out
job "$one" 'every: 4 steps, patience: 3, metric: loss, min_delta: 100'
penstock train -q --json job.yaml >run.json
check 'd["best"]["step"] == 4 and d["best"]["value"] > 1 and d["steps"][-1]["step"] == 16' run.json
job "$one" 'every: 4 steps, patience: 3, metric: accuracy'
penstock train --continue --steps 20 job.yaml 2>messages # no accuracy is above 1
grep -q 'compared by loss: the best is looked for anew, by accuracy' messages || die "$(cat messages)"
penstock train -q --json --continue --steps 24 job.yaml >again.json 2>messages
[ ! -s messages ] || die "said again: $(cat messages)"
check 'd["best"]["step"] in (20, 24) and 0 < d["best"]["value"] <= 1 and d["best"]["evaluations"] == 2' again.json
job "$one" 'every: 4 steps, patience: 3, metric: loss'
penstock train -q --json --continue --steps 24 job.yaml >again.json # nothing is left to do: it is told as it was
check 'd["best"]["metric"] == "accuracy" and d["best"]["value"] <= 1' again.json
job "$one" 'every: 4 steps, patience: 3, metric: accuracy'

# ---- replicas
job "$two" 'every: 4 steps, patience: 3, metric: accuracy' "placement: {replicas: 2}
checkpoint: {dir: kept, every: 5 steps}
outputs: {dir: out, from: best}"
rm -rf kept out
penstock train -q --json job.yaml >again.json
result again.json >again
cmp whole again || die "replicas: $(cat again), expected $(cat whole)"

# ---- what cannot be
rm -rf out
job "$one" 'keep_best: true' 'outputs: {dir: out}'
fails 3 'job.yaml:[0-9:]+ error: evaluation.keep_best: found true, but no folder' "$PENSTOCK" train job.yaml
job "$one" 'keep_best: 0' 'checkpoint: {dir: kept}
outputs: {dir: out, from: best}'
sed 's/epochs: 10/learning_rate: plateau/; /^evaluation/d; /^outputs/d' job.yaml >plateau.yaml
fails 3 'train.learning_rate: found plateau, but no evaluations' "$PENSTOCK" train plateau.yaml
fails 3 'outputs.from: found best, but no evaluation that keeps it' "$PENSTOCK" train job.yaml
fails 3 'outputs.from: found best, but no evaluation that keeps it' \
    "$PENSTOCK" train job.yaml --set evaluation.keep_best=false
fails 2 'evaluation.keep_best: found "yes", expected true or false' \
    "$PENSTOCK" train job.yaml --set evaluation.keep_best=yes
job "$one" 'metric: accuracy' 'outputs: {dir: other}'
sed -i 's/eval: {.*/holdout: 0/' job.yaml
fails 3 'evaluation: found, but no data to evaluate on' "$PENSTOCK" train job.yaml
job "$one" 'metric: accuracy' 'outputs: {dir: other}'
fails 2 'error: --no-eval: found beside .evaluation. of the job' "$PENSTOCK" train --no-eval job.yaml
sed -i 's/softmax_cross_entropy/mean_squared_error/; s/\(train\|eval\)_y/\1_m/' job.yaml
/usr/bin/python3 -c 'import numpy as np
for n in "train", "eval": np.save(n + "_m.npy", np.ones((len(np.load(n + "_y.npy")), 4), np.float32))'
fails 3 'evaluation: found accuracy, but the loss is over no classes' "$PENSTOCK" train job.yaml
