# Plans know how fast a GPU is: by what the job states, by what was measured of its model, or by what its maker says
# of the model. Tested on an emulated GPU: what is measured there says nothing of a real one.
. tests/end_to_end/common.sh

cat >job.yaml <<'Y'
version: 1
model: {file: reference/lenet/model.onnx}
data: {train: {format: npy, inputs: {input: reference/lenet/inputs.npy}, labels: reference/lenet/labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 8, epochs: 1}
devices: [{name: a, threads: 1}, {name: g, kind: cuda, memory: 1GiB, model: NVIDIA H200}]
costs: costs.yaml
Y
one='devices=[{name: g, kind: cuda, memory: 1GiB, model: emulated GPU}]'

# step SETTING...: the predicted step of a plan on the GPU alone.
step() {
    local arguments=()
    for setting in "$@"; do arguments+=(--set "$setting"); done
    penstock plan job.yaml --set costs=null --set 'devices=[{name: g, kind: cuda, memory: 1GiB}]' "${arguments[@]}" \
        --json 2>messages | json 'd["step_seconds"]'
}
less() {
    python3 -c 'import sys; sys.exit(not float(sys.argv[1]) < float(sys.argv[2]))' "$1" "$2"
}

# ---- no driver is needed: a faster model takes less time, and what is stated wins
cpu=$(penstock plan job.yaml --set costs=null --set 'devices=[{name: a, threads: 1}]' --json 2>messages |
    json 'd["step_seconds"]')
unknown=$(step) h200=$(step 'devices[0].model=NVIDIA H200') t4=$(step 'devices[0].model=Tesla T4')
stated=$(step 'devices[0].model=Tesla T4' 'devices[0].flops=1G')
less "$unknown" "$cpu" || die "a GPU is no faster than a core: $unknown, $cpu"
less "$h200" "$t4" || die "an H200 is no faster than a T4: $h200, $t4"
less "$t4" "$stated" || die "what is stated does not count: $t4, $stated"
# an operator without a kernel takes the host's time
layers() {
    echo "{reshape: {target_shape: [28, 28]}}, {gru: {units: 32, activation: $1}}, {dense: 10}"
}
network() {
    step 'devices[0].model=NVIDIA H200' "model={inputs: {input: {shape: [1, 28, 28]}}, layers: [$(layers "$1")]}"
}
usual=$(network tanh) unusual=$(network softsign)
less "$(python3 -c "print(2 * $usual)")" "$unusual" || die "what runs on the host costs nothing: $usual, $unusual"
# which was measured on a cpu device: a time of the operator, or rates
slow_model="model={inputs: {input: {shape: [1, 28, 28]}}, layers: [$(layers softsign)]}"
penstock profile job.yaml --set costs=host.yaml --set "$slow_model" --set 'devices=[{name: a, threads: 1}]' \
    --operator-time 1ms --json >/dev/null 2>messages || die "no profile: $(cat messages)"
grep -q 'op: "gru"' host.yaml || die "$(cat host.yaml)"
# on_host TABLE THREADS: the step of that network by a table
on_host() {
    penstock plan job.yaml --costs "$1" --set "$slow_model" --json 2>messages \
        --set "devices=[{name: g, kind: cuda, memory: 1GiB, model: NVIDIA H200, threads: $2}]" | json 'd["step_seconds"]'
}
sed '/op: "gru"/{n;s/seconds: [^,]*/seconds: 1s/}' host.yaml >slow.yaml
cmp -s host.yaml slow.yaml && die "$(cat host.yaml)"
for threads in 1 2; do
    python3 -c 'import sys; a, b = (float(x) for x in sys.argv[1:]); sys.exit(not 0.9 < b - a < 1.1)' \
        "$(on_host host.yaml $threads)" "$(on_host slow.yaml $threads)" || die "what a cpu device takes does not count"
done
rates='kind: cpu, threads: 1, flops: 1G, memory_bandwidth'
printf 'version: 1\nrates:\n- {%s: 1GB/s}\n' "$rates" >fast.yaml
printf 'version: 1\nrates:\n- {%s: 1MB/s}\n' "$rates" >slow.yaml
less "$(on_host fast.yaml 1)" "$(on_host slow.yaml 1)" || die "rates of a cpu device do not count"
fails 2 'devices\[0\].model: found "T4" with kind cpu, expected it with kind cuda' \
    "$PENSTOCK" plan job.yaml --set 'devices=[{name: a, model: T4}]'

# ---- measured, by model
. "$top/tests/end_to_end/emulated_gpu.sh"
fails 3 "'model' of 'g' is missing: what is measured of a GPU is kept by its model" \
    "$PENSTOCK" profile job.yaml --set 'devices=[{name: g, kind: cuda, memory: 1GiB}]'
fails 3 "device 'g' is 'emulated GPU', and the job calls its model 'NVIDIA H200'" \
    "$PENSTOCK" profile job.yaml --device g
penstock profile --json --operator-time 1ms job.yaml --set "$one" >profile.json 2>messages ||
    die "no profile: $(cat messages)"
check 'd["devices"][0]["measured"] > 20 and d["devices"][0]["failed"] == 0' profile.json
check 'd["devices"][0]["kind"] == "cuda emulated GPU"' profile.json
grep -q 'kind: "cuda emulated GPU", threads: 1' costs.yaml || die "$(cat costs.yaml)"
LD_LIBRARY_PATH='' penstock plan job.yaml --set "$one" >plan.txt 2>messages || die "$(cat messages)"
grep -qE '^costs from   [1-9][0-9]* nodes measured, 0 stated, 0 assumed' plan.txt || die "$(cat plan.txt)"
LD_LIBRARY_PATH='' penstock plan job.yaml --set "$one" --set 'devices[0].model=NVIDIA H200' >plan.txt 2>messages
grep -qE '^costs from   0 nodes measured' plan.txt || die "what was measured of one model is another's: $(cat plan.txt)"
