# What goes wrong in silence unless somebody looks: numbers that are not finite, outputs that are
# inputs, models that cannot be trained, and settings that are likely not meant.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 40
python3 - <<'END'
import math
import struct
def npy(name, kind, shape, numbers):
    text = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    form = {"f4": "f", "i8": "q"}[kind]
    data = struct.pack(f"<{len(numbers)}{form}", *numbers)
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)
inputs = [math.sin(i) for i in range(24 * 4)]
npy("x.npy", "f4", (24, 4), inputs)
npy("y.npy", "i8", (24,), [i % 3 for i in range(24)])
npy("real.npy", "f4", (24,), [i % 3 for i in range(24)])
for name, kind in (("rows", "f4"), ("whole_rows", "i8")): # one-hot
    npy(f"{name}.npy", kind, (24, 3), [int(i % 3 == k) for i in range(24) for k in range(3)])
npy("huge.npy", "f4", (24, 4), [3e38] * 96)
inputs[4 * 17 + 2] = math.nan
npy("nan.npy", "f4", (24, 4), inputs)
open("table.csv", "w").write("".join(f"{i % 7},{i % 5},{i % 4},{i % 2},{i % 3}\n" for i in range(24)))
END
for name in layer layer_half layer_half_input layer_double_input layer_softmax layer_log_softmax \
    layer_fixed_batch external; do
    cp "models/$name.onnx" .
done
cp models/external.data .

# job [MODEL [INPUTS [LABELS]]] writes job.yaml, lines 1 to 5; standard input comes behind
job() {
    {
        cat <<END
version: 1
model: {file: ${1:-layer}.onnx}
data:
  train: {format: npy, inputs: {x: ${2:-x}.npy}, labels: ${3:-y}.npy}
  eval: {format: npy, inputs: {x: ${2:-x}.npy}, labels: ${3:-y}.npy}
END
        cat
    } >job.yaml
}
train='train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 8, seed: 1, shuffle: false}'

# ---- numbers
job layer nan <<<"$train"
fails 8 '^job.yaml:4:.*: error: the data: example 17 \(counted from 0\) has the value -?nan for .x' "$PENSTOCK" train job.yaml -q
fails 8 'example 17 .* has the value' "$PENSTOCK" eval job.yaml -q
job layer huge <<<"$train"
fails 8 'error: the loss of examples 0 to 7 is (not a number|infinite)' "$PENSTOCK" eval job.yaml -q
# training goes well, its evaluation does not: what was learned is left, and the exit code says so
job <<<"$train"
sed -i '/eval:/s/x.npy/nan.npy/' job.yaml
echo 'outputs: {dir: run}' >>job.yaml
fails 8 'example 17 .* has the value' "$PENSTOCK" train job.yaml -q
[ -s run/parameters.safetensors ] || die 'the parameters are lost'
code=0
penstock train job.yaml --overwrite --json >train.json 2>messages || code=$?
[ "$code" = 8 ] || die "train --json: exit code $code"
check 'd["exit_code"] == 8 and len(d["steps"]) == 3' train.json

# ---- outputs
job <<<"$train"
cp layer.onnx before.onnx
ln -s layer.onnx link.onnx
ln layer.onnx same.onnx
for output in layer.onnx ./layer.onnx "$PWD/layer.onnx" link.onnx same.onnx; do
    fails 2 "error: --output: found \"$output\", which the model is read from, expected another file" \
        "$PENSTOCK" export job.yaml -o "$output"
done
fails 2 'error: --save: found "layer.onnx", which the model is read from' "$PENSTOCK" train job.yaml --save layer.onnx
mkdir left
echo 'outputs: {dir: left}' >>job.yaml
fails 3 'error: --save and outputs.dir: found left/parameters.safetensors for both, expected two files' \
    "$PENSTOCK" train job.yaml --save left/../left/parameters.safetensors
for output in trained.bin trained onnx .onnx.txt; do
    fails 2 "error: --output: found \"$output\", expected FILE.onnx" "$PENSTOCK" export job.yaml -o "$output"
    [ ! -e "$output" ] || die "$output was written"
