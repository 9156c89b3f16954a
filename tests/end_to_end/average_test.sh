# train.average: the same bits on any devices, replicas and slices and after a stop; what is evaluated and written is the
# average, or the parameters where the job says so; evaluations while it runs leave the training as it is.
. tests/end_to_end/trainings.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp gpt

average='average: {decay: 0.8, from: 2 steps}'
sgd="optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 6, $average"
adamw="optimizer: {adamw: {lr: 0.01}}, clip_norm: 0.5, batch: 16, microbatches: 4, lanes: 4, steps: 6, $average"
hold='holdout: 0.2'

# job FILE MODEL TRAIN [DEVICES [HOST [PLACEMENT [MORE]]]]: with a fifth of the data to evaluate with
job() {
    has_eval='' write_job "$1" "$2" "$3" "${4:-1}" "${5:-process}" "${6:-time_limit: 1s}" "${7:-}"
    sed -i "s/^data: {\(.*\)}$/data: {\1, $hold}/" "$1"
}
# result JOB [OPTION...]: the hash of what is written, and the evaluation
result() {
    penstock train --json "$@" 2>messages >result.json || die "$*: $(cat messages)"
    json 'd["parameters_hash"] + " " + repr(d["evaluation"]["loss"])' <result.json
}

# same MODEL TRAIN "DEVICES HOST PLACEMENT"...
same() {
    local expected found shape
    job one.yaml "$1" "$2"
    expected=$(result one.yaml)
    for shape in "${@:3}"; do
        set -- "$1" "$2" $shape
        job many.yaml "$1" "$2" "$3" "$4" "${*:5}"
        found=$(result many.yaml)
        [ "$found" = "$expected" ] || die "$1, $2, $shape: $found, one device: $expected"
    done
}
same mlp "$sgd" '2 process' '3 localhost'
same mlp "$adamw" '3 process replicas: 2, owners: [d3]' '4 localhost replicas: 2'
same gpt "$adamw" '2 localhost replicas: 2'
sharded_job one.yaml mlp "$sgd" '{nodes: "^gemm", ways: 4}'
expected=$(numbers one.yaml)
sharded_job many.yaml mlp "$sgd" '{nodes: "^gemm", ways: 4}' 2 process "$(pins 'shard[02]$' 'shard[13]$')"
found=$(numbers many.yaml)
[ "$found" = "$expected" ] || die "slices on 2 devices: $found, not $expected"

# ---- which of the two is used

job one.yaml mlp "$sgd"
averaged=$(result one.yaml --save averaged.safetensors --checkpoint kept)
check 'd["averaged"]' result.json
penstock train one.yaml 2>messages || die "$(cat messages)"
grep -q 'evaluations and outputs have the average of the parameters' messages || die "not said: $(cat messages)"
# one that would begin behind the last step
penstock train -q --set 'train.average.from=6 steps' one.yaml 2>messages
grep -q 'train.average.from is 6 steps, and the training ends after 6: ' messages || die "$(cat messages)"
# the last step is that of --steps
penstock train -q --steps 2 one.yaml 2>messages
grep -q 'train.average.from is 2 steps, and the training ends after 2: ' messages || die "$(cat messages)"
penstock train -q --steps 8 --set 'train.average.from=6 steps' one.yaml 2>messages
grep 'train.average.from' messages && die 'two steps are averaged, and none is said to be'
plain=$(result one.yaml --set train.average.use=false --save plain.safetensors)
check 'not d["averaged"]' result.json
[ "$plain" != "$averaged" ] || die 'the average is what the parameters are'
sed 's/, average: {[^}]*}//' one.yaml >without.yaml
[ "$(result without.yaml)" = "$plain" ] || die "an average changes the training: $plain, without $(result without.yaml)"
for kind in averaged plain; do
    loss=$(penstock eval --json one.yaml --parameters $kind.safetensors | json 'repr(d["loss"])')
    [ "${!kind#* }" = "$loss" ] || die "$kind: evaluated as ${!kind#* }, the file has $loss"
