# Weights of float16 and bfloat16 are read as float32, and written in their own type where that is
# asked for: rounded as PyTorch rounds them, in ONNX and in safetensors, and read again.
. tests/end_to_end/common.sh
python3 -m zipfile -e reference/pytorch/rounding.npz .
python3 - <<'END'
import json, struct
def npy(name):
    raw = open(name + ".npy", "rb").read()
    return raw[10 + struct.unpack_from("<H", raw, 8)[0]:]
def save(name, rows, kind, data):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {rows}, }}".ljust(117) + "\n"
    open(name, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + data)
numbers = npy("float32")
assert len(numbers) == 1024 and len(npy("float16")) == len(npy("bfloat16")) == 512
about = {name: {"dtype": "F32", "shape": [16, 16], "data_offsets": [1024 * i, 1024 * i + 1024]}
         for i, name in enumerate("wv")}
header = json.dumps(about).encode()
open("numbers.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + numbers + numbers)
save("x.npy", (8, 16), "<f4", struct.pack("<128f", *(i % 7 / 4 - 0.5 for i in range(128))))
save("y.npy", (8,), "<i8", struct.pack("<8q", *range(8)))
END
job() { # MODEL [MORE OF outputs]
    cat <<END
version: 1
model: {file: $1}
data: {train: {format: npy, inputs: {x: x.npy}, labels: y.npy}, eval: {format: npy, inputs: {x: x.npy}, labels: y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.01}}, batch: 8, steps: 2}
outputs: {${2-}}
END
}
job reference/pytorch/halves.onnx >halves.yaml
export_numbers() { # FILE [OPTION...]
    "$PENSTOCK" export halves.yaml --parameters numbers.safetensors -o "$@" 2>said ||
        die "$*: not exported: $(cat said)"
}
# has FILE TYPE...: the tensors of a safetensors file, in order of their names, or their bytes in
# any other, are what PyTorch makes of the numbers
has() {
    python3 - "$@" <<'END'
import json, struct, sys
file, *kinds = sys.argv[1:]
raw = open(file, "rb").read()
short = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
for name, kind in zip(["w", "v"], kinds):
    npy = open(kind + ".npy", "rb").read()
    expected = npy[10 + struct.unpack_from("<H", npy, 8)[0]:]
    if not file.endswith(".safetensors"):
        assert raw.count(expected) == kinds.count(kind), (file, name, kind)
        continue
    length, = struct.unpack_from("<Q", raw)
    about = json.loads(raw[8:8 + length])[name]
    first, last = (8 + length + at for at in about["data_offsets"])
    assert about["dtype"] == short[kind] and about["shape"] == [16, 16], (file, name, about)
    assert raw[first:last] == expected, (file, name, kind)
END
}

# ONNX: float32, or its own types where that is asked for; a line says which
export_numbers plain.onnx
has plain.onnx float32 float32 || die 'plain.onnx: other bytes'
grep -q 'plain.onnx: 2 tensors were read as float16 or bfloat16 and written as float32; types: own keeps them' said ||
    die "plain.onnx: said $(cat said)"
export_numbers own.onnx --types own
has own.onnx float16 bfloat16 || die 'own.onnx: other bytes'
grep -q 'own.onnx: 2 tensors are written as float16 or bfloat16, rounded to nearest even: as they were read' said ||
    die "own.onnx: said $(cat said)"

# safetensors: its own types, or float32
export_numbers own.safetensors
has own.safetensors float16 bfloat16 || die 'own.safetensors: other bytes'
export_numbers wide.safetensors --types float32
has wide.safetensors float32 float32 || die 'wide.safetensors: other bytes'

# what is written is read again: the same names and numbers, in ONNX and as weights
job own.onnx >again.yaml
"$PENSTOCK" export -q again.yaml -o again.safetensors || die 'own.onnx: not read'
cmp own.safetensors again.safetensors || die 'own.onnx has other weights'
"$PENSTOCK" export -q again.yaml -o twice.onnx --types own || die 'own.onnx: not written again'
cmp own.onnx twice.onnx || die 'own.onnx is written otherwise the second time'
sed 's|halves.onnx|halves.onnx, weights: own.safetensors|' halves.yaml >weights.yaml
"$PENSTOCK" export -q weights.yaml -o weights.safetensors || die 'own.safetensors: not read'
cmp own.safetensors weights.safetensors || die 'own.safetensors has other weights'
penstock predict -q again.yaml -o again.npy
penstock predict -q weights.yaml -o weights.npy
cmp again.npy weights.npy || die 'own.onnx computes otherwise'

