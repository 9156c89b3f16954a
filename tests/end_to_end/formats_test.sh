# The same pictures in every format give the same losses, to the last bit.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 40

# job NAME DATA...: a job that trains the multilayer perceptron on `data: DATA`
job() {
    cat >"$1.yaml" <<END
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: $2
  eval: $2
  normalize: {mean: 0.25, std: 0.5${3:+, $3}}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, epochs: 2, seed: 3}
END
}

job idx '{format: idx, images: images.idx, labels: labels.idx}'
job idx_gz '{format: idx, images: images.idx.gz, labels: labels.idx.gz}'
job npy '{format: npy, inputs: {input: inputs.npy}, labels: labels.npy}'
job csv '{format: csv, file: table.csv, label_column: label}' 'scale: 0.00392156862745098'
job png '{format: images, folder: pictures, size: 28, channels: 1}'
job bmp '{format: images, folder: bitmaps, size: 28, channels: 1}'
job wide '{format: images, folder: pictures, size: [28, 28], channels: 1}'

expected=$(train_losses idx.yaml)
evaluation=$(json 'd["evaluation"]' <losses.json)
hash=$(json 'd["parameters_hash"]' <losses.json)
[ "$(wc -w <<<"$expected")" -eq 6 ] || die "idx: $expected, expected 6 losses" # 16 + 16 + 8, twice
for name in idx_gz npy csv png bmp wide; do
    found=$(train_losses "$name.yaml")
    [ "$found" = "$expected" ] || die "$name: losses $found, idx has $expected"
    [ "$(json 'd["evaluation"]' <losses.json)" = "$evaluation" ] || die "$name: another evaluation"
    [ "$(json 'd["parameters_hash"]' <losses.json)" = "$hash" ] || die "$name: other parameters"
done

# JPEG, WebP and BMP files, gray and coloured, of another size, beside PNG
for class in first second; do
    mkdir -p "mixed/$class"
    cp "$top"/tests/fuzz/corpus/image/{gray,colour,progressive}.jpg "mixed/$class"
    cp "$top"/tests/fuzz/corpus/image/{gray,colour,palette,alpha}.png "mixed/$class"
    cp "$top"/tests/fuzz/corpus/webp/{lossy,lossless,alpha}.webp "$top"/tests/fuzz/corpus/bmp/{rle8,os2_4}.bmp "mixed/$class"
done
job mixed '{format: images, folder: mixed, size: 28, channels: 1}'
train_losses mixed.yaml >/dev/null
check 'd["evaluation"]["examples"] == 24 and all(s["loss"] > 0 for s in d["steps"])' losses.json mixed

# a film and a cut picture are left out, and the first is named
cp "$top"/tests/fuzz/corpus/webp/animated.webp mixed/first/a.webp
head -c 300 "$top"/tests/fuzz/corpus/webp/lossy.webp >mixed/second/cut.webp
fails 3 "'mixed/first/a.webp' is an animated WebP, expected a still picture" "$PENSTOCK" train -q mixed.yaml
fails 3 'with `on_error: skip` beside `format: images`, broken pictures are left out' "$PENSTOCK" train -q mixed.yaml
job skipped '{format: images, folder: mixed, size: 28, channels: 1, on_error: skip}'
"$PENSTOCK" train --json skipped.yaml >skipped.json 2>messages || die "skipped: $(cat messages)"
check 'd["evaluation"]["examples"] == 24' skipped.json skipped
grep -q "2 pictures are left out, being broken: 'mixed/first/a.webp' is an animated WebP" messages ||
    die "not told of: $(cat messages)"

# less than there is, and flat examples
job limited '{format: npy, inputs: {input: inputs.npy}, labels: labels.npy, limit: 5}'
train_losses limited.yaml >/dev/null
check '[s["examples"] for s in d["steps"]] == [5, 5]' losses.json limited
sed 's/^train:/  flatten: true\ntrain:/' npy.yaml >flat.yaml
[ "$(train_losses flat.yaml)" = "$expected" ] || die 'flat examples give other losses'
