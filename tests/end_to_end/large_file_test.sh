# A .pt2 file ten times as large as what a process may hold is inspected and planned: weights are
# borrowed from where they lie in the file, and planning takes nothing that only running needs.
. tests/end_to_end/common.sh
case $PENSTOCK in *address* | *thread*)
    echo 'skipped: sanitizers take memory of their own'
    exit 0
    ;;
esac
python3 "$top/tests/end_to_end/make_sparse_pt2.py" reference/pytorch/tied.pt2 large.pt2 7 67108864
python3 -m zipfile -e reference/pytorch/tied.npz .
bytes=$(stat -c %s large.pt2)
[ "$bytes" -gt 2000000000 ] || die "only $bytes bytes"
job() {
    cat <<END
version: 1
model: {file: large.pt2}
data: {train: {format: npy, inputs: {x: x.npy}, labels: y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {adamw: {lr: 0.001}}, batch: 8, microbatches: 2, steps: 1}
links: [{between: ["^.", "^."], bandwidth: 10GB/s, latency: 20us}]
devices:
END
    for device; do echo "  - {name: $device, memory: 64GiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}"; done
}
job a | sed /^links/d >one.yaml
job a b c >three.yaml
limited=(prlimit --data=$((bytes / 10)) "$PENSTOCK")

"${limited[@]}" inspect large.pt2 >inspected || die 'not inspected'
grep -qE '^parameters +536870915, 2.00 GiB' inspected || die "other parameters: $(cat inspected)"
for job in one three; do
    "${limited[@]}" plan $job.yaml --json -o $job.plan >$job.json || die "$job: not planned"
    check 'sum(v["memory"]["parameters"] for v in d["devices"]) >= 2**31' $job.json
done
# what was planned so is what is planned without a limit
penstock plan one.yaml --json >free.json
check "d['devices'] == $(json 'd["devices"]' <one.json)" free.json
