# shellcheck shell=bash
# What the tests of a GPU's memory share: `. tests/end_to_end/cuda_memory.sh` after common.sh. Jobs of four models,
# and of dense layers, and plans beside what the driver of an emulated GPU counts.
export LD_LIBRARY_PATH=${PENSTOCK%/penstock}/tests/cuda/libraries:${PENSTOCK%/penstock}/tests/cuda
sequences=reference/sequences
one='devices=[{name: g, kind: cuda, memory: 1GiB}]'
mixed='devices=[{name: g, kind: cuda, memory: 1GiB}, {name: a, threads: 1}]'
apart='devices=[{name: g, kind: cuda, memory: 1GiB, host: localhost},
    {name: h, kind: cuda, gpu: 1, memory: 1GiB, host: localhost}]'

# job NAME MODEL DATA BATCH
job() {
    cat >"$1.yaml" <<Y
version: 1
model: {file: $2}
data: {train: {format: npy, $3}}
train:
  {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.001}}, batch: $4, microbatches: 2, drop_last: true,
   steps: 2, epochs: 9}
placement: {strategy: round_robin}
pipeline: {schedule: 1f1b}
Y
}
of() {
    printf 'inputs: {%s: %s}, labels: %s' "$1" "$2" "$3"
}
job mlp reference/mlp/model.onnx "$(of input reference/mlp/inputs.npy reference/mlp/labels.npy)" 8
job resnet reference/resnet18_32/model.onnx "$(of input reference/resnet18_32/inputs.npy reference/resnet18_32/labels.npy)" 4
job gpt $sequences/gpt.pt2 "$(of tokens $sequences/tokens.npy $sequences/labels.npy)" 4
job lstm $sequences/lstm.pt2 "$(of tokens $sequences/tokens.npy $sequences/labels.npy)" 4

PYTHONPATH=$top/tests/end_to_end python3 - <<'P'
import array, random
from make_data import npy
random.seed(1)
x = array.array("f", (random.random() for _ in range(64 * 256)))
y = array.array("i", (random.randrange(10) for _ in range(64)))
open("x.npy", "wb").write(npy("<f4", (64, 256), x.tobytes()))
open("y.npy", "wb").write(npy("<i4", (64,), y.tobytes()))
layers = "{dense: 256}, relu, " * 10 + "{dense: 10}"
open("wide.yaml", "w").write(f"""version: 1
model: {{inputs: {{input: {{shape: [256]}}}}, layers: [{layers}]}}
data: {{train: {{format: npy, inputs: {{input: x.npy}}, labels: y.npy}}}}
numerics: {{libraries: none}}
train:
  {{loss: softmax_cross_entropy, optimizer: {{adam: {{lr: 0.001}}}}, batch: 32, microbatches: 4, steps: 2, epochs: 9}}
""")
P

# layers COUNT JOB: a job like wide.yaml of so many small layers.
layers() {
    sed "s|^model:.*|model: {inputs: {input: {shape: [256]}}, layers: [$(printf '{dense: 4}, %.0s' $(seq "$1")){dense: 10}]}|" \
        wide.yaml >"$2.yaml"
}

# told JOB DEVICES [OPTION...]: what the plan says of the GPUs' memory, and what the driver counted, GPU by GPU. The
# training takes the plan: a search that the clock ends need not find it again.
told() {
    rm -f counted
    export FAKE_CUDA="gpus=2 tell=$work/counted"
    LD_LIBRARY_PATH='' penstock plan "$1.yaml" --set "$2" "${@:3}" -o told.yaml --json >plan.json 2>messages
    penstock train told.yaml --json >run.json 2>messages
    python3 - "$1, $2" <<'P' || die "$1: what the plan says is not what is taken"
import json, os, sys, time
plan, run = (json.load(open(f)) for f in ("plan.json", "run.json"))
gpus = {"g": 0, "h": 1}
planned = {gpus[d["name"]]: d["memory"]["total"] for d in plan["devices"] if d["name"] in gpus}
counted = []
for _ in range(600): # workers may end after the training
    if os.path.exists("counted"): counted = [line.split() for line in open("counted")]
    if len(counted) >= len(planned): break
    time.sleep(0.1)
found = {}
for gpu, most, pinned in ([int(n) for n in line] for line in counted):
    assert gpu not in found, "two processes on one GPU"
    found[gpu] = most
    assert pinned >= (6 << 20) + 65536 + 4096, pinned
assert found == planned, (sys.argv[1], found, planned)
told = run["predicted"]
assert told["device_bytes"] >= sum(planned.values()), told
for d in told.get("devices", []):
    if d["name"] in gpus: assert d["bytes"] == planned[gpus[d["name"]]], (sys.argv[1], d)
P
}
