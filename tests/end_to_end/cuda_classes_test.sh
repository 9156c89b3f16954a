# Devices of one class give equal bits, and no others do: so one, two and three emulated GPUs train a model to the
# same parameters, a GPU that is lost leaves its nodes to others of its kind, and what goes on with another class
# is told, in the log, in checkpoints and in what a training prints.
. tests/end_to_end/common.sh

. "$top/tests/end_to_end/emulated_gpu.sh"
export FAKE_CUDA=gpus=3
g='name: g, kind: cuda, memory: 1GiB'
h='name: h, kind: cuda, gpu: 1, memory: 1GiB'
i='name: i, kind: cuda, gpu: 2, memory: 1GiB'

cat >job.yaml <<'Y'
version: 1
model: {file: reference/lenet/model.onnx}
data: {train: {format: npy, inputs: {input: reference/lenet/inputs.npy}, labels: reference/lenet/labels.npy}}
train:
  {loss: softmax_cross_entropy, batch: 8, microbatches: 4, drop_last: true, epochs: 1000,
   optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, steps: 8}
placement: {strategy: round_robin} # the same whatever links cost
pipeline: {schedule: 1f1b}
Y

hash() {
    json 'd["parameters_hash"]' <"$1"
}

# ---- one to three GPUs, in one process and in several, however they are used
penstock train job.yaml --set "devices=[{$g}]" --json >one.json 2>messages
check 'd["arithmetic"].startswith("cuda: emulated GPU, compute capability 9.0, driver 12.4, kernels ")' one.json
for devices in "{$g}, {$h}" "{$g}, {$h}, {$i}" "{$g, host: localhost}, {$h}, {$i, host: localhost}"; do
    penstock train job.yaml --set "devices=[$devices]" --json >several.json 2>messages
    [ "$(hash several.json)" = "$(hash one.json)" ] || die "other bits with $devices"
    [ "$(json 'd["arithmetic"]' <several.json)" = "$(json 'd["arithmetic"]' <one.json)" ] || die "another class"
done
for strategy in greedy random; do
    penstock train job.yaml --set "devices=[{$g}, {$h}, {$i}]" --set placement.strategy=$strategy \
        --set pipeline.schedule=gpipe --json >several.json 2>messages
    [ "$(hash several.json)" = "$(hash one.json)" ] || die "other bits with $strategy"
done

# ---- what checkpoints say, and what is said where another class goes on
penstock train job.yaml --set "devices=[{$g}]" --set train.steps=4 --checkpoint kept --every '2 steps' --json \
    >first.json 2>messages
penstock checkpoint ls kept --json >ls.json
check 'all(c["arithmetic"].startswith("cuda: emulated GPU, ") for c in d["checkpoints"])' ls.json
check '"changed_step" not in d["checkpoints"][0]' ls.json
cp -r kept other && cp -r kept plain
penstock train job.yaml --set "devices=[{$g}, {$h}]" --checkpoint kept --every '2 steps' --continue --json \
    >same.json 2>messages
! grep -q "last bits" messages || die "the same class is another: $(cat messages)"
[ "$(hash same.json)" = "$(hash one.json)" ] || die "other bits when it is continued on two GPUs"
FAKE_CUDA='gpus=3 model=1' penstock train job.yaml --set "devices=[{$g}]" --checkpoint other --every '2 steps' \
    --continue --json --log log.jsonl >other.json 2>messages
grep -q "the checkpoint of step 4 was computed on 'cuda: emulated GPU, .*', and this goes on with 'cuda: other emulated" \
    messages || die "another GPU is not told: $(cat messages)"
check 'd["changed_step"] == 4 and d["arithmetic"].startswith("cuda: other emulated GPU")' other.json
grep '"event": "start"' log.jsonl | grep -q '"changed_step": 4' || die "the log has no word of it: $(cat log.jsonl)"
penstock checkpoint ls other --json >ls.json
check 'd["checkpoints"][0]["changed_step"] == 4' ls.json
penstock train job.yaml --checkpoint plain --every '2 steps' --continue --json >plain.json 2>messages
grep -q "and this goes on with 'cpu': from here on, the last bits are not" messages || die "$(cat messages)"
check 'd["changed_step"] == 4 and d["arithmetic"] == "cpu"' plain.json

# ---- a GPU is lost for good: those of its kind that are left get what it had, with the same bits
start_worker() {
    : >worker.err
    "$PENSTOCK" worker --listen 127.0.0.1:0 --store "store$1" 2>>worker.err &
    worker=$!
    for ((n = 0; n < 200; n++)); do
        port=$(sed -n 's/^worker takes links at port //p' worker.err)
        [ -z "$port" ] || return 0
        sleep 0.05
    done
    die "the worker does not listen: $(cat worker.err)"
}

