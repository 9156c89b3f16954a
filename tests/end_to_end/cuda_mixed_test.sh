# Devices of several kinds in one job, the GPUs emulated: several GPUs of one process, two cpu devices and
# two GPUs in one process and in processes of their own, one of which is killed. Losses are those of cpu
# devices alone within 1e-5 of each; of the same devices they are the same to the bit.
. tests/end_to_end/common.sh

. "$top/tests/end_to_end/emulated_gpu.sh"
export FAKE_CUDA=gpus=2

cpu='devices=[{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}, {name: d, threads: 1}]'
g='name: g, kind: cuda, memory: 1GiB' h='name: h, kind: cuda, gpu: 1, memory: 1GiB'
mixed="devices=[{name: a, threads: 1}, {$g}, {name: b, threads: 1}, {$h}]"
apart="devices=[{name: a, threads: 1}, {$g, host: localhost},
    {name: b, threads: 1, memory: 1GiB, host: localhost}, {$h, host: localhost}]"

# job NAME MODEL TRAIN
job() {
    cat >"$1" <<Y
version: 1
model: {file: reference/$2/model.onnx}
data: {train: {format: npy, inputs: {input: reference/$2/inputs.npy}, labels: reference/$2/labels.npy}}
train: {loss: softmax_cross_entropy, batch: 8, microbatches: 4, drop_last: true, epochs: 1000, $3}
placement: {strategy: round_robin} # the same whatever links cost
pipeline: {schedule: 1f1b}
Y
}

# close FILE FILE: the losses of two trainings are alike.
close() {
    python3 - "$1" "$2" <<'P' || die "$1 is not like $2"
import json, sys
a, b = ([s["loss"] for s in json.load(open(f))["steps"]] for f in sys.argv[1:])
assert len(a) == len(b) > 0, (len(a), len(b))
worst = max(abs(x - y) / abs(y) for x, y in zip(a, b))
assert worst <= 1e-5, (worst, a, b)
P
}

hash() {
    json 'd["parameters_hash"]' <"$1"
}

# ---- the same losses as on cpu devices: several GPUs, then both kinds, in a process and in four
for model in mlp lenet recurrent; do
    case $model in
    recurrent) job $model.yaml $model 'optimizer: {adam: {lr: 0.01}}, steps: 8' ;;
    *) job $model.yaml $model 'optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, steps: 8' ;;
    esac
    penstock train $model.yaml --set "$cpu" --json >cpu.json 2>messages
    penstock train $model.yaml --set "devices=[{$g}, {$h}]" --json >two.json 2>messages
    close two.json cpu.json
    penstock train $model.yaml --set "$mixed" --json >mixed.json 2>messages
    close mixed.json cpu.json
    check '[x["name"] for x in d["measured"]["devices"]] == ["a", "g", "b", "h"]' mixed.json
    # what the plan says that they take is what they take
    check '[x["bytes"] for x in d["predicted"]["devices"]] == [x["bytes"] for x in d["measured"]["devices"]]' mixed.json
    FAKE_CUDA='gpus=2 order=2 late=100' penstock train $model.yaml --set "$mixed" --json >again.json 2>messages
    [ "$(hash again.json)" = "$(hash mixed.json)" ] || die "$model: other bits when threads and commands come otherwise"
    penstock train $model.yaml --set "$apart" --json >apart.json 2>messages
    close apart.json cpu.json
    [ "$(hash apart.json)" = "$(hash mixed.json)" ] || die "$model: other bits in processes of their own"
done

# ---- the plan says what is of which kind, without a driver, and GPUs take nothing of the host's memory
gru='{gru: {units: 8, activation: softsign, return_sequences: true}}' # which has no kernel there
layers="{reshape: {target_shape: [28, 28]}}, $gru, $gru, $gru, flatten, {dense: 10}"
unusual="model={inputs: {input: {shape: [1, 28, 28]}}, layers: [$layers]}"
LD_LIBRARY_PATH='' penstock plan lenet.yaml --set "$mixed" --set "$unusual" >plan.txt 2>messages
grep -q '^kinds  *cpu: a, b$' plan.txt && grep -q '^  *cuda: g, h$' plan.txt || die "no kinds: $(cat plan.txt)"
grep -qE "^on the host  [0-9]+ of [0-9]+ nodes of '[gh]', of operators without a kernel: .*gru" plan.txt ||
    die "what runs on the host is not named: $(cat plan.txt)"
penstock plan lenet.yaml --set "$cpu" | grep -q '^kinds' && die "cpu devices alone have kinds"
penstock plan lenet.yaml --set "devices=[{$g}, {name: a}]" --set 'devices[0].memory=100TiB' >/dev/null 2>messages ||
    die "a GPU's memory is taken from the host's: $(cat messages)"

# ---- one device beside them: not the same bits, but the same numbers
verify=(verify lenet.yaml --set "$mixed" --set train.drop_last=true --steps 3)
fails_with() {
    local found=0
    "$PENSTOCK" "${@:2}" >out 2>messages || found=$?
    [ "$found" -eq "$1" ] || die "${*:2}: exit code $found, expected $1: $(cat messages)"
}
fails_with 7 "${verify[@]}"
fails_with 0 "${verify[@]}" --tolerance 1e-4
fails_with 7 "${verify[@]}" --tolerance 1e-12

