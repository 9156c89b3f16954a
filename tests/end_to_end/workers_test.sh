# Training over threads, processes and workers: the numbers of one device, and what is said when a
# worker is missing or dies.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 70

# job NAME DEVICES [MORE [LABELS]]: 70 examples, so that the last batch of an epoch is short
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: ${4:-labels}.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 4, epochs: 2}
devices: [$2]
placement: {strategy: round_robin}
${3:-}
END
}

# numbers JOB: losses and the hash of the parameters
numbers() {
    timeout 120 "$PENSTOCK" train --json "$@" 2>messages >numbers.json || die "train $*: $(cat messages)"
    json '" ".join(repr(s["loss"]) for s in d["steps"]) + " " + d["parameters_hash"]' <numbers.json
}

# same JOB WHAT: the numbers of one device
same() {
    [ "$(numbers "$1")" = "$expected" ] || die "$2 differ from one device"
}

device() { # NAME [MORE]
    printf '{name: %s, threads: 1%s}, ' "$1" "${2:-}"
}
own=', host: localhost'

# ---- threads of this process, processes that the command starts, some of each
job one "$(device a)"
expected=$(numbers one.yaml)
job threads "$(device a)$(device b)$(device c)"
same threads.yaml 'three threads'
job unequal '{name: a, threads: 1}, {name: b, threads: 3}, {name: c, threads: 2}'
same unequal.yaml 'devices of 1, 3 and 2 threads'
job processes "$(device a "$own")$(device b "$own")"
same processes.yaml 'two processes'
job both "$(device a)$(device b "$own")$(device c)"
same both.yaml 'threads and a process'

# ---- a plan that is given
penstock plan processes.yaml -o plan.yaml >/dev/null
same plan.yaml 'the plan of two processes'

# ---- workers that are there already serve one training after another
start_worker() { # NAME [OPTION...]: sets `started` and `port`
    local name=$1
    shift
    mkfifo "$name.pipe"
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 "$@" 9>"$name.pipe" 2>"$name.log" &
    started=$!
    read -r port <"$name.pipe"
}
there() { # PORT
    printf ', memory: 1GiB, host: "127.0.0.1:%s"' "$1"
}
start_worker first
first=$started first_port=$port
start_worker second
second=$started second_port=$port
trap 'kill $first $second 2>/dev/null || true; rm -rf "$work"' EXIT
job workers "$(device a "$(there "$first_port")")$(device b "$(there "$second_port")")$(device c)" \
    'pipeline: {rendezvous_timeout: 2 s}'
same workers.yaml 'two workers and a thread'
same workers.yaml 'two workers and a thread, the second time,'
job shared "$(device a "$(there "$first_port")")$(device b "$(there "$first_port")")"
same shared.yaml 'two devices of a worker'

# ---- a worker of another build is refused, by name
name=$(grep -aoE "$("$PENSTOCK" --version | cut -d' ' -f2)\\+[0-9a-f]{8}" "$PENSTOCK" | head -1)
[ -n "$name" ] || die 'the command does not say which build it is'
sed "s/$name/${name%+*}+00000000/" "$PENSTOCK" >another
chmod +x another
mine=$PENSTOCK
PENSTOCK=$work/another start_worker other
job mixed "$(device a)$(device b "$(there "$port")")" 'pipeline: {rendezvous_timeout: 5 s}'
fails 6 "worker 2 runs build '${name%+*}\+00000000[^']*', the coordinator '${name%+*}\+" "$mine" train -q mixed.yaml
kill "$started"
wait "$started" || die 'a worker of another build does not end well'

# ---- one is missing: it is named with its address, in time; the other serves on
kill $second
wait $second || die 'a worker that is told to end does not end well'
fails 6 "not there after 2 s: worker [0-9] \(127.0.0.1:$second_port\)" "$PENSTOCK" train --quiet workers.yaml
same shared.yaml 'two devices of a worker, after a rendezvous that failed,'
kill $first
wait $first || die 'a worker that is told to end does not end well'

# ---- one is killed: the run ends with its name, and says who waited for whom; none is left
start_long() { # sets `command` and `workers`
    { sed "s/epochs: 2/epochs: 100000/" processes.yaml; echo "recovery: {on_loss: stop}"; } >long.yaml
    "$PENSTOCK" train --quiet long.yaml 2>long.err &
    command=$!
    workers=
    for _ in $(seq 200); do
        workers=$(pgrep -P $command || true)
        [ "$(wc -w <<<"$workers")" -ne 2 ] || break
        sleep 0.1
    done
    sleep 2
}
none_left() {
    local alive
    for _ in $(seq 100); do
        alive=
        for worker in $workers; do
            ! kill -0 "$worker" 2>/dev/null || alive=$worker
        done
        [ -n "$alive" ] || return 0
        sleep 0.1
    done
    die "worker $alive is left: $1"
}
start_long
kill -9 "$(tail -1 <<<"$workers")"
code=0
wait $command || code=$?
[ $code -eq 6 ] || die "exit code $code after a worker was killed, expected 6: $(cat long.err)"
grep -qE 'lost worker [12] \(127.0.0.1:[0-9]+\), which runs stages [0-9]' long.err || die "$(cat long.err)"
grep -qE "worker [12] .*: device '[ab]' (waits for|runs|is about|has nothing)" long.err || die "$(cat long.err)"
none_left 'a worker was killed'

# ---- one is told to end while another waits for it: lost, too
start_long
kill -TERM "$(tail -1 <<<"$workers")"
code=0
wait $command || code=$?
[ $code -eq 6 ] || die "exit code $code after a worker was ended, expected 6: $(cat long.err)"
grep -q 'the worker was told to end' long.err || die "$(cat long.err)"
grep -qE 'worker [12] \(127.0.0.1:[0-9]+\), (which runs )?stages [0-9]' long.err || die "$(cat long.err)"
none_left 'a worker was ended'

# ---- the command is killed: its workers end
start_long
kill -9 $command
{ wait $command || true; } 2>/dev/null
none_left 'the command was killed'

# ---- what does not fit is said before anything starts
sed 's/threads: 1, host/threads: 1, memory: 4KiB, host/g' processes.yaml >small.yaml
fails 5 "device 'a' would need .* may use 4.00 KiB" "$PENSTOCK" train --quiet small.yaml
