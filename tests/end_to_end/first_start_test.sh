# A worker that comes to the first start of a training and dies in it is a loss like any other: the
# others go on with the numbers of one device, and nobody waits for the rendezvous to end.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 70

# job NAME DEVICES [MORE]
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 16, microbatches: 4, epochs: 1}
devices: [$2]
placement: {strategy: round_robin}
${3:-}
END
}

start_worker() { # NAME [FAILPOINT]: sets `started` and `port`
    mkfifo "$1.pipe"
    PENSTOCK_FAILPOINT=${2:-} "$PENSTOCK" worker --listen 127.0.0.1:0 --store . --announce 9 9>"$1.pipe" 2>"$1.log" &
    started=$!
    read -r port <"$1.pipe"
}

job one '{name: a, threads: 1}'
penstock train one.yaml --json >one.json 2>messages || die "$(cat messages)"

# lost PLACE POLICY CODE: a worker of two is killed where it first comes to PLACE
lost() {
    local code=0 first here
    rm -rf kept ./*.pipe
    start_worker stays
    first=$started here=$port
    start_worker dies "$1:1:kill"
    job two "{name: a, threads: 1, memory: 1GiB, host: \"127.0.0.1:$here\"},
        {name: b, threads: 1, memory: 1GiB, host: \"127.0.0.1:$port\"}" \
        "recovery: {on_loss: $2, grace: 0.3 s}
checkpoint: {dir: kept}"
    timeout 30 "$PENSTOCK" train two.yaml --json >two.json 2>messages || code=$?
    [ "$code" -eq "$3" ] || die "$1, $2: exit code $code, expected $3: $(cat messages)"
    grep -q "lost worker 2 .*127.0.0.1:$port" messages || die "$1, $2: said $(cat messages)"
    kill "$first"
    wait "$first" || true
    wait "$started" || true
}

for place in worker.assigned worker.loaded worker.ready; do
    lost "$place" replan 0
    grep -q "goes on without device 'b'" messages || die "$place: $(cat messages)"
    [ "$(json 'd["parameters_hash"]' <two.json)" = "$(json 'd["parameters_hash"]' <one.json)" ] ||
        die "$place: other numbers than one device"
done
lost worker.loaded stop 6

# A worker that never comes to the first start may have a wrong address, also where an earlier training has left the
# folder of checkpoints: the training names it and ends, and does not go on without.
start_worker stays_there
there=$started here=$port
absent() { # ADDRESS OPTION...
    job two "{name: a, threads: 1, memory: 1GiB, host: \"127.0.0.1:$here\"},
        {name: b, threads: 1, memory: 1GiB, host: \"127.0.0.1:$1\"}" \
        "recovery: {on_loss: replan, grace: 0.3 s}
pipeline: {rendezvous_timeout: 2 s}
checkpoint: {dir: kept}"
    fails 6 "worker 2 .127.0.0.1:$1.: connection refused" "$PENSTOCK" train two.yaml "${@:2}"
}
absent 1 --overwrite # of what the trainings above have left
rm -rf kept
absent 1
absent 1 # the first attempt has left no checkpoint
kill "$there"
wait "$there" || true