# ---- GPUs of two models are refused by name, in one process and in two
other="results would differ in their last bits; a job's GPUs must be of one model"
fails_with_words() {
    local found=0
    timeout 60 "$PENSTOCK" "${@:2}" >out 2>messages || found=$?
    [ $found -ne 0 ] && grep -q "$1" messages && grep -q "'\(cuda: \)\?other emulated GPU, " messages ||
        die "${*:2}: exit code $found: $(cat messages)"
}
export FAKE_CUDA='gpus=2 models=2'
fails_with_words "$other" train lenet.yaml --set "devices=[{$g}, {$h}]"
fails_with_words "$other" train lenet.yaml --set "devices=[{name: a}, {$g, host: localhost}, {$h, host: localhost}]" \
    --set 'recovery={grace: 1s}'
export FAKE_CUDA=gpus=2

# ---- other schedules, evaluation and prediction on the way
of_lenet='{format: npy, inputs: {input: reference/lenet/inputs.npy}, labels: reference/lenet/labels.npy}'
sed "s|^data:.*|data: {train: $of_lenet, eval: $of_lenet}|" lenet.yaml >evaluated.yaml
for schedule in gpipe 1f1b zero_bubble; do
    penstock train evaluated.yaml --set "$mixed" --set pipeline.schedule=$schedule --json --save $schedule.safetensors \
        >$schedule.json 2>messages
    [ "$(hash $schedule.json)" = "$(hash gpipe.json)" ] || die "other bits with $schedule"
done
penstock train evaluated.yaml --set "$cpu" --set pipeline.schedule=gpipe --json --save cpu.safetensors >cpu.json 2>messages
close gpipe.json cpu.json
penstock predict evaluated.yaml --set "$mixed" --parameters gpipe.safetensors -o mixed.npy >/dev/null 2>messages ||
    die "no prediction: $(cat messages)"
penstock predict evaluated.yaml --set "$cpu" --parameters gpipe.safetensors -o cpu.npy >/dev/null 2>messages
python3 - <<'P' || die "other predictions"
import array
a, b = (array.array("f", open(f, "rb").read()[128:]) for f in ("mixed.npy", "cpu.npy"))
assert len(a) == len(b) > 0 and max(abs(x - y) for x, y in zip(a, b)) < 1e-5
P

# ---- a worker is killed, one of each kind: steps since the checkpoint are done again, with the same bits
long=(--json --set "$apart" --set train.steps=80 --set 'recovery={grace: 1s}' lenet.yaml)
penstock train "${long[@]}" >whole.json 2>messages
for number in 1 2; do
    "$PENSTOCK" train "${long[@]}" --checkpoint kept$number --every '10 steps' >killed.json 2>messages &
    training=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(ls kept$number/shards 2>/dev/null | wc -l)" -lt 3 ] || break
        sleep 0.05
    done
    kill -9 "$(pgrep -P $training -f worker | sed -n ${number}p)" || die "no worker to be killed: $(cat messages)"
    wait $training || die "it did not go on: $(cat messages)"
    check 'd["measured"]["recoveries"] == 1' killed.json
    [ "$(hash killed.json)" = "$(hash whole.json)" ] || die "other bits after a worker was killed"
done

# ---- one that does not come back: what it had is not given to another kind, unless the job says so
start_worker() {
    : >"worker$1.err" # there before the worker is
    "$PENSTOCK" worker --listen 127.0.0.1:0 --store "store$1" 2>"worker$1.err" &
    worker=$!
    for ((i = 0; i < 200; i++)); do
        port=$(sed -n 's/^worker takes links at port //p' "worker$1.err")
        [ -z "$port" ] || return 0
        sleep 0.05
    done
    die "worker $1 does not listen: $(cat "worker$1.err")"
}
for across in false true; do
    start_worker $across
    "$PENSTOCK" train lenet.yaml --json --set train.steps=80 \
        --set "checkpoint={dir: lost$across, every: 10 steps, shared: false}" \
        --set "devices=[{name: a, threads: 1}, {$g, host: '127.0.0.1:$port'}]" \
        --set "recovery={grace: 1s, across_kinds: $across}" >lost.json 2>messages &
    training=$!
    for ((i = 0; i < 600; i++)); do
        [ "$(ls lost$across/shards store$across/* 2>/dev/null | wc -l)" -lt 3 ] || break
        sleep 0.05
    done
    kill -9 $worker
    found=0
    wait $training || found=$?
    case $across in
    false) [ $found -eq 6 ] && grep -q 'recovery: {across_kinds: true}. allows it' messages ||
        die "ended with $found: $(cat messages)" ;;
    true) [ $found -eq 0 ] && grep -q 'placed anew on devices of the kinds cpu and cuda' messages ||
        die "ended with $found: $(cat messages)" ;;
    esac
done

# ---- a checkpoint of both kinds goes on with both
penstock train "${long[@]}" --set train.steps=40 --checkpoint half --every '10 steps' >half.json 2>messages
penstock train "${long[@]}" --checkpoint half --continue >rest.json 2>messages
[ "$(hash rest.json)" = "$(hash whole.json)" ] || die "other bits when it is continued"
