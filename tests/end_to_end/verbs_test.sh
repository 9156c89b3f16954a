# eval, predict and export of trainings over several devices: the bytes of one device.
. tests/end_to_end/common.sh

# job NAME MODEL DEVICES [MORE]: 40 examples, so that the last batch of an evaluation is short
job() {
    mkdir -p "$1"
    cp -n reference/"$2"/{inputs,labels}.npy "$1"
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/$2/model.onnx}
data:
  train: {format: npy, inputs: {input: $1/inputs.npy}, labels: $1/labels.npy}
  eval: {format: npy, inputs: {input: reference/$2/inputs.npy}, labels: reference/$2/labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.01}}, batch: 12, microbatches: 4, steps: 3}
devices: [$3]
placement: {strategy: round_robin}
outputs: {dir: $1}
${4:-}
END
}
own='host: localhost'
three() { # PLACE: two of the three devices are there
    printf '{name: a, threads: 1}, {name: b, threads: 1, %s}, {name: c, threads: 1, %s}' "$1" "$1"
}

# figures JOB [OPTION...]: what `eval` says, without the time it took
figures() {
    timeout 120 "$PENSTOCK" eval --json "$@" 2>messages >eval.json || die "eval $*: $(cat messages)"
    json '[d[k] for k in ("examples", "loss", "accuracy", "correct", "targets")]' <eval.json
}

# left JOB: everything that the verbs leave, in a folder of the job's name
left() {
    timeout 120 "$PENSTOCK" train -q --overwrite "$1.yaml" || die "train $1"
    rm "$1/inputs.npy" "$1/labels.npy" # that is over: what comes needs no training data
    figures "$1.yaml" >"$1/figures"
    figures "$1.yaml" --batch 40 >"$1/figures.whole"
    figures "$1.yaml" --parameters first.safetensors >"$1/figures.first"
    timeout 120 "$PENSTOCK" eval "$1.yaml" 2>messages >eval.txt || die "eval $1: $(cat messages)"
    grep -v ^seconds eval.txt >"$1/figures.txt"
    timeout 120 "$PENSTOCK" predict "$1.yaml" -o "$1/outputs.npy" 2>"$1.predict" || die "predict $1"
    timeout 120 "$PENSTOCK" predict -q "$1.yaml" -o "$1/outputs.csv" --limit 20 || die "predict $1"
    timeout 120 "$PENSTOCK" export -q "$1.yaml" -o "$1/trained.onnx" || die "export $1"
}

for model in mlp batchnorm_cnn; do
    job one $model '{name: a, threads: 1}'
    job threads $model "$(three 'kind: cpu')"
    job processes $model "$(three "$own")"
    penstock train -q --no-eval --overwrite --steps 1 --save first.safetensors one.yaml
    for name in one threads processes; do
        left $name
    done
    for name in threads processes; do
        diff -r one $name || die "$model: $name differ from one device"
    done
    cmp -s one/figures one/figures.first && die "$model: other parameters give the same loss"
    rm -r one threads processes
done

# ---- exporting needs no data and no device, wherever those are; evaluating needs them
job far mlp '{name: a, threads: 1, memory: 1GiB, host: "127.0.0.1:1"}' 'pipeline: {rendezvous_timeout: 1 s}'
sed -i 's/reference\/mlp\/inputs/gone/' far.yaml
rm far/inputs.npy
penstock export -q far.yaml -o far.onnx 2>messages || die "export: $(cat messages)"
grep -q "using the model's own" messages || die "$(cat messages)"
job far mlp '{name: a, threads: 1, memory: 1GiB, host: "127.0.0.1:1"}' 'pipeline: {rendezvous_timeout: 1 s}'
fails 6 'not there after 1 s: worker 1 \(127.0.0.1:1\)' "$PENSTOCK" eval -q far.yaml
fails 6 'not there after 1 s: worker 2 \(127.0.0.1:1\)' "$PENSTOCK" predict -q far.yaml -o far.npy
sed -i 's/127.0.0.1:1"/192.0.2.1:1"/' far.yaml
fails 3 'there is no TLS: give tls: .*, or say --insecure' "$PENSTOCK" eval -q far.yaml

# ---- parameters of another model
penstock train -q --no-eval --steps 1 --save other.safetensors far.yaml 2>/dev/null && die 'a worker that is not there'
job other lenet '{name: a, threads: 1}'
penstock train -q --no-eval --steps 1 --save other.safetensors other.yaml
job threads mlp "$(three 'kind: cpu')"
for verb in eval 'predict -o x.npy' 'export -o x.onnx'; do
    # shellcheck disable=SC2086
    fails 4 'other.safetensors lacks' "$PENSTOCK" $verb -q threads.yaml --parameters other.safetensors
    [ ! -e x.npy ] && [ ! -e x.onnx ] || die "$verb left something"
done

# ---- several losses: each by itself, beside their sum, whoever computes it
losses() { # NAME DEVICES
    data='{format: npy, inputs: {x: reference/losses/x.npy}, labels: {some: reference/losses/some.npy, '
    data+='boxes: reference/losses/boxes.npy}}'
    cat >"$1.yaml" <<JOB
version: 1
model: {file: reference/losses/model.onnx}
data:
  train: $data
  eval: $data
train:
  losses:
    - {output: logits, labels: some, kind: softmax_cross_entropy, class_axis: 1, ignore_index: 255}
    - {output: boxes, kind: smooth_l1, weight: 0.5}
  optimizer: {sgd: {lr: 0.2}}
  batch: 4
  microbatches: 2
  steps: 3
devices: [$2]
placement: {strategy: round_robin}
outputs: {dir: $1}
JOB
    mkdir -p "$1"
    timeout 120 "$PENSTOCK" train --json "$1.yaml" 2>messages >train.json || die "train $1: $(cat messages)"
    json '[s["losses"] for s in d["steps"]] + [d["evaluation"]["losses"]]' <train.json
    timeout 120 "$PENSTOCK" eval "$1.yaml" 2>messages | grep -E '^  (logits|boxes)  [0-9.]+$'
}
losses lone '{name: a, threads: 1}' >lone.txt
losses many "$(three "$own")" >many.txt
cmp lone.txt many.txt || die 'three devices give other losses'
[ "$(wc -l <lone.txt)" -eq 3 ] || die "losses one by one: $(cat lone.txt)"
# the page of a run draws each of them
timeout 120 "$PENSTOCK" train -q --overwrite --report many.html --json many.yaml >train.json 2>messages ||
    die "train many: $(cat messages)"
python3 - <<'PAGE' || die 'many.html has other losses'
import json
steps = json.load(open("train.json"))["steps"]
lines = open("many.html", encoding="utf-8").read().split("\n")
losses = json.loads(lines[lines.index('<script type="application/json" id="data">') + 1])["losses"]
drawn = {one["name"]: [value for _, value in one["points"]] for one in losses["series"]}
expected = {"loss": [step["loss"] for step in steps]}
for name in steps[0]["losses"]:
    expected[name] = [step["losses"][name] for step in steps]
assert list(drawn) == ["loss", "logits", "boxes"] and drawn == expected, (drawn, expected)
PAGE
timeout 120 "$PENSTOCK" train --overwrite lone.yaml 2>messages || die "train lone: $(cat messages)"
for line in 'step 3/3  loss' 'evaluation: loss'; do
    grep -qE "$line [0-9.]+ \\(logits [0-9.]+, boxes [0-9.]+\\) " messages || die "no losses: $(cat messages)"
done
