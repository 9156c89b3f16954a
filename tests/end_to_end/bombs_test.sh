# Files that are not what they seem: small ones that would be very large unpacked, ones with holes,
# pipes and devices. Each is refused by name, soon, and without memory for it; what is rightly
# large is read.
. tests/end_to_end/common.sh
make=("$top/tests/end_to_end/make_bombs.py")
python3 "${make[@]}" make

held=(python3 "${make[@]}" run)
case $PENSTOCK in *address* | *thread*) held+=(100000) ;; *) held+=(160) ;; esac

job() { # job DATA [MODEL]
    cat <<END
version: 1
model: ${2:-"{inputs: {x: {shape: [4]}}, layers: [{dense: {units: 3, name: fc}}]}"}
data: {train: $1}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 2, steps: 1}
END
}

# ---- archives of weights: unpacked is what the model asks for
/usr/bin/env python3 -c 'open("x.csv", "w").write("1,2,3,4,0\n5,6,7,8,1\n")'
layers='{inputs: {x: {shape: [4]}}, layers: [{dense: {units: 3, name: fc}}], weights_layout: keras, weights: '
rows='{format: csv, file: x.csv, label_column: "-1", header: false}'
job "$rows" "$layers beside.npz}" >beside.yaml
job "$rows" "$layers instead.npz}" >instead.yaml
fails 3 "the model has no 'other'" "${held[@]}" "$PENSTOCK" train -q beside.yaml
fails 3 "'fc/kernel' is float32\[268435456\]" "${held[@]}" "$PENSTOCK" train -q instead.yaml

# ---- Keras' archives
fails 4 "weights.keras, 'model.weights.h5': [0-9]+ packed bytes would become 1073741828.*zip -0" \
    "${held[@]}" "$PENSTOCK" inspect weights.keras
fails 4 "config.keras, 'config.json': [0-9]+ packed bytes would become 1073741824" \
    "${held[@]}" "$PENSTOCK" inspect config.keras

# ---- gzip
text='{inputs: {t: {shape: [8], dtype: int64}}, layers: [{embedding: {input_dim: 128, output_dim: 4}}, {dense: {units: 128}}]}'
job '{format: text, file: text.gz, sequence: 8}' "$text" >text.yaml
fails 3 "text.gz: [0-9]+ packed bytes would become .*gunzip" "${held[@]}" "$PENSTOCK" train -q text.yaml
flat() { # flat ROWS: a model of pictures
    echo "{inputs: {x: {shape: [1, $1, 1024]}}, layers: [flatten, {dense: {units: 2}}]}"
}
job '{format: idx, images: images.gz, labels: labels.idx}' "$(flat 1024)" >images.yaml
fails 3 "images.gz: [0-9]+ packed bytes would become 2147483648.*gunzip" \
    "${held[@]}" "$PENSTOCK" train -q images.yaml
# which helps, without memory for it: it is mapped
{ gunzip -c images.gz 2>/dev/null || true; } | head -c 16 >images.idx
truncate -s $(((2 << 30) + 16)) images.idx # the zeros that follow, without writing them
job '{format: idx, images: images.idx, labels: labels.idx}' "$(flat 1024)" >images.yaml
timeout 120 "$PENSTOCK" train -q images.yaml 2>messages || die "unpacked: $(cat messages)"
rm images.idx
# masks are packed well, and rightly
job '{format: idx, images: masks.gz, labels: labels.idx}' "$(flat 48)" >masks.yaml
timeout 120 "$PENSTOCK" train -q masks.yaml 2>messages || die "masks: $(cat messages)"

# ---- holes
for file in sparse holes; do
    job "{format: csv, file: $file.csv, label_column: \"-1\"}" >$file.yaml
    fails 3 "$file.csv:[13]:1: error: a byte is zero" "${held[@]}" timeout -k 1 20 "$PENSTOCK" train -q $file.yaml
done
mkdir pictures pictures/a pictures/b
mv sparse.jpg pictures/a
cp one.png pictures/b
photos='{inputs: {x: {shape: [3, 8, 8]}}, layers: [flatten, {dense: {units: 2}}]}'
job '{format: images, folder: pictures, size: [8, 8]}' "$photos" >pictures.yaml
fails 3 "sparse.jpg' has 1099511627776 bytes, a picture has at most" timeout -k 1 20 "$PENSTOCK" train -q pictures.yaml

# ---- pipes, devices and folders, with a writer that never writes as without
mkfifo quiet
sleep 1000 >quiet &
sleeper=$!
trap 'kill $sleeper 2>/dev/null; case $BASHPID in $$) rm -rf "$work" ;; esac' EXIT
mkfifo pipe
for path in pipe quiet /dev/zero; do
    said="'$path': it is a pipe or a device, not a regular file"
    fails 3 "$said" "$PENSTOCK" train $path
    fails 3 "$said" "$PENSTOCK" plan $path
    job "{format: csv, file: $path, label_column: \"-1\"}" >other.yaml
    fails 3 "$said" "$PENSTOCK" train other.yaml
    job "{format: text, file: $path, sequence: 8}" "$text" >other.yaml
    fails 3 "$said" "$PENSTOCK" train other.yaml
done

# ---- checkpoints
python3 "$top/tests/end_to_end/make_data.py" . 40
cat >kept.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: inputs.npy}, labels: labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.01}}, batch: 20, steps: 2}
checkpoint: {dir: kept, every: 1 steps, keep: 2}
END
penstock train -q kept.yaml
for path in pipe quiet; do
    fails 4 "there is no checkpoint in $path" "$PENSTOCK" checkpoint verify $path
done
cp -r kept shard
shard=$(find shard/shards -name '*-s2-*')
rm "$shard"
mkfifo "$shard"
code=0
timeout -k 1 20 "$PENSTOCK" checkpoint verify shard >verified 2>&1 || code=$?
[ $code -eq 7 ] || die "a shard that is a pipe: exit code $code: $(cat verified)"
record=$(find kept/commit -name 'commit.*' | sort | tail -n 1)
rm "$record"
mkfifo "$record"
code=0
timeout -k 1 20 "$PENSTOCK" checkpoint verify kept >verified 2>&1 || code=$?
case $code in 0 | 124 | 137) die "a record that is a pipe: exit code $code: $(cat verified)" ;; esac
grep -qF "$record" verified || die "a record that is a pipe: $(cat verified)"
