# PyTorch's own files train as PyTorch does: losses to 1e-5, buffers too, on one device and on
# three, with the names of state_dict(). What is wrong with such a file is said, and how to mend it.
. tests/end_to_end/common.sh

# unpacks NAME.npz, and writes a job of NAME.pt2; of more microbatches than 1, the second argument
reference() {
    mkdir -p "$1"
    (cd "$1" && python3 -m zipfile -e "$top/tests/reference/pytorch/$1.npz" .)
    cat >"$1.yaml" <<END_JOB
version: 1
model: {file: reference/pytorch/$1.pt2}
data: {train: {format: npy, inputs: {x: $1/x.npy}, labels: $1/y.npy}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1, momentum: 0.9}}, batch: 8, microbatches: ${2:-1}, steps: 3, shuffle: false}
devices: [{name: a, threads: 1}]
END_JOB
}

cat >compare.py <<'PY'
import json, os, struct, sys
name = sys.argv[1]
def npy(path):
    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    kind = {"f8": "d", "f4": "f", "i8": "q"}[data[10:10 + length].split(b"'descr': '<")[1][:2].decode()]
    body = data[10 + length:]
    return struct.unpack("<%d%s" % (len(body) // struct.calcsize(kind), kind), body)
def near(a, b, what):
    assert len(a) == len(b), what
    for x, y in zip(a, b):
        assert abs(x - y) <= 1e-5 * max(1, abs(y)), "%s: %r, expected %r" % (what, x, y)
near([s["loss"] for s in json.load(open(name + ".json"))["steps"]], npy(name + "/losses.npy"), name)
raw = open(name + ".safetensors", "rb").read()
length = struct.unpack("<Q", raw[:8])[0]
header = json.loads(raw[8:8 + length])
for file in os.listdir(name):
    if not file.startswith("buffer."): continue
    entry = header[file[7:-4]]
    begin, end = entry["data_offsets"]
    code = {"F32": "f", "I64": "q"}[entry["dtype"]]
    body = raw[8 + length + begin:8 + length + end]
    near(struct.unpack("<%d%s" % (len(body) // struct.calcsize(code), code), body), npy(name + "/" + file), file)
PY

for name in views pictures tied plain fixed half numbered averages quantized nothing given; do
    case $name in averages | quantized) reference $name 4 ;; given) reference $name 2 ;; nothing) reference $name 8 ;; *) reference $name ;; esac
    penstock train --json $name.yaml --save $name.safetensors >$name.json 2>$name.err ||
        die "$name: $(cat $name.err)"
    python3 compare.py $name || die "$name does not train as PyTorch does"
    [ $name = half ] || {
        sed '$s/.*/devices: [{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}]/' $name.yaml >three.yaml
        penstock train --json three.yaml --save three.safetensors --overwrite >three.json
        cmp $name.safetensors three.safetensors || die "$name: three devices train to other parameters"
        echo 'pipeline: {recompute: stage}' >>three.yaml
        penstock train --json three.yaml --save three.safetensors --overwrite >three.json
        cmp $name.safetensors three.safetensors || die "$name: run again, it trains to other parameters"
    }
done
# what changes a buffer stays with what reads it, also where devices come by turns; an evaluation
# leaves buffers as they are
{ sed '$d' averages.yaml; cat; } >turns.yaml <<'END_JOB'
devices: [{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}]
placement: {strategy: round_robin, contiguous: false}
END_JOB
penstock train --json turns.yaml --save turns.safetensors >turns.json
cmp averages.safetensors turns.safetensors || die "placed by turns, it trains to other parameters"
# a tensor without elements goes from device to device as any other
for host in '' ', host: localhost'; do
    { sed '$d' nothing.yaml; sed "s/threads: 1/&$host/g; /devices/,\$p" -n turns.yaml; } >passed.yaml
    penstock train --json passed.yaml --save passed.safetensors --overwrite >passed.json
    cmp nothing.safetensors passed.safetensors || die "nothing${host:+ over processes}: it trains to other parameters"
done
sed 's|y.npy}}$|y.npy}, eval: {format: npy, inputs: {x: averages/x.npy}, labels: averages/y.npy}}|' averages.yaml >evaluated.yaml
penstock train --json evaluated.yaml --save evaluated.safetensors >evaluated.json
cmp averages.safetensors evaluated.safetensors || die "an evaluation changes buffers"
sed '$s/.*/devices: [{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}]/' evaluated.yaml >three.yaml
penstock train --json three.yaml --save three.safetensors --overwrite >three.json
python3 - <<'PY'
import json
one, three = (json.load(open(name + ".json"))["evaluation"] for name in ("evaluated", "three"))
assert one == three, (one, three)
PY

grep -q 'float16 or bfloat16' half.err || die "half: $(cat half.err)"

# names are those of state_dict(): for freezing, for placing, and in errors
sed 's/steps: 3/steps: 3, freeze: "^net[.]"/' pictures.yaml >frozen.yaml
penstock train --json frozen.yaml --save frozen.safetensors >frozen.json
python3 - <<'PY'
import json, struct
def read(path):
    raw = open(path, "rb").read()
    length = struct.unpack("<Q", raw[:8])[0]
    return {k: raw[8 + length:][slice(*v["data_offsets"])] for k, v in json.loads(raw[8:8 + length]).items() if k != "__metadata__"}
frozen, trained = read("frozen.safetensors"), read("pictures.safetensors")
assert frozen["net.0.weight"] != trained["net.0.weight"] and frozen["head.weight"] != trained["head.weight"]
PY
{ sed '$d' pictures.yaml; cat; } >placed.yaml <<'END_JOB'
devices: [{name: left, threads: 1}, {name: right, threads: 1}]
placement: {pin: [{nodes: "^net[.]", to: left}, {nodes: "^head/", to: right}]}
END_JOB
penstock train --json placed.yaml --save placed.safetensors >placed.json
cmp pictures.safetensors placed.safetensors || die "placed by module, it trains to other parameters"

# another batch than the file has
sed 's/batch: 8/batch: 4/' fixed.yaml >batch.yaml
fails 4 'exported for 8 examples at once, and is given 4.*dynamic_shapes=' "$PENSTOCK" train batch.yaml

# what depends on data, with the user's own line
fails 4 'higher_order.cond, 1 time, .*make_pytorch_references.py line [0-9]+: return torch.cond' "$PENSTOCK" inspect reference/pytorch/branches.pt2
fails 4 "changes 'linear' in place, which is trained, under no_grad.*" "$PENSTOCK" inspect reference/pytorch/hidden.pt2
grep -q 'make_pytorch_references.py line [0-9]*: y.clamp_' fails.err || die "hidden: $(cat fails.err)"

# a pickle, a truncated file, one packed again
python3 - <<'PY'
import zipfile
whole = open("reference/pytorch/tied.pt2", "rb").read()
open("short.pt2", "wb").write(whole[:len(whole) - 300])
with zipfile.ZipFile("reference/pytorch/tied.pt2") as source, \
        zipfile.ZipFile("packed.pt2", "w", zipfile.ZIP_DEFLATED) as packed:
    for name in source.namelist():
        packed.writestr(name, source.read(name))
with zipfile.ZipFile("pickle.pt", "w") as pickle:
    pickle.writestr("pickle/data.pkl", b"\x80\x02}.")
open("old.pt", "wb").write(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")  # as _use_new_zipfile_serialization=False begins
for method, name in (zipfile.ZIP_STORED, "script.pt"), (zipfile.ZIP_DEFLATED, "packed_script.pt"):
    with zipfile.ZipFile(name, "w") as script:
        script.writestr("script/data.pkl", b"\x80\x02}.")
        script.writestr("script/code/__torch__/net.py", b"class Net(Module):" * 9, method)
        script.writestr("script/constants.pkl", b"\x80\x02).")
PY
fails 4 'no end: [0-9]+ bytes are there' "$PENSTOCK" inspect short.pt2
fails 4 'compressed .method 8.*save the model anew' "$PENSTOCK" inspect packed.pt2
for name in pickle old; do # a state dict, or a whole model
    fails 4 'it is what torch.save writes: .*torch.export.save writes a model' "$PENSTOCK" inspect $name.pt
    grep -qF "    model.load_state_dict(torch.load('$name.pt'))  # of a whole model: model = torch.load('$name.pt'" fails.err ||
        die "$(cat fails.err)"
done
for name in script packed_script; do
    fails 4 'it is what torch.jit.save writes: ' "$PENSTOCK" inspect $name.pt
    grep -qF "    model.load_state_dict(torch.jit.load('$name.pt').state_dict())" fails.err || die "$(cat fails.err)"
    [ "$(grep -c '^    ' fails.err)" -eq 3 ] || die "three lines: $(cat fails.err)"
done

# the state_dict() of what was trained, whole: tied names, buffers that no step changes, 16 bits as they came
for name in views pictures tied half; do
    for end in pt2 safetensors; do
        "$PENSTOCK" export -q $name.yaml --parameters $name.safetensors -o $name.out.$end || die "$name as .$end"
    done
done
python3 - <<'PY'
import json, math, struct, zipfile
KINDS = {7: ("F32", 4), 5: ("I64", 8), 6: ("F16", 2), 13: ("BF16", 2)}
for name in ("views", "pictures", "tied", "half"):
    raw = open(name + ".out.safetensors", "rb").read()
    length = struct.unpack("<Q", raw[:8])[0]
    found = json.loads(raw[8:8 + length])
    found.pop("__metadata__", None)
    archive = zipfile.ZipFile(name + ".out.pt2")
    top = archive.namelist()[0].split("/")[0] + "/data/weights/"
    config = json.loads(archive.read(top + "model_weights_config.json"))["config"]
    assert set(found) == set(config), (name, sorted(set(found) ^ set(config)))
    for key, entry in config.items():
        meta, (begin, end) = entry["tensor_meta"], found[key]["data_offsets"]
        sizes = [size["as_int"] for size in meta["sizes"]]
        kind, width = KINDS[meta["dtype"]]
        assert (found[key]["dtype"], found[key]["shape"]) == (kind, sizes), (name, key, found[key])
        bytes_count = math.prod(sizes) * width
        start = meta["storage_offset"]["as_int"] * width
        right = archive.read(top + entry["path_name"])[start:start + bytes_count]
        assert raw[8 + length:][begin:end] == right, (name, key)
PY

# and it goes in again; of tied weights both names, which must agree
sed 's|file: reference/pytorch/tied.pt2|file: reference/pytorch/tied.pt2, weights: tied.out.safetensors|' tied.yaml >again.yaml
penstock train again.yaml --save again.safetensors >/dev/null
python3 - <<'PY'
import json, struct
raw = bytearray(open("tied.out.safetensors", "rb").read())
length = struct.unpack("<Q", raw[:8])[0]
raw[8 + length + json.loads(raw[8:8 + length])["gate.weight"]["data_offsets"][0]] ^= 1
open("untied.safetensors", "wb").write(raw)
PY
sed 's|tied.out|untied|' again.yaml >untied.yaml
fails 3 "'gate.weight' is tied or constant in the model, with other numbers" "$PENSTOCK" train untied.yaml
fails 2 'tied.out.safetensors", which the parameters are read from' "$PENSTOCK" export tied.yaml \
    --parameters tied.out.safetensors -o tied.out.safetensors

# without a training, the way home has the weights that the job names, those of 16 bits in their own type
sed 's|file: reference/pytorch/half.pt2|file: reference/pytorch/half.pt2, weights: half.out.safetensors|' half.yaml >loaded_half.yaml
sed 's|file: reference/pytorch/tied.pt2|file: reference/pytorch/tied.pt2, weights: tied.safetensors|' tied.yaml >loaded_tied.yaml
for name in tied half; do
    "$PENSTOCK" export -q loaded_$name.yaml -o loaded.pt2
    cmp $name.out.pt2 loaded.pt2 || die "$name: the loaded weights are not those that were trained"
    "$PENSTOCK" export -q loaded_$name.yaml -o loaded.safetensors
    cmp $name.out.safetensors loaded.safetensors || die "$name: the loaded state is not that which was trained"
    "$PENSTOCK" export -q $name.yaml -o own.pt2
    cmp reference/pytorch/$name.pt2 own.pt2 || die "$name: without weights the file is another"
done
sed 's|pictures.pt2|pictures.pt2, weights: pictures.safetensors|' pictures.yaml >loaded_pictures.yaml
"$PENSTOCK" export -q pictures.yaml --parameters pictures.safetensors -o trained.onnx
"$PENSTOCK" export -q loaded_pictures.yaml -o loaded.onnx
cmp trained.onnx loaded.onnx || die "pictures: loaded.onnx has other weights"
