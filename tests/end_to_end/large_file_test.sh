# A .pt2 file ten times as large as what a process may hold is inspected and planned: weights are
# borrowed from where they lie in the file, of 16 bits as well, and planning takes nothing that only
# running needs.
. tests/end_to_end/common.sh
case $PENSTOCK in *address* | *thread*)
    echo 'skipped: sanitizers take memory of their own'
    exit 0
    ;;
esac
python3 -m zipfile -e reference/pytorch/tied.npz .
job() { # FILE DEVICE...
    local file=$1 device
    shift
    cat <<END
version: 1
model: {file: $file}
data: {train: {format: npy, inputs: {x: x.npy}, labels: y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {adamw: {lr: 0.001}}, batch: 8, microbatches: 2, steps: 1}
links: [{between: ["^.", "^."], bandwidth: 10GB/s, latency: 20us}]
devices:
END
    for device; do echo "  - {name: $device, memory: 64GiB, threads: 1, flops: 20G, memory_bandwidth: 8GB/s}"; done
}

# plans FILE PARAMETERS: what is planned with a tenth of the file is what is planned without a limit
plans() {
    local file=$1 expected=$2 bytes limited job
    bytes=$(stat -c %s "$file")
    [ "$bytes" -gt 2000000000 ] || die "only $bytes bytes"
    job "$file" a | sed /^links/d >one.yaml
    job "$file" a b c >three.yaml
    limited=(prlimit --data=$((bytes / 10)) "$PENSTOCK")
    "${limited[@]}" inspect "$file" >inspected || die "$file: not inspected"
    grep -qE "^parameters +$expected" inspected || die "$file: other parameters: $(cat inspected)"
    for job in one three; do
        "${limited[@]}" plan $job.yaml --json -o $job.plan >$job.json || die "$file, $job: not planned"
        check 'sum(v["memory"]["parameters"] for v in d["devices"]) >= 2**31' $job.json
    done
    penstock plan one.yaml --json >free.json
    check "d['devices'] == $(json 'd["devices"]' <one.json)" free.json
}

make_sparse=("$top/tests/end_to_end/make_sparse_pt2.py" reference/pytorch/tied.pt2)
python3 "${make_sparse[@]}" large.pt2 7 67108864
plans large.pt2 '536870915, 2.00 GiB'
rm large.pt2
python3 "${make_sparse[@]}" half.pt2 7 134217728 bfloat16
plans half.pt2 '1073741827, 4.00 GiB'
