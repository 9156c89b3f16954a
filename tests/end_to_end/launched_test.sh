# Tasks as Slurm, MPI or Kubernetes start them, here by a shell: they find each other in a folder,
# train with the numbers of one device, take over from each other, and end together.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 70

# job NAME DEVICES [MORE]
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
  eval: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 4, epochs: 2}
devices: [$2]
placement: {strategy: round_robin}
${3:-}
END
}
policy='recovery: {on_loss: replan, grace: 0.5 s, lease: 3 s}'
job one '{name: a, threads: 1}'
job kept '{name: n, per: task, threads: 1}' "$policy
checkpoint: {dir: kept, every: 2 steps}"

penstock train one.yaml --json >one.json 2>messages || die "$(cat messages)"
hash=$(json 'd["parameters_hash"]' <one.json)

# start COUNT VERB JOB [OPTION...]: tasks; FAIL_R is task R's failpoint. Sets `codes`, and leaves NAME.out.R, NAME.err.R
start() {
    local count=$1 verb=$2 name=$3 r pids=() code
    shift 3
    for ((r = 0; r < count; r++)); do
        fail=FAIL_$r
        PENSTOCK_RANK=$r PENSTOCK_SIZE=$count PENSTOCK_FAILPOINT=${!fail:-} \
            timeout 50 "$PENSTOCK" "$verb" "$name.yaml" --launched "$@" >"$name.out.$r" 2>"$name.err.$r" &
        pids+=($!)
    done
    codes=
    for r in "${pids[@]}"; do
        code=0
        wait "$r" || code=$?
        codes="$codes$code "
    done 2>/dev/null
}

# ended NAME CODES [TASK]: the exit codes; and task TASK, or `any`, printed the hash of one device
ended() {
    [ "$codes" = "$2 " ] || die "$1: exit codes $codes, expected $2: $(cat kept.err.*)"
    [ -z "${3:-}" ] || cat kept.out.${3/any/[0-9]} 2>/dev/null | grep -q "\"parameters_hash\": \"$hash\"" ||
        die "$1: other numbers than one device: $(cat kept.err.*)"
    ! pgrep -f "$PENSTOCK train kept.yaml" >left || die "$1: a process is left: $(cat left)"
}

# ---- three tasks train as one device; links have certificates, whose keys are gone afterwards
start 3 train kept --json
ended 'three tasks' '0 0 0' 0
for r in 0 1 2; do [ ! -s "kept.err.$r" ] || die "task $r said: $(cat "kept.err.$r")"; done
for r in 1 2; do [ ! -s "kept.out.$r" ] || die "task $r wrote: $(cat "kept.out.$r")"; done
[ "$(stat -c %a kept/launched)" = 700 ] || die 'others may enter the folder'
[ -z "$(find kept -name '*.key')" ] || die 'keys are left'
# started again it has nothing to do, by the same folder, whatever an earlier start left in it
start 3 train kept --json
ended 'a training that is done' '0 0 0'
check 'd["steps"] == []' kept.out.0

# ---- eval over the same tasks, predict in one of them
start 2 eval kept --json
[ "$codes" = '0 0 ' ] || die "eval: $codes: $(cat kept.err.*)"
penstock eval one.yaml --json >eval.json 2>/dev/null
check "d['loss'] == $(json 'd["loss"]' <eval.json)" kept.out.0
start 2 predict kept --output rows.csv
[ "$codes" = '0 0 ' ] || die "predict: $codes: $(cat kept.err.*)"
penstock predict one.yaml --output one.csv 2>/dev/null
cmp rows.csv one.csv || die 'predict: other outputs than one device'

# ---- the task that coordinates is killed; a worker; each at the start
killed() { # WHAT CODES TASK
    rm -rf kept
    start 3 train kept --json
    ended "$1" "$2" "$3"
}
FAIL_0=task.gathered:1:kill killed 'the coordinator before it begins' '137 0 0' 1
FAIL_2=worker.loaded:1:kill killed 'a worker at the start' '0 0 137' 0

# ---- a mistake of one task ends all, with its reason and code
rm -rf kept
job kept '{name: n, per: task, threads: 1, memory: 1KiB}' "$policy
checkpoint: {dir: kept}"
begun=$(date +%s)
start 3 train kept
[ "$codes" = '5 5 5 ' ] || die "nothing fits: $codes: $(cat kept.err.*)"
grep -q 'ends with code 5, as task 0 on .*memory\|ends with code 5, as task 0' kept.err.2 || die "$(cat kept.err.2)"
[ $(($(date +%s) - begun)) -le 40 ] || die 'nothing fits: it takes long to say so'

# two tasks with one number
job kept '{name: n, per: task, threads: 1}' "$policy
pipeline: {rendezvous_timeout: 8 s}
checkpoint: {dir: alike}"
PENSTOCK_RANK=0 PENSTOCK_SIZE=3 timeout 50 "$PENSTOCK" train kept.yaml --launched 2>first.err &
first=$!
until [ -e alike/launched/train/task.0000 ]; do sleep 0.05; done
PENSTOCK_RANK=0 PENSTOCK_SIZE=3 fails 3 'two tasks are number 0 of 3: process [0-9]+ on .* and process' \
    "$PENSTOCK" train kept.yaml --launched
