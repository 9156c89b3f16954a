# Workers that read examples by themselves have the numbers of one device, in every format; what
# they may not read, or do not have, is named before the first step.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/data_jobs.sh"
python3 "$top/tests/end_to_end/make_data.py" . 42
printf '%s' "$(seq 1 400)" >text.txt

mixed='{name: a, memory: 1GiB, threads: 1}, {name: b, host: localhost, memory: 1GiB, threads: 1}'
idx='{format: idx, images: images.idx, labels: labels.idx}'

job alone "$idx" "$one"
expected=$(numbers alone)
job fed "$idx" "$started" coordinator
job auto "$idx" "$started"
job idx "$idx" "$started" workers
job within "$idx" "$mixed" workers
job idx_gz '{format: idx, images: images.idx.gz, labels: labels.idx.gz}' "$started" workers
job npy '{format: npy, inputs: {input: inputs.npy}, labels: labels.npy}' "$started" workers
/usr/bin/python3 - <<'END'
import numpy
inputs, labels = numpy.load("inputs.npy"), numpy.load("labels.npy")
for part, (first, last) in enumerate([(0, 5), (5, 6), (6, 42)]):
    numpy.save(f"inputs-{part}.npy", inputs[first:last])
    numpy.save(f"labels-{part}.npy", labels[first:last])
END
job parts '{format: npy, inputs: {input: ["inputs-[01].npy", inputs-2.npy]}, labels: "labels-*.npy"}' "$started" workers
job csv '{format: csv, file: table.csv, label_column: label}' "$started" workers 'scale: 0.00392156862745098'
job png '{format: images, folder: pictures, size: 28, channels: 1}' "$started" workers
for name in fed auto idx within idx_gz npy parts csv png; do
    found=$(numbers "$name")
    [ "$found" = "$expected" ] || die "$name: $found, one device has $expected"
done

# pictures are changed by chance in the same way, whoever reads them, and from wherever it goes on
augment='augment: [{random_crop: {padding: 3}}, horizontal_flip, {color_jitter: {brightness: 0.4}}, random_erasing]'
scale='scale: 0.00392156862745098'
job changed_alone "$idx" "$one" auto "$scale" "$augment"
changed=$(numbers changed_alone)
[ "$changed" != "$expected" ] || die 'nothing is changed'
for on in coordinator workers; do
    job changed "$idx" "$started" "$on" "$scale" "$augment"
    found=$(numbers changed)
    [ "$found" = "$changed" ] || die "changed, read by $on: $found, one device has $changed"
done
job changed_png '{format: images, folder: pictures, size: 28, channels: 1}' "$started" workers "$scale" "$augment"
found=$(numbers changed_png)
[ "$found" = "$changed" ] || die "pictures in files are changed otherwise: $found, $changed"
job stopped "$idx" "$one" auto "$scale" "$augment"
"$PENSTOCK" train stopped.yaml --steps 2 --checkpoint kept --save two.safetensors >two.txt
"$PENSTOCK" train stopped.yaml --checkpoint kept --continue --json --save rest.safetensors >rest.json
[ "$(json 'd["parameters_hash"]' <rest.json)" = "$(tail -n 1 <<<"$changed")" ] || die 'going on changes pictures otherwise'

# broken pictures are left out by all who read, and counted
cp -r pictures broken
first=$(find broken -name '*.png' | LC_ALL=C sort | head -n 1)
cp "$first" "${first%.png}a.png"
truncate -s 40 "${first%.png}a.png"
job broken '{format: images, folder: broken, size: 28, channels: 1, on_error: skip}' "$started" workers
found=$(numbers broken)
[ "$found" = "$expected" ] || die "a broken picture changes the others: $found, $expected"
grep -q '1 picture is left out, being broken: .*a.png' messages || die "not told of: $(cat messages)"

# words have the same numbers, whoever reads them
python3 - <<'END'
rows = [(i % 7 / 7, "red blue green".split()[i % 3], "cat dog".split()[i % 7 > 3]) for i in range(42)]
print("size,colour,animal", *(f"{a if i % 5 else ''},{b},{c}" for i, (a, b, c) in enumerate(rows)), sep="\n", file=open("words.csv", "w"))
print("size,colour,animal", *(f"{a},{b},dog" for a, b, c in rows if c == "dog"), sep="\n", file=open("dogs.csv", "w"))
END
for on in coordinator workers; do
    cat >"words_$on.yaml" <<YAML
version: 1
model: {layers: [{input: {shape: [4]}}, {dense: {units: 8, activation: relu}}, {dense: {units: 2}}]}
data:
  train: {format: csv, file: words.csv, label_column: animal, categories: one_hot, missing: mean}
  eval: {format: csv, file: dogs.csv, label_column: animal, categories: one_hot, missing: mean}
  read_on: $on
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.5}}, batch: 14, microbatches: 2, epochs: 40, seed: 3}
devices: [$started]
YAML
    numbers "words_$on" >"words_$on.txt"
done
cmp words_coordinator.txt words_workers.txt || die 'words have other numbers where workers read'
check 'd["evaluation"]["accuracy"] > 0.7' losses.json 'dogs alone are the class that they are in the training'

# workers that were started by hand read what they were allowed to
# worker NAME [OPTION...]: starts one, and sets `port`
worker() {
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 3 "${@:2}" 3>"$1.port" 2>"$1.log" &
    for ((i = 0; i < 200; i++)); do
        [ "$(wc -l <"$1.port")" -ge 2 ] && break
        sleep 0.05
    done
    port=$(head -n 1 "$1.port")
}
mkdir here elsewhere
cp images.idx labels.idx here
worker allowed --data "$PWD/here"
allowed=$port
worker forbidden
forbidden=$port
trap 'kill $(jobs -p) 2>kill.log || :; wait; rm -rf "$work"' EXIT
by_hand() { # PORT
    printf '{name: a, host: "127.0.0.1:%s", memory: 1GiB, threads: 1}' "$1"
}
inside='{format: idx, images: here/images.idx, labels: here/labels.idx}'
job hand "$inside" "$(by_hand "$allowed")" workers
[ "$(numbers hand)" = "$expected" ] || die 'a worker with --data has other numbers'
job unasked "$inside" "$(by_hand "$forbidden")" workers
fails 4 'data.read_on: workers, but this worker was started without --data' "$PENSTOCK" train unasked.yaml
job outside "$idx" "$(by_hand "$allowed")" workers
fails 4 "images.idx' is not in '.*here', which this worker may read" "$PENSTOCK" train outside.yaml
job hand_auto "$inside" "$(by_hand "$forbidden")"
[ "$(numbers hand_auto)" = "$expected" ] || die 'auto asks a worker to read that may not'

# a step that goes wrong is explained as before, though its inputs were read elsewhere
python3 - <<'END'
import struct
data = bytearray(open("inputs.npy", "rb").read())
data[-4:] = struct.pack("<f", float("nan"))
open("bad.npy", "wb").write(data)
END
job bad '{format: npy, inputs: {input: bad.npy}, labels: labels.npy}' "$started" workers
fails 8 "example 41 .counted from 0. has the value nan for 'input'" "$PENSTOCK" train bad.yaml
