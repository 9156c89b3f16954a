# Workers compute again what others did: an honest training has its own bits, and a worker of which one bit flips once is named:
# by a third where there are three workers, by computing it twice where there are two. Off where nobody has memory.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 70

declare -A pid port
start_worker() { # NAME [FAILPOINT]
    mkfifo "pipe.$1"
    PENSTOCK_FAILPOINT=${2:-} "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>"pipe.$1" 2>"worker.$1" &
    pid[$1]=$!
    read -r port[$1] <"pipe.$1"
    rm "pipe.$1"
}
trap 'kill "${pid[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
# job FILE MEMORY WORKER...: of every fourth step a part is computed again
job() {
    local file=$1 memory=$2 name
    shift 2
    cat >"$file" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 2, epochs: 4}
placement: {strategy: round_robin}
recovery: {audit: 4}
pipeline: {schedule: 1f1b}
devices:
END
    for name; do echo "  - {name: $name, threads: 1, memory: $memory, host: \"127.0.0.1:${port[$name]}\"}" >>"$file"; done
}
numbers() { # JOB [OPTION...]
    timeout 60 "$PENSTOCK" train --json "$@" 2>messages >numbers.json || die "train $*: $(cat messages)"
    json '" ".join(repr(s["loss"]) for s in d["steps"]) + " " + d["parameters_hash"]' <numbers.json
}

# a worker that does not give what it kept costs that audit, and what comes behind goes on
start_worker silent worker.evidence_asked:1:fail
start_worker other
job silent.yaml 1GiB silent other
timeout 60 "$PENSTOCK" train --json --set recovery.lease=1s silent.yaml >silent.json 2>silent &
silent=$!

for name in a b c; do start_worker $name; done
job three.yaml 1GiB a b c
expected=$(numbers three.yaml --set recovery.audit=0)
[ "$(numbers three.yaml)" = "$expected" ] || die 'an audit changes numbers'
grep -qE 'computed again by others [4-5] times, with the same bits' messages || die "no audits: $(cat messages)"
penstock plan three.yaml | grep -qx 'audit        every 4 steps, of all devices' || die 'the plan says nothing of audits'

# a bit flips once, in what is computed again: one among three, where a third agrees with the second
# flip NODE PATTERN WORKER...: of worker `a`, in the NODEth node that it runs
flip() {
    local node=$1 pattern=$2
    shift 2
    kill "${pid[a]}"
    wait "${pid[a]}" || true
    start_worker a "executor.node_run:$node:fail"
    job flipped.yaml 1GiB "$@"
    fails 8 "step 4: worker 1 \(127.0.0.1:${port[a]}\) computed stage [0-9] of microbatch [01] wrongly: $pattern" \
        "$PENSTOCK" train -q --save flipped.safetensors flipped.yaml
    [ ! -e flipped.safetensors ] || die 'what it trained is kept'
    grep -q 'failpoint executor.node_run' worker.a || die 'no bit was flipped'
}
flip 48 'from the same bytes worker 2 .* came to others, and so did a third' a b c
flip 122 'from the same bytes it came to others the next time' a b

# nobody has the memory: it says so, and trains on
job small.yaml 512KiB a b
penstock plan small.yaml | grep -qx 'audit        off: no worker has memory left for what another does' || die "$(penstock plan small.yaml)"
numbers small.yaml >small.numbers
grep -q '^nobody checks what workers compute: none has memory left for what another does' messages || die "$(cat messages)"

wait "$silent" || die "a worker that gives nothing: $(cat silent)"
grep -qE '^1 times nobody could compute again .* worker 1 .* does not answer' silent || die "nothing was given up: $(cat silent)"
grep -qE 'computed again by others [1-3] times' silent || die "nothing was audited later: $(cat silent)"
