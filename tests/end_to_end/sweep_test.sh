# sweep: runs are those of train --set; what is killed goes on; the worst end early, whatever ran
# when; tasks share the runs; nothing is left behind.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 24

cat >job.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
  eval: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.01}}, batch: 8, steps: 40}
devices: [{name: a, threads: 1}]
checkpoint: {dir: kept, every: 2 steps}
END
cat >sweep.yaml <<'END'
version: 1
job: job.yaml
dir: runs
grid: {train.optimizer.sgd.lr: [0.1, 0.001, 1e30], train.batch: [8, 12]}
parallel: 3
END
sweep() {
    timeout 120 "$PENSTOCK" sweep --json "$@" 2>messages
}
hashes() { # FILE: by name
    json 'sorted((r["name"], r["state"], r.get("parameters_hash")) for r in d["runs"])' <"$1"
}

sweep sweep.yaml >all.json || die "the sweep: $(cat messages)"
check '[r["name"] for r in d["runs"]][0].startswith("lr=0.1,") and len(d["runs"]) == 6' all.json
check '[r["evaluation"]["loss"] for r in d["runs"][:4]] == sorted(r["evaluation"]["loss"] for r in d["runs"][:4])' all.json
check '[r["state"] for r in d["runs"]] == ["done"] * 4 + ["not finite"] * 2' all.json
penstock train -q --json --checkpoint own job.yaml --set train.optimizer.sgd.lr=0.1 --set train.batch=12 >own.json
[ "$(json 'd["parameters_hash"]' <own.json)" = \
    "$(json '[r["parameters_hash"] for r in d["runs"] if r["name"] == "lr=0.1,batch=12"][0]' <all.json)" ] ||
    die "a run is not that of train --set"

# again: nothing runs
sweep sweep.yaml >again.json
cmp -s all.json again.json || die "the second time says something else"
[ ! -s messages ] || die "something ran again: $(cat messages)"
penstock sweep --show sweep.yaml >table
[ "$(wc -l <table)" -eq 7 ] && grep -q '^lr=0.1,batch=8 .* done$' table || die "the table: $(cat table)"
# another job is another sweep
sed -i 's/seed: 1/seed: 2/' job.yaml
fails 3 'is of another job: .*job.txt is what it was; --overwrite' "$PENSTOCK" sweep sweep.yaml
sed -i 's/seed: 2/seed: 1/' job.yaml

