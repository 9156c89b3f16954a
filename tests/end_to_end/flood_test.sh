# A flood of connections that say nothing: a worker that has no file descriptor left turns callers
# away, and takes links again once the flood is over.
. tests/end_to_end/common.sh
trap 'kill $(jobs -p) 2>kill.log || :; wait; rm -rf "$work"' EXIT

# start_worker LIMIT...: starts one with these arguments of `ulimit`, and sets `started` and `port`
start_worker() {
    rm -f pipe
    mkfifo pipe
    (
        ulimit "$@"
        exec "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>pipe 2>worker.log
    ) &
    started=$!
    read -r port <pipe
}

# flood COUNT: so many connections that say nothing, for two seconds
flood() {
    python3 - "$port" "$1" <<'END_OF_FLOOD'
import socket, sys, time
port, count = map(int, sys.argv[1:])
calls = []
for _ in range(count):
    call = socket.socket()
    call.settimeout(20)
    call.connect(("127.0.0.1", port))
    calls.append(call)
time.sleep(2)
END_OF_FLOOD
}

# trains: the worker takes the link of a training, and trains
trains() {
    cat >job.yaml <<END_OF_JOB
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 4, epochs: 1}
devices: [{name: a, threads: 1, memory: 1GiB, host: "127.0.0.1:$port"}]
pipeline: {rendezvous_timeout: 10s}
END_OF_JOB
    train_losses job.yaml >/dev/null
}

# no limit can be raised: callers are turned away, and that is told in a few lines
start_worker -n 128
flood 500
trains
grep -q 'no file descriptor is left: callers were turned away ([0-9]* so far)' worker.log || die "$(cat worker.log)"
[ "$(grep -c 'turned away' worker.log)" -le 10 ] || die "too many words: $(cat worker.log)"
kill "$started"

# the soft limit is raised: nobody is
start_worker -Sn 128
[ "$(awk '/^Max open files/ { print $4 }' "/proc/$started/limits")" -gt 1000 ] || die 'the limit was not raised'
flood 500
! grep 'turned away' worker.log || die 'callers were turned away below the limit'
trains
