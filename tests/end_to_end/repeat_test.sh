# Same seed, same plan, however busy the machine is: only a search that says that the time limit cut
# it may differ.
. tests/end_to_end/common.sh

loops=()
stop_loops() {
    [ ${#loops[@]} -eq 0 ] || kill "${loops[@]}" 2>/dev/null || true
    loops=()
}
trap 'stop_loops; rm -rf "$work"' EXIT

cat >job.yaml <<END
version: 1
model: {file: reference/resnet18/model.onnx}
data: {train: {format: npy, inputs: {input: reference/resnet18/inputs.npy}, labels: reference/resnet18/labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 16, microbatches: 4}
devices:
  - {name: a, memory: 16MiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}
  - {name: b, memory: 32MiB, threads: 1, flops: 40G, memory_bandwidth: 8GB/s}
  - {name: c, memory: 8MiB, threads: 1, flops: 10G, memory_bandwidth: 8GB/s}
links: [{between: ["^.", "^."], bandwidth: 200MB/s, latency: 20us}]
placement: {time_limit: 500ms, seed: 3}
END

# what a search that is not hurried finds, alone and beside eight that take all they can get
plan() {
    penstock plan job.yaml --time-limit 120s --objective "$1" --json >"$2"
    check 'd["cut"] is False' "$2" "$1"
}
plan step_time quiet.json
for _ in 1 2 3 4 5 6 7 8; do
    while :; do :; done &
    loops+=($!)
done
plan step_time busy.json
stop_loops
cmp quiet.json busy.json || die "another plan beside other work"

# what is cut says so, in text and in JSON
penstock plan job.yaml --time-limit 1ms --json >cut.json
check 'd["cut"] is True' cut.json
penstock plan job.yaml --time-limit 1ms >cut.txt
grep -q 'the time limit cut the search: another run may find another plan' cut.txt || die "$(cat cut.txt)"