done
job <<<"$train
outputs: {export: layer.onnx}"
fails 3 '^job.yaml:7:19: error: outputs.export: found "layer.onnx", which the model is read from' "$PENSTOCK" train job.yaml
sed -i 's/export: layer.onnx/export: trained.pt/' job.yaml
fails 3 '^job.yaml:7:19: error: outputs.export: found "trained.pt", expected FILE.onnx, FILE.pt2, FILE.safetensors, FILE.keras, FILE.h5, or FILE.pb' "$PENSTOCK" train job.yaml
sed -i 's/export: trained.pt/export: trained.pb/' job.yaml
fails 3 '^job.yaml:7:19: error: outputs.export: the model.s format is onnx; only one that came from TensorFlow' "$PENSTOCK" train job.yaml
cmp layer.onnx before.onnx || die 'the model was changed'
# external data is part of the model, under whatever name
ln -s external.data weights.onnx
job external <<<"$train
outputs: {export: weights.onnx}"
fails 3 'outputs.export: found "weights.onnx", which the model is read from' "$PENSTOCK" train job.yaml
cmp external.data models/external.data || die 'the external data was changed'
job <<<"$train"
penstock export job.yaml -q -o Trained.ONNX 2>/dev/null || die 'an ending in capitals'

# ---- element types
job layer_half <<<"$train"
penstock train job.yaml -q 2>half.txt
grep -q 'float16 or bfloat16; all of it is read as float32' half.txt || die "16 bits: $(cat half.txt)"
for case in "layer_double_input:the model's input 'x' takes float64, but data are float32 or int64"; do
    model=${case%%:*} says=${case#*:}
    job "$model" <<<"$train"
    fails 4 "^error: $says" "$PENSTOCK" train job.yaml
    penstock inspect "$model.onnx" >inspect.txt
    grep -q "^training     impossible: $says" inspect.txt || die "inspect: $(cat inspect.txt)"
    penstock inspect --json "$model.onnx" >inspect.json
    check 'd["can_be_trained"] is False and "float" in d["obstacle"]' inspect.json
done
penstock inspect --json layer.onnx >inspect.json
check 'd["can_be_trained"] is True and "obstacle" not in d' inspect.json

# ---- memory
job <<<"$train
devices: [{name: a, memory: 400B}]"
fails 5 '^job.yaml:7:29: error: device .a.: a buffer of .* does not fit' "$PENSTOCK" train job.yaml
grep -q 'optimizer state take .*, inputs of a microbatch [1-9].*, values passed along' fails.err || die "$(cat fails.err)"
grep -q 'devices\[0\].memory is the limit; a smaller train.batch' fails.err || die "$(cat fails.err)"
sed -i 's/memory: 400B/memory: 1MiB, reserve: 1MiB/' job.yaml
fails 3 '^job.yaml:7:44: error: device .a.: found a reserve of 1.00 MiB, expected less than its memory' "$PENSTOCK" train job.yaml

# ---- pictures
mkdir more
cp -r pictures more/
echo 'read me' >more/pictures/readme.txt
echo 'read me' >more/pictures/class0/notes.md
photos() {
    cat >job.yaml <<END
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: images, folder: more/pictures, size: 28, channels: 1}}
$train
END
}
photos
penstock train job.yaml -q 2>messages || die "stray files: $(cat messages)"
grep -q '^warning: 2 files are left out, being no pictures (.jpg, .jpeg, .png, .webp or .bmp): more/pictures/readme.txt, ...$' messages ||
    die "stray files: $(cat messages)"
picture=$(find more/pictures/class0 -name '*.png' -print -quit)
cp "$picture" more/pictures/lost.png
fails 3 "'more/pictures/lost.png' is not in the folder of a class" "$PENSTOCK" train job.yaml
rm more/pictures/lost.png
mkdir more/pictures/class0/deeper
fails 3 "'more/pictures/class0/deeper' is a folder, expected pictures" "$PENSTOCK" train job.yaml
rmdir more/pictures/class0/deeper
echo hello >more/pictures/class0/broken.png
fails 3 'class0/broken.png' "$PENSTOCK" train job.yaml -q