code=0
wait "$first" || code=$?
[ "$code" -eq 3 ] || die "the first of two alike: $code: $(cat first.err)"
grep -q 'ends with code 3, as task 0 on .*two tasks are number 0' first.err || die "$(cat first.err)"

# ---- told to end: a checkpoint is kept, all end with code 6, and a further start goes on
rm -rf kept
job kept '{name: n, per: task, threads: 1}' "$policy
checkpoint: {dir: kept, every: 2 epochs}"
for r in 0 1 2; do
    PENSTOCK_RANK=$r PENSTOCK_SIZE=3 PENSTOCK_FAILPOINT=coordinator.losses:3:sleep=4 \
        timeout 50 "$PENSTOCK" train kept.yaml --launched --json >"kept.out.$r" 2>"kept.err.$r" &
    pid[r]=$!
done
until grep -q '"step": 2' kept.out.0; do sleep 0.05; done
kill -TERM "$(pgrep -P "${pid[0]}")" "$(pgrep -P "${pid[1]}")" "$(pgrep -P "${pid[2]}")"
codes=
for r in 0 1 2; do
    code=0
    wait "${pid[r]}" || code=$?
    codes="$codes$code "
done
ended 'told to end' '6 6 6'
grep -q 'started again, it goes on' kept.err.0 || die "$(cat kept.err.0)"
start 3 train kept --json
ended 'after it was told to end' '0 0 0' any
! grep -q '"step": 1,' kept.out.* || die 'begins with the first step again'

# ---- what is wrong is named
alone() { # CODE PATTERN JOB [OPTION...]
    local code=$1 pattern=$2
    shift 2
    fails "$code" "$pattern" "$PENSTOCK" train --launched "$@"
}
job per '{name: n, per: task, host: "10.0.0.1:7"}'
fails 3 "per.yaml:.*host: found \"10.0.0.1:7\" together with per: task" "$PENSTOCK" plan per.yaml
alone 2 'nothing in the environment says which task this is' kept.yaml
PENSTOCK_RANK=1 alone 2 'found PENSTOCK_RANK=1 in the environment, but not how many' kept.yaml
PENSTOCK_SIZE=4 alone 2 'found PENSTOCK_SIZE=4 in the environment, but not which task' kept.yaml
PENSTOCK_RANK=4 PENSTOCK_SIZE=4 alone 2 'PENSTOCK_RANK in the environment: found 4, expected less than' kept.yaml
PENSTOCK_RANK=x PENSTOCK_SIZE=4 alone 2 'found "x", expected a number from 0' kept.yaml
PENSTOCK_RANK=0 PENSTOCK_SIZE=2 alone 3 "found 'a', which is of no task" one.yaml
PENSTOCK_RANK=0 PENSTOCK_SIZE=2 PENSTOCK_ADDRESS=here alone 3 'PENSTOCK_ADDRESS' kept.yaml
job nowhere '{name: n, per: task}'
PENSTOCK_RANK=0 PENSTOCK_SIZE=2 alone 3 'no folder for checkpoints, in which tasks find each other' nowhere.yaml
PENSTOCK_RANK=0 PENSTOCK_SIZE=2 fails 2 'expected .*--launched: each task would do' "$PENSTOCK" train kept.yaml
fails 2 '--tasks: found without --launched' "$PENSTOCK" train kept.yaml --tasks 3
fails 2 "without devices of tasks" "$PENSTOCK" plan one.yaml --tasks 3
rm -rf public && mkdir -p public/launched && chmod 755 public/launched
PENSTOCK_RANK=0 PENSTOCK_SIZE=1 alone 3 'public/launched: found a folder of user .* mode 0755, expected' kept.yaml --checkpoint public
PENSTOCK_RANK=0 PENSTOCK_SIZE=1 alone 3 "cannot create the folder 'one.yaml'" kept.yaml --checkpoint one.yaml
# tasks that do not come, where nobody goes on without them
job alone '{name: n, per: task, threads: 1}' 'recovery: {on_loss: wait}
pipeline: {rendezvous_timeout: 1 s}
checkpoint: {dir: lonely}'
PENSTOCK_RANK=0 PENSTOCK_SIZE=3 alone 6 '2 of 3 tasks, task 1 first, have not come within 1 s' alone.yaml
# a folder that hangs ends the task, which nobody could end otherwise
job hangs '{name: n, per: task, threads: 1}' 'recovery: {on_loss: wait, lease: 1 s}
pipeline: {rendezvous_timeout: 1 s}
checkpoint: {dir: hung}'
PENSTOCK_FAILPOINT=task.folder_asked:3:sleep=30 PENSTOCK_RANK=1 PENSTOCK_SIZE=2 \
    alone 9 "the folder 'hung' has not answered for 1 s" hangs.yaml

penstock plan kept.yaml --tasks 3 --json >plan.json
check '[x["name"] for x in d["devices"]] == ["n0", "n1", "n2"]' plan.json
