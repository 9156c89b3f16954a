# Tensors between processes of one host go through shared memory (transport: auto) or over gRPC
# (transport: grpc). A training has the same bits both ways: losses, and every byte of the trained
# parameters. Whether memory was shared is seen in the address space of a worker.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 70

start_worker() { # NUMBER
    mkfifo "pipe$1"
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>"pipe$1" 2>"worker$1.log" &
    workers[$1]=$!
    read -r "ports[$1]" <"pipe$1"
}

job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 4, steps: 60}
devices:
  - {name: a, threads: 1, memory: 1GiB, host: "127.0.0.1:${ports[1]}"}
  - {name: b, threads: 1, memory: 1GiB, host: "127.0.0.1:${ports[2]}"}
placement: {strategy: round_robin}
pipeline: {schedule: 1f1b, transport: $2}
END
}

# train JOB: losses, the parameters, and whether a worker had a ring meanwhile
train() {
    "$PENSTOCK" train --json "$1.yaml" --save "$1.safetensors" >"$1.json" 2>messages &
    local training=$! found=no
    while kill -0 "$training" 2>/dev/null; do
        if grep -qs 'memfd:penstock-ring' "/proc/${workers[1]}/maps"; then found=yes; fi
        sleep 0.01
    done
    wait "$training" || die "$1: $(cat messages)"
    shared[$1]=$found
}

declare -A workers ports shared
trap 'kill "${workers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
start_worker 1
start_worker 2
for transport in auto grpc; do
    job "$transport" "$transport"
    train "$transport"
done
[ "${shared[auto]}" = yes ] || die 'auto: no memory was shared'
[ "${shared[grpc]}" = no ] || die 'grpc: memory was shared'
losses='" ".join(repr(s["loss"]) for s in d["steps"]) + " " + d["parameters_hash"]'
[ "$(json "$losses" <auto.json)" = "$(json "$losses" <grpc.json)" ] || die 'losses differ'
cmp auto.safetensors grpc.safetensors || die 'parameters differ'

# plans know what carries tensors: the ring is cheaper, in the transfers and for the devices
for transport in auto grpc; do
    penstock plan --json "$transport.yaml" >"plan.$transport.json" 2>messages || die "$(cat messages)"
done
figures='[sum(t["seconds"] for t in d["transfers"]), sum(v["load_seconds"] for v in d["devices"])]'
python3 -c 'import sys
auto, grpc = (eval(text) for text in sys.argv[1:])
assert all(a < g for a, g in zip(auto, grpc)), (auto, grpc)' \
    "$(json "$figures" <plan.auto.json)" "$(json "$figures" <plan.grpc.json)" ||
    die 'plans do not tell shared memory from gRPC'

job odd pigeons
fails 3 "pipeline.*pigeons.*auto.*grpc" "$PENSTOCK" train odd.yaml

kill -TERM "${workers[@]}"
for worker in "${workers[@]}"; do
    wait "$worker" || die 'a worker that is told to end does not end well'
done