# at the end of a training, on one device and on two, one of which is a process that weights are sent to
job reference/pytorch/halves.onnx 'export: trained.onnx, types: own' >trained.yaml
{
    sed 's/trained.onnx/two.onnx/' trained.yaml
    echo 'devices: [{name: a}, {name: b, host: localhost}]'
    echo 'placement: {pin: [{nodes: "^first", to: a}, {nodes: "^second", to: b}]}'
} >two.yaml
for job in trained two; do
    penstock train $job.yaml --save $job.safetensors >$job.out 2>$job.err || die "$job: $(cat $job.err)"
    "$PENSTOCK" export -q halves.yaml --parameters $job.safetensors -o $job.own.onnx --types own
done
cmp trained.onnx trained.own.onnx || die 'a training exports otherwise than export'
cmp trained.safetensors two.safetensors || die 'two devices train to other weights'

# the program of a .pt2 file says what its weights are
(cd "$work" && python3 -m zipfile -e reference/pytorch/half.npz .)
sed 's|reference/pytorch/halves.onnx|reference/pytorch/half.pt2|' halves.yaml >half.yaml
"$PENSTOCK" export half.yaml -o half.pt2 --types own 2>said || die "half.pt2: $(cat said)"
cmp reference/pytorch/half.pt2 half.pt2 || die 'an untrained .pt2 file is written otherwise'
fails 4 'says that [0-9]+ of its tensors are float16 or bfloat16, so they cannot be float32' \
    "$PENSTOCK" export half.yaml -o half.pt2 --types float32
fails 2 '--types: found "half", expected one of auto, float32, own' "$PENSTOCK" export half.yaml -o a.onnx --types half

# a file of TensorFlow has float32 alone, of weights that were read from 16 bits, too
cat >flow.yaml <<'END'
version: 1
model: {file: reference/tensorflow/stopped}
data: {train: {format: npy, inputs: {x: x.npy}, labels: y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.01}}, batch: 8, steps: 2}
END
"$PENSTOCK" export -q flow.yaml -o flow.safetensors || die 'stopped: not read'
python3 - <<'END'
import json, struct
raw = open("flow.safetensors", "rb").read()
length, = struct.unpack_from("<Q", raw)
header = json.loads(raw[8:8 + length])
narrow, wide = b"", []
for about in sorted(header.values(), key=lambda tensor: tensor["data_offsets"]):
    first, last = (8 + length + at for at in about["data_offsets"])
    assert about["dtype"] == "F32"
    numbers = struct.unpack(f"<{(last - first) // 4}f", raw[first:last])
    data = struct.pack(f"<{len(numbers)}e", *numbers)
    wide.append(struct.pack(f"<{len(numbers)}f", *struct.unpack(f"<{len(numbers)}e", data)).hex())
    about.update(dtype="F16", data_offsets=[len(narrow), len(narrow) + len(data)])
    narrow += data
text = json.dumps(header).encode()
open("narrow.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + narrow)
open("wide", "w").write("\n".join(wide))
END
sed 's|stopped|stopped, weights: narrow.safetensors|' flow.yaml >narrow.yaml
"$PENSTOCK" export narrow.yaml -o narrow.pb 2>said || die "narrow.pb: $(cat said)"
grep -qE 'tensors? (was|were) read as float16 or bfloat16 and written as float32$' said ||
    die "narrow.pb: said $(cat said)"
fails 4 'tensors were read from float16 or bfloat16, and are float32 in such a file' \
    "$PENSTOCK" export narrow.yaml -o own.pb --types own
python3 -c 'raw = open("narrow.pb", "rb").read()
assert all(raw.count(bytes.fromhex(line)) == 1 for line in open("wide"))' || die 'narrow.pb has other weights'
