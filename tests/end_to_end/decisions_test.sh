# What a training decides while it runs is state: which evaluation was best, patience, the rate of a plateau, the moving
# average. Killed after each of its steps, alone or as two replicas, it ends after the same step with the same bits.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/four_classes.sh"

# job NAME EVERY DEVICES...: 6 steps an epoch, 60 in all
job() {
    cat >"$1.yaml" <<YAML
version: 1
model:
  inputs: {x: {shape: [12]}}
  layers: [dense: {units: 32, activation: relu}, dropout: {rate: 0.1}, dense: {units: 4}]
data:
  train: {format: npy, inputs: {x: train_x.npy}, labels: train_y.npy}
  eval: {format: npy, inputs: {x: eval_x.npy}, labels: eval_y.npy}
train:
  loss: softmax_cross_entropy
  optimizer: {adam: {lr: 0.05}}
  learning_rate: {plateau: {patience: 1, factor: 0.5, threshold: 0.02}}
  average: {decay: 0.8, from: 3 steps}
  batch: 16
  microbatches: 2
  lanes: 2
  epochs: 10
  seed: 3
evaluation: {every: 2 steps, patience: 4, min_delta: 0.01, metric: loss, metrics: [f1, auc]}
checkpoint: {dir: kept, every: $2}
outputs: {dir: out, from: best}
devices: [$3]
YAML
    [ -z "${4:-}" ] || echo "$4" >>"$1.yaml"
}

# result FILE: where it ended, what was best, what is left
result() {
    json "(d['checkpoint']['step'], d['best'], d['evaluation']['loss'], d['parameters_hash'])" <"$1"
    sha256sum <out/parameters.safetensors
}

# What is compared is worth it: it ended early, its rate fell, and the best is neither the first nor the last.
job one '2 steps' '{name: a, threads: 1}'
penstock train -q --json one.yaml >run.json
result run.json >whole
json "[(s['step'], s['loss'], s['learning_rate'], s.get('evaluation')) for s in d['steps']]" <run.json >steps
last=$(json "d['steps'][-1]['step']" <run.json)
check '6 < d["steps"][-1]["step"] < 40 and len({s["learning_rate"] for s in d["steps"]}) >= 3' run.json
check '2 < d["best"]["step"] < d["steps"][-1]["step"] and d["best"]["since_best"] == 4' run.json

# Killed when a process is at PLACE for the N-th time, with a checkpoint after each step: it gets at most N steps further,
# or fewer where checkpoints are not yet there, and goes on from nearly every step.
job alone '1 step' '{name: a, threads: 1}'
job replicas '1 step' '{name: a, threads: 1, host: localhost}, {name: b, threads: 1, host: localhost}' \
    'placement: {replicas: 2}'
for run in 'alone manifest_published 1' 'alone manifest_written 2' 'alone pruned 3' \
    'replicas losses 9' 'replicas manifest_published 1' 'replicas shards_durable 4'; do
    read -r name place times <<<"$run"
    rm -rf kept out
    kills=0
    while ! PENSTOCK_FAILPOINT=coordinator.$place:$times:kill \
        penstock train -q --json --continue "$name.yaml" >again.json 2>messages; do
        kills=$((kills + 1))
        [ "$kills" -le "$last" ] || die "$run: it gets no further: $(cat messages)"
    done
    [ "$kills" -ge $((last / (2 * times))) ] || die "$run: killed $kills times in $last steps: $(cat messages)"
    result again.json >again
    cmp whole again || die "$run, killed $kills times: $(cat again), expected $(cat whole)"
done

# A worker that is killed is replaced, and steps are computed again.
for updates in 25 40; do
    rm -rf kept out
    sed 's/every: 1 step}/every: 3 steps}/' replicas.yaml >lost.yaml
    echo 'recovery: {on_loss: wait}' >>lost.yaml
    PENSTOCK_FAILPOINT=worker.updated:$updates:kill penstock train -q --json lost.yaml >again.json 2>messages ||
        die "a worker is lost: $(cat messages)"
    check 'd["measured"]["recoveries"] > 0' again.json
    result again.json >again
    cmp whole again || die "a worker is lost at $updates: $(cat again), expected $(cat whole)"
    json "[(s['step'], s['loss'], s['learning_rate'], s.get('evaluation')) for s in d['steps']]" <again.json | cmp - steps ||
        die "a worker is lost at $updates: other steps"
done