# killed and stopped ones go on, to the same numbers; children end with them
sed -i 's/1e30/0.02/; s/dir: runs/dir: long/' sweep.yaml
sed -i 's/steps: 40/steps: 4000/; s/every: 2 steps/every: 100 steps/' job.yaml
sweep sweep.yaml >whole.json || die "the long sweep: $(cat messages)"
sed -i 's/dir: long/dir: cut/' sweep.yaml
for signal in KILL INT; do
    "$PENSTOCK" sweep -q sweep.yaml >out 2>messages &
    parent=$!
    for _ in $(seq 200); do
        children=$(pgrep -P $parent || true)
        [ -n "$children" ] && grep -qs checkpoint cut/*/log.jsonl && break
        sleep 0.05
    done
    kill -$signal $parent
    wait $parent 2>/dev/null && die "$signal: the sweep says all is well"
    for child in $children; do
        for _ in $(seq 200); do
            kill -0 "$child" 2>/dev/null || break
            sleep 0.05
        done
        kill -0 "$child" 2>/dev/null && die "$signal: $child is left"
    done
done
grep -q 'the same command goes on' messages || die "stopped: $(cat messages)"
sweep sweep.yaml >cut.json || die "the sweep that was cut: $(cat messages)"
[ "$(hashes whole.json)" = "$(hashes cut.json)" ] || die "it went on to other numbers"

# tasks: each run once, by one of them
sed -i 's/steps: 4000/steps: 20/' job.yaml
sed -i 's/dir: cut/dir: tasks/' sweep.yaml
sweep --task 1/4 sweep.yaml >/dev/null
[ "$(ls tasks | wc -l)" -eq 2 ] || die "task 1 of 4 does $(ls tasks)"
SLURM_ARRAY_TASK_ID=8 SLURM_ARRAY_TASK_MIN=7 SLURM_ARRAY_TASK_COUNT=2 sweep sweep.yaml >/dev/null
[ "$(ls tasks | wc -l)" -eq 5 ] || die "the array's second task did not do the other half: $(ls tasks)"
fails 2 'task: found "5/4", expected I/N' "$PENSTOCK" sweep --task 5/4 sweep.yaml

# the worst half ends early, the same with any number at once; mistakes are told before any run
cat >stop.yaml <<'END'
version: 1
job: job.yaml
dir: stop1
list: [{train.optimizer: "{sgd: {lr: 0.1}}"}, {train.optimizer.sgd.lr: 0.0001}, {train.optimizer.sgd.lr: 0.05}, {train.seed: 3, train.batch: 6}]
sort: loss
stop: {worst: 0.5, at: 0.5}
END
sweep stop.yaml >stop1.json || die "stop: $(cat messages)"
sed 's/stop1/stop3/' stop.yaml >stop3.yaml
sweep -j 3 stop3.yaml >stop3.json
[ "$(hashes stop1.json)" = "$(hashes stop3.json)" ] || die "what ends early depends on what runs at once"
check 'sorted(r["state"] for r in d["runs"]) == ["done"] * 2 + ["stopped early"] * 2' stop1.json
check '{r["step"] for r in d["runs"] if r["state"] == "stopped early"} == {10}' stop1.json
# evaluations while they run are part of the runs
sed 's/stop1/stop4/' stop.yaml >stop4.yaml
cp job.yaml kept.yaml
echo 'evaluation: {every: 4 steps, keep_best: 0}' >>job.yaml
sweep stop4.yaml >stop4.json || die "stop, with evaluations: $(cat messages)"
check 'sorted(r["state"] for r in d["runs"]) == ["done"] * 2 + ["stopped early"] * 2' stop4.json
# sorted by a metric that only evaluations tell
printf '%s\n' 'version: 1' 'job: job.yaml' 'dir: metrics' 'grid: {train.optimizer.sgd.lr: [0.0001, 0.1, 0.05]}' 'sort: f1' >metrics.yaml
sed -i 's/keep_best: 0/keep_best: 0, metrics: f1/' job.yaml
sweep metrics.yaml >metrics.json || die "by a metric: $(cat messages)"
check '(lambda f: f == sorted(f, reverse=True) and f[0] > f[2])([r["evaluation"]["f1"] for r in d["runs"]])' metrics.json
penstock sweep --show metrics.yaml >table
head -1 table | grep -qE '^run +loss +f1 ' || die "$(cat table)"
echo 'stop: {worst: 0.5}' >>metrics.yaml
fails 3 'metrics.yaml:5:[0-9]+: error: sort: found f1 beside stop' "$PENSTOCK" sweep metrics.yaml
# what they end is done, and is not run again
printf '%s\n' 'version: 1' 'job: job.yaml' 'dir: ended' 'grid: {train.seed: [1, 2]}' >ended.yaml
sed -i 's/every: 4 steps/every: 4 steps, patience: 1, min_delta: 100/' job.yaml
sweep ended.yaml >ended.json || die "ended by evaluations: $(cat messages)"
check '[(r["state"], r["step"]) for r in d["runs"]] == [("done", 8)] * 2' ended.json
find ended -name log.jsonl -exec md5sum {} + >logs
sweep ended.yaml >ended.json
md5sum --quiet -c logs || die 'what evaluations ended is run again'
mv kept.yaml job.yaml
fails 3 'stop: found in a sweep of 2 tasks' "$PENSTOCK" sweep --task 1/2 stop.yaml
sed 's/train.seed: 3/train.sed: 3/' stop.yaml >wrong.yaml
fails 3 '^--set train.sed=3: error: train: unknown key "sed"' "$PENSTOCK" sweep wrong.yaml

# a starter that ignores how its children end does not have failures look like successes
sed 's/threads: 1/threads: 1, memory: 1KiB/' job.yaml >small.yaml
sed -e 's/job: job.yaml/job: small.yaml/' -e 's/dir: tasks/dir: ignored/' sweep.yaml >ignored.yaml
code=0
/usr/bin/python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$PENSTOCK" sweep ignored.yaml >out 2>messages || code=$?
[ "$code" -eq 5 ] || die "ends of children are ignored: exit code $code, expected 5: $(cat messages)"
