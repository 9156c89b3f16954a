# Keras models train over devices, are exported with the places of their nodes, and take contents
# from files of weights; what is wrong with such a file is said.
. tests/end_to_end/common.sh

python3 - <<'PY'
import struct
def npy(path, descr, shape, data):
    header = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)
count, size = 8, 4 * 4 * 2
numbers = [((i * 37) % 101) / 50 - 1 for i in range(count * size)]
npy("pictures.npy", "<f4", "(8, 4, 4, 2)", struct.pack("<%df" % len(numbers), *numbers))
npy("labels.npy", "<i8", "(8,)", struct.pack("<8q", *[i % 2 for i in range(8)]))
PY

job() {
    cat <<END_JOB
version: 1
model: {file: reference/keras/$1}
data: {train: {format: npy, inputs: {$2: pictures.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 8, microbatches: 2, steps: 3, shuffle: false}
END_JOB
}

# both forms are one model; the frozen trunk stays as it is
job nested.h5 input_1 >h5.yaml
job nested.keras input_1 >keras.yaml
penstock train --json h5.yaml --save h5.safetensors >h5.json
penstock train --json keras.yaml --save keras.safetensors >keras.json
cmp h5.safetensors keras.safetensors || die "the two forms train to other parameters"
check 'd["steps"][-1]["loss"] < d["steps"][0]["loss"]' h5.json

# over two devices the same numbers, and an export that says what ran where
{
    job nested.h5 input_1
    printf '%s\n' 'devices: [{name: left, threads: 1}, {name: right, threads: 1}]' \
        'placement: {pin: [{nodes: "^trunk/", to: left}, {nodes: "^dense_1", to: right}]}' \
        'outputs: {export: trained.onnx}'
} >two.yaml
{
    job nested.h5 input_1
    echo 'devices: [{name: left, threads: 1}]'
} >one.yaml
penstock train --json one.yaml --save one.safetensors >one.json
penstock train --json two.yaml --save two.safetensors >two.json
cmp one.safetensors two.safetensors || die "two devices train to other parameters"
for word in penstock.device penstock.stage left right; do
    grep -q "$word" trained.onnx || die "trained.onnx does not say '$word'"
done
penstock inspect --json trained.onnx >inspected.json

# contents from a file of weights: training goes on from there
sed 's|nested.h5|nested.h5, weights: one.safetensors|' one.yaml >from.yaml
penstock train --json from.yaml >from.json
python3 -c 'import json; a, b = (json.load(open(f))["steps"] for f in ("one.json", "from.json"))
assert b[0]["loss"] < a[2]["loss"], (a, b)'
sed 's|nested.h5|nested.h5, weights: one.safetensors, weight_names: [{from: trunk/, to: other/}]|' one.yaml >other.yaml
fails 3 "it lacks 'trunk/conv/kernel'.*the model has no 'trunk/conv/kernel'" "$PENSTOCK" train other.yaml
sed 's|nested.h5|nested.h5, weights: pictures.npy|' one.yaml >kind.yaml
fails 3 '.safetensors and .npz are possible' "$PENSTOCK" train kind.yaml

# and without a training, the way home has them, from a file of 16 bits, too
python3 - <<'PY'
import json, struct
raw = open("h5.safetensors", "rb").read()
length = struct.unpack("<Q", raw[:8])[0]
header, body = json.loads(raw[8:8 + length]), raw[8 + length:]
wide, half, at, narrow = {}, {}, 0, b""
rounded = bytearray(body)
for key, entry in header.items():
    if key == "__metadata__": continue
    begin, end = entry["data_offsets"]
    numbers = struct.unpack("<%de" % ((end - begin) // 4),
                            struct.pack("<%de" % ((end - begin) // 4), *struct.unpack("<%df" % ((end - begin) // 4), body[begin:end])))
    assert entry["dtype"] == "F32", entry
    rounded[begin:end] = struct.pack("<%df" % len(numbers), *numbers)
    half[key] = {"dtype": "F16", "shape": entry["shape"], "data_offsets": [at, at + 2 * len(numbers)]}
    narrow += struct.pack("<%de" % len(numbers), *numbers)
    at += 2 * len(numbers)
open("rounded.safetensors", "wb").write(raw[:8 + length] + bytes(rounded))
text = json.dumps(half).encode()
text += b" " * (-len(text) % 8)
open("narrow.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + narrow)
PY
job home.keras picture >home.yaml
job home_after.keras picture >after.yaml
"$PENSTOCK" export -q after.yaml -o after.safetensors
# loads MODEL WEIGHTS JOB PARAMETERS: exporting with `weights:` writes what exporting the parameters does
loads() {
    local end=${1##*.} name=${1%.*}
    sed "s|$1|$1, weights: $2.safetensors, weights_layout: penstock|" $3.yaml >loaded.yaml
    "$PENSTOCK" export -q loaded.yaml -o "loaded.$end"
    "$PENSTOCK" export -q $3.yaml --parameters $4.safetensors -o "trained.$end"
    cmp "trained.$end" "loaded.$end" || die "$name.$end: the weights of $2.safetensors are not written"
    ! cmp -s "reference/keras/$1" "loaded.$end" || die "$name.$end: nothing was written"
}
loads nested.h5 h5 h5 h5
loads nested.h5 narrow h5 rounded
loads home.keras after home after

# damaged files are refused, whatever libhdf5 does about them
head -c 9000 reference/keras/nested.h5 >short.h5
fails 4 'HDF5 cannot read' "$PENSTOCK" inspect short.h5
head -c 2000 reference/keras/nested.keras >short.keras
fails 4 'cannot be read as a zip archive' "$PENSTOCK" inspect short.keras
python3 - <<'PY'
import random
seed = open("reference/keras/nested.h5", "rb").read()
random.seed(3)
for i in range(40):
    bad = bytearray(seed)
    for _ in range(3):
        at = random.randrange(96, len(bad))
        bad[at] = random.randrange(256)
    open("bad%d.h5" % i, "wb").write(bad)
PY
for file in bad*.h5; do
    code=0
    timeout 60 "$PENSTOCK" inspect "$file" >said 2>&1 || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 4 ] || die "$file: exit code $code: $(cat said)"
done