done
penstock checkpoint export kept -o out.safetensors && cmp out.safetensors averaged.safetensors || die 'export: no average'
penstock checkpoint export kept --plain -o out.safetensors && cmp out.safetensors plain.safetensors || die 'export --plain'

# from the last steps' parameters, by the formula
for step in 3 4 5 6; do
    penstock train without.yaml --steps $step --save p$step.safetensors --no-eval 2>/dev/null >&2 || die "step $step"
done
/usr/bin/python3 - <<'PY' || die 'other averages'
import json, struct
import numpy as np

def load(path):
    whole = open(path, "rb").read()
    size, = struct.unpack("<Q", whole[:8])
    about = json.loads(whole[8:8 + size])
    about.pop("__metadata__", None)
    return {n: np.frombuffer(whole[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]], np.float32)
            for n, e in about.items()}

average = load("p3.safetensors")
for step in 4, 5, 6:
    new = load(f"p{step}.safetensors")
    average = {n: a + np.float32(1 - 0.8) * (new[n] - a) for n, a in average.items()}
found = load("averaged.safetensors")
assert found.keys() == average.keys() and len(found) > 4
for n, a in average.items():
    assert np.allclose(found[n], a, rtol=1e-6, atol=1e-8), n
PY

# ---- stops, and evaluations in the middle

for steps in 1 3 5; do
    rm -rf kept
    result one.yaml --steps $steps --checkpoint kept >/dev/null
    found=$(result one.yaml --resume kept)
    [ "$found" = "$averaged" ] || die "$steps steps and a resume: $found, not $averaged"
done
for devices in 1 2; do
    rm -rf kept out
    job judged.yaml mlp "$sgd" $devices localhost 'time_limit: 1s' "evaluation: {every: 1 step}
checkpoint: {dir: kept, every: 1 step}
outputs: {dir: out, from: best}"
    found=$(result judged.yaml)
    best=$(json 'd["best"]["step"]' <result.json)
    [ "$best" = 6 ] || found="$averaged" # the hash is that of the last step
    [ "$found" = "$averaged" ] || die "evaluations change the training: $found, not $averaged"
    losses=$(json '" ".join(repr(s["evaluation"]["loss"]) for s in d["steps"])' <result.json)
    [ "${losses##* }" = "${averaged#* }" ] || die "evaluated while it runs: $losses, at the end ${averaged#* }"
    [ "${every:=$losses}" = "$losses" ] || die "other evaluations on 2 devices: $losses, not $every"
    penstock checkpoint export kept --best -o out.safetensors
    cmp out.safetensors out/parameters.safetensors || die 'outputs: not the average of the best step'
done

# a worker is lost while parameters and averages change places, and within an evaluation
sed 's/^evaluation:/recovery: {on_loss: wait}\n&/' judged.yaml >lost.yaml
for place in piece_taken:125 piece_taken:150 task_done:60; do
    rm -rf kept out
    found=$(PENSTOCK_FAILPOINT=worker.$place:kill result lost.yaml)
    check 'd["measured"]["recoveries"] > 0' result.json
    [ "$found" = "$averaged" ] || die "$place: a worker is lost: $found, not $averaged"
    losses=$(json '" ".join(repr(s["evaluation"]["loss"]) for s in d["steps"])' <result.json)
    [ "$losses" = "$every" ] || die "$place: a worker is lost: $losses, not $every"
done

# ---- memory, and what does not go together

job memory.yaml mlp "optimizer: {sgd: {lr: 0.1}}, batch: 16, average: {}"
penstock plan memory.yaml >planned 2>messages || die "$(cat messages)"
grep -Eq '^d1 +[0-9]+ +278 KiB +0 bytes +278 KiB' planned || die "an average takes other memory than its parameter: $(cat planned)"
penstock train one.yaml --set train.consistency='{async: {staleness: 1}}' --set train.lanes=2 2>messages &&
    die 'an average of asynchronous lanes'
grep -q 'train.average: found together with consistency async' messages || die "async: $(cat messages)"