# lose NAME DEVICES [OPTION...]: trains with a device at a worker, which is killed once there is a checkpoint. Sets
# `found`.
lose() {
    local name=$1 devices=$2 training
    shift 2
    start_worker "$name"
    "$PENSTOCK" train job.yaml --json --set train.steps=60 \
        --set "checkpoint={dir: lost$name, every: 10 steps, shared: false}" \
        --set "devices=[${devices//WORKER/127.0.0.1:$port}]" --set 'recovery={grace: 1s}' "$@" \
        >"$name.json" 2>messages &
    training=$!
    for ((n = 0; n < 600; n++)); do
        ! "$PENSTOCK" checkpoint ls "lost$name" --json 2>/dev/null | grep -q '"step"' || break
        sleep 0.1
    done
    kill -9 $worker
    found=0
    wait $training || found=$?
}

penstock train job.yaml --json --set train.steps=60 --set "devices=[{$g}, {$h}]" >whole.json 2>messages
lose two "{$g}, {$h, host: 'WORKER'}"
[ $found -eq 0 ] && grep -q "goes on without device 'h'" messages || die "ended with $found: $(cat messages)"
[ "$(hash two.json)" = "$(hash whole.json)" ] || die "other bits after a GPU was lost"

a='name: a, threads: 1'
penstock train job.yaml --json --set train.steps=60 --set "devices=[{$a}, {$g}, {$h}]" >whole.json 2>messages
lose mixed "{$a}, {$g}, {$h, host: 'WORKER'}"
[ $found -eq 0 ] && grep -q "goes on without device 'h'" messages || die "ended with $found: $(cat messages)"
[ "$(hash mixed.json)" = "$(hash whole.json)" ] || die "other bits after one of two GPUs beside a cpu was lost"
check '"changed_step" not in d' mixed.json

# ---- None of its kind is left, or not with enough memory: it ends, and says what would allow to go on
lose alone "{$a}, {$g, host: 'WORKER'}"
[ $found -eq 6 ] && grep -q 'no device of kind cuda is left .*across_kinds: true}. allows it' messages ||
    die "ended with $found: $(cat messages)"
# a fully connected layer on each; what is pinned to a device that is gone is free
small='name: g, kind: cuda, memory: 662kB' # no room for cuBLAS
lose small "{$a}, {$small}, {$h, host: 'WORKER'}" --set numerics.libraries=none \
    --set 'placement.pin=[{nodes: "^/fc1/", to: h}, {nodes: "^/fc2/", to: g}, {nodes: "^/conv", to: a}]'
[ $found -eq 6 ] && grep -q 'of the same kinds that are left do not suffice .*across_kinds: true}. allows it' messages ||
    die "ended with $found: $(cat messages)"

# ---- with leave it goes on, and the checkpoints say from which step on bits are others
lose across "{$a}, {$g, host: 'WORKER'}" --set 'recovery.across_kinds=true' --log across.jsonl
[ $found -eq 0 ] && grep -q 'placed anew on devices of the kinds cpu and cuda' messages ||
    die "ended with $found: $(cat messages)"
check 'd["changed_step"] >= 10 and d["arithmetic"] == "cpu"' across.json
grep '"event": "recovery"' across.jsonl | grep -q '"changed_step":' || die "no word in the log: $(cat across.jsonl)"
penstock checkpoint ls lostacross --json >ls.json
check 'd["checkpoints"][0]["changed_step"] >= 10' ls.json

# ---- replicas of both kinds: which lanes a GPU has decides the bits, and is told: trainings have the same parameters
# where they say the same arithmetic, and nowhere else
cat >lanes.yaml <<Y
version: 1
model: {file: reference/lenet/model.onnx}
data: {train: {format: npy, inputs: {input: reference/lenet/inputs.npy}, labels: reference/lenet/labels.npy}}
train:
  {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.001}}, batch: 8, microbatches: 8, lanes: 8, drop_last: true,
   epochs: 9, steps: 3}
Y
rates() {
    printf 'threads: 1, flops: %sG, memory_bandwidth: %sGB/s' "$1" "$1"
}
: >lanes.txt
lanes() {
    FAKE_CUDA=gpus=2 penstock train lanes.yaml --set "$1" --set "placement.replicas=$2" --json >lanes.json 2>messages
    json 'd["arithmetic"] + "=" + d["parameters_hash"]' <lanes.json >>lanes.txt
}
for rate in 1 10 100 1000; do
    lanes "devices=[{name: a, $(rates 5)}, {name: g, kind: cuda, memory: 1GiB, $(rates $rate)}]" 2
    lanes "devices=[{name: a, $(rates $rate)}, {name: g, kind: cuda, memory: 1GiB, $(rates 5)},
        {name: h, kind: cuda, gpu: 1, memory: 1GiB, $(rates 5)}]" 3
done
python3 - <<'P' || die "arithmetic and bits do not go together: $(cat lanes.txt)"
told = [line.strip().split("=") for line in open("lanes.txt")]
assert len({a for a, b in told}) > 3 and len(told) == 8, told
for a, b in told:
    for c, d in told:
        assert (a == c) == (b == d), (a, b, c, d)
P
