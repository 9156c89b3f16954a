# Signals in every state: SIGUSR1 is answered and ends nothing; SIGTERM and SIGINT end what waits for
# a peer that stands still, though it beats, and let finish what gets on. Each case runs in a folder
# of its own, all of them at once; where nobody listened, each would take a minute.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/signals.sh"

job() { # STEPS DEVICES [MORE]
    signal_job "$1" "$2" "$work/reference" \
        "eval: {format: npy, inputs: {input: $work/reference/mlp/inputs.npy}, labels: $work/reference/mlp/labels.npy}" \
        "placement: {strategy: round_robin}
pipeline: {rendezvous_timeout: 60 s}
recovery: {lease: 30 s, progress: 60 s, audit: ${audit:-1000}}
${3:-}"
}
one='{name: a, threads: 1}'

# worker NAME [FAILPOINT]: sets `port` and `worker`
worker() {
    mkfifo "$1.pipe"
    PENSTOCK_FAILPOINT=${2:-} "$PENSTOCK" worker --listen 127.0.0.1:0 --store "$PWD" --announce 9 9>"$1.pipe" 2>"$1.log" &
    worker=$!
    read -r port <"$1.pipe"
}

# A shell ignores SIGINT for what it starts in the background. SIGUSR1 would end the shell itself
# that is about to become the command.
begin() { # ARGUMENT...: trains in the background
    trap '' USR1
    TMPDIR=$PWD env --default-signal=INT "$PENSTOCK" train job.yaml "$@" >steps 2>messages &
    pid=$!
}

# asked ANSWER: SIGUSR1 is answered so
asked() {
    kill -s USR1 "$pid"
    wait_for "$1" messages
}

# ---- a training over two workers, of which one stands still at a failpoint
# stuck NAME FAILPOINT STEPS ANSWER SIGNAL CODES [MORE OF THE JOB]
stuck() {
    local name=$1 still first
    mkdir "$name" && cd "$name"
    worker still "$2"
    still=$worker first=$port
    worker other
    job "$3" "{name: a, threads: 1, host: \"127.0.0.1:$first\"}, {name: b, threads: 1, host: \"127.0.0.1:$port\"}" "${7:-}"
    begin --progress
    wait_for 'failpoint' still.log
    sleep 0.2
    asked "$4"
    kill -s "$5" "$pid"
    if [ "$name" = save ]; then # what is kept is waited for, unless it is wished once more
        wait_for 'stopping: the step under way' messages
        kill -s "$5" "$pid"
    fi
    ends "$pid" "$6" "$5"
    # the worker that stands still hears it, too, and so does that which is left
    kill -s TERM "$still" "$worker"
    ends "$still" 0 'the worker that stands still'
    ends "$worker" 0 'the other worker'
}

# ---- nobody there
waiting() {
    mkdir waiting && cd waiting
    job 3 '{name: a, threads: 1, host: "127.0.0.1:1"}'
    begin
    wait_for 'still waiting' messages
    asked 'no round is under way'
    kill -s INT "$pid"
    ends "$pid" '130 6' INT
}

# ---- while it starts, and plans: whenever the signal comes, it ends or is done
starting() {
    local after
    mkdir starting && cd starting
    job 3 "$one, {name: b, threads: 1, host: localhost}"
    for after in 0 0.05 0.15 0.3; do
        for signal in USR1 TERM; do
            begin
            sleep "$after"
            kill -s "$signal" "$pid" 2>/dev/null || true
            [ "$signal" != USR1 ] || ends "$pid" 0 "USR1 after $after s"
            [ "$signal" = USR1 ] || ends "$pid" '0 6 130 143' "$signal after $after s"
        done
        "$PENSTOCK" worker --listen 127.0.0.1:0 >messages 2>&1 &
        pid=$!
        sleep "$after"
        kill -s USR1 "$pid"
        kill -s TERM "$pid"
        ends "$pid" '0 143' "a worker, TERM after $after s"
    done
}

# ---- what was trained cannot be written
retrying() {
    mkdir retrying && cd retrying
    job 6 "$one" 'checkpoint: {dir: kept, every: 4 steps, retry: 1 min}
outputs: {dir: run1}'
    TMPDIR=$PWD bash -c 'ulimit -S -f 50 && exec "$@"' - "$PENSTOCK" train job.yaml >steps 2> >(cat >messages) &
    pid=$!
    wait_for 'tried again for' messages
    asked 'all steps are done; what was trained cannot be written yet'
    kill -s TERM "$pid"
    ends "$pid" 9 TERM
}

cases=()
run() {
    "$@" &
    cases+=($!)
}
run starting
run waiting
run retrying
run stuck loading worker.described:1:sleep=100 3 'no round is under way' TERM 143
run stuck taking worker.piece_taken:1:sleep=100 3 'no round is under way' INT 130
run stuck step worker.task_done:150:sleep=100 100000 "device 'a' runs" TERM 0 'checkpoint: {dir: kept, every: 2 steps}'
run stuck unkept worker.task_done:150:sleep=100 100000 "device 'a' runs" INT 6
audit=2 run stuck auditing worker.evidence_asked:1:fail 100000 'an audit waits for what worker [12] .* kept: 0 of 0 bytes' TERM 0 'checkpoint: {dir: kept, every: 3 steps}'
run stuck save worker.shard_written:1:sleep=100 4 'no round is under way' TERM 130 'checkpoint: {dir: kept, every: 2 steps}'
run stuck evaluating worker.task_done:18:sleep=100 3 "device 'a' runs" TERM 6
failed=0
for case in "${cases[@]}"; do
    wait "$case" || failed=1
done
[ "$failed" = 0 ] || die 'see above'