# ---- settings that are likely not meant
# warns TEXT: training says it, and goes on
warns() {
    penstock train job.yaml -q 2>messages || die "$1: $(cat messages)"
    grep -qE "^warning: $1" messages || die "expected a warning '$1': $(cat messages)"
    penstock train job.yaml -q --json >/dev/null 2>messages
    grep -qE "^warning: $1" messages || die "expected a warning '$1' with --json: $(cat messages)"
}
quiet() {
    penstock train job.yaml -q 2>messages || die "$(cat messages)"
    ! grep -v 'nothing of what is trained will be kept' messages || die "expected no warning: $(cat messages)"
}
job <<<"$train"
quiet
job layer_softmax <<<"$train"
quiet # trained by its logits
job layer_softmax <<<"${train/softmax_cross_entropy/negative_log_likelihood}"
warns "the model's output 'y' is a softmax, but negative_log_likelihood takes its logarithm"
job layer_log_softmax <<<"${train/softmax_cross_entropy/negative_log_likelihood}"
quiet
job <<<"${train/batch: 8/batch: 8, warmup: 3 steps}"
warns 'warmup is 3 steps, but the training has 3: the learning rate rises until the end'
job <<<"${train/batch: 8/batch: 8, warmup: 2 steps}"
quiet
job <<<"$train
devices: [{name: a, threads: 999}]"
warns "device 'a' has 999 threads, but this process may use [0-9]+ cores?: expect it to be slow"
job <<<"${train/batch: 8/batch: 8, microbatches: 2}
devices: [{name: a, threads: 999}, {name: b, host: localhost, threads: 998, memory: 1GiB}, {name: c, host: localhost, threads: 1}]
placement: {strategy: round_robin}"
warns "device 'b' has 998 threads, but worker 2 \(127.0.0.1:[0-9]+\) may use [0-9]+ cores?: expect it to be slow"
warns "device 'a' has 999 threads, but this process may use [0-9]+ cores?: expect it to be slow"
[ "$(grep -c 'expect it to be slow' messages)" -eq 2 ] || die "each device is warned of once: $(cat messages)"
job <<<"${train/batch: 8/batch: 8, clip_norm: 1e-31}"
fails 3 'error: train.clip_norm: found "1e-31", expected a number of at least 1e-30' "$PENSTOCK" train job.yaml

# ---- hints
job <<<"$train"
sed -i 's/{format: npy.*/{format: csv, file: table.csv}/' job.yaml
fails 3 'the shape \[5\], but the model' "$PENSTOCK" train job.yaml
grep -q 'all columns are inputs; label_column says which one has the labels: its name, or "-1" for the last' fails.err ||
    die "$(cat fails.err)"
job layer x real <<<"$train"
fails 3 '^job.yaml:4:52: error: the data gives float32 for .labels., which takes int64' "$PENSTOCK" train job.yaml
grep -q 'label_type: index makes them class indices' fails.err || die "$(cat fails.err)"
sed -i 's/real.npy/real.npy, label_type: index/' job.yaml
penstock train job.yaml -q || die 'label_type: index'
# what is wrong with a change to pictures is said of its line
job layer x <<<"$train"
sed -i '4i\  augment: [horizontal_flip, random_resized_crop]' job.yaml
fails 3 '^job.yaml:4:12: error: augment\[1\]: found random_resized_crop, expected it first' "$PENSTOCK" train job.yaml
sed -i '4s/\[.*/[random_erasing: {fill: 1e300}]/' job.yaml
fails 3 'job.yaml:4:[0-9]*: error: data.augment\[0\].random_erasing.fill: found "1e300", expected a number from' "$PENSTOCK" train job.yaml
# what is said of one-hot labels works, and does not lead back
for labels in rows whole_rows 'rows.npy, label_type: index' 'whole_rows.npy, label_type: number'; do
    job layer x "${labels%.npy}" <<<"$train"
    sed -i 's/\(label_type: [a-z]*\).npy/\1/' job.yaml
    fails 3 '^job.yaml:4:52: error: the data gives' "$PENSTOCK" train job.yaml
    grep -q 'softmax_cross_entropy with probabilities: true, and label_type: number' fails.err ||
        die "$labels: $(cat fails.err)"
    grep -q 'label_type: index' fails.err && die "$labels: sent in a circle: $(cat fails.err)"
    job layer x "${labels%%.npy*}" <<<"${train/entropy/entropy, probabilities: true}"
    sed -i 's/rows.npy/rows.npy, label_type: number/' job.yaml
    penstock train job.yaml -q 2>messages || die "$labels: what is said does not work: $(cat messages)"
done
job layer x y <<<"${train/entropy/entropy, probabilities: true}"
fails 3 'class indices are taken by softmax_cross_entropy without probabilities: true' "$PENSTOCK" train job.yaml
photos
rm more/pictures/class0/broken.png
sed -i 's/^data: {\(.*\)}$/data:\n  \1\n  normalize: {mean: 0.5, std: [1, 2, 3]}/' job.yaml
fails 3 '^job.yaml:5:31: error: std: found 3 values, but examples have 1 channel, expected one value, or one for each channel' \
    "$PENSTOCK" train job.yaml
sed -i 's/mean: 0.5, std: \[1, 2, 3\]/mean: [1, 2]/' job.yaml
fails 3 '^job.yaml:5:21: error: mean: found 2 values' "$PENSTOCK" train job.yaml
penstock inspect layer_fixed_batch.onnx >inspect.txt
grep -q '^batch        4, fixed by the model$' inspect.txt || die "$(cat inspect.txt)"
penstock inspect --json layer_fixed_batch.onnx >inspect.json
check 'd["batch"] == 4' inspect.json
