# What a newcomer gets wrong: each mistake has its exit code, its position, and a message that says
# what was found and what is possible. The messages are in mistakes_test.stdout.exact.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_data.py" . 40
cp reference/mlp/model.onnx model.onnx
ln -s models/unsupported.onnx unsupported.onnx

cat >good.yaml <<'END'
version: 1
model: {file: model.onnx}
data:
  train: {format: idx, images: images.idx, labels: labels.idx}
  holdout: 0.25
train:
  loss: softmax_cross_entropy
  optimizer: {sgd: {lr: 0.1}}
  batch: 8
  epochs: 1
END

# wrong SED_EXPRESSION...: trains by the good job after these changes
wrong() {
    local options=()
    for change in "$@"; do
        options+=(-e "$change")
        printf '# %s\n' "$change"
    done
    sed "${options[@]}" good.yaml >job.yaml
    show "$PENSTOCK" train job.yaml
}

echo '=== the command line'
show "$PENSTOCK"
show "$PENSTOCK" trian job.yaml | sed "s/possible: train, .*/possible: train, .../" # verbs come and go
show "$PENSTOCK" train
show "$PENSTOCK" train one.yaml two.yaml
show "$PENSTOCK" train model.onnx
show "$PENSTOCK" sweep good.yaml
show "$PENSTOCK" train good.yaml --stpes 3
show "$PENSTOCK" train good.yaml --epochs 3
show "$PENSTOCK" train good.yaml --batch-size=3
show "$PENSTOCK" train good.yaml --steps
show "$PENSTOCK" train good.yaml --steps 0
show "$PENSTOCK" train good.yaml --steps many
show "$PENSTOCK" train good.yaml --json=yes
show "$PENSTOCK" predict good.yaml
show "$PENSTOCK" predict good.yaml -o out.txt
show "$PENSTOCK" predict good.yaml -o out.npy --name probabilities
show "$PENSTOCK" inspect model.onnx --dump svg

echo '=== files that are not what they should be'
: >empty.yaml
: >empty.onnx
mkdir folder
head -c 5000 model.onnx >cut.onnx
printf '\001\002\003' >binary.yaml
echo 'hello' >text.yaml
printf 'train: [1, 2\n' >open.yaml
mkfifo pipe pipe.onnx
show "$PENSTOCK" train nowhere.yaml
show "$PENSTOCK" train folder
show "$PENSTOCK" train empty.yaml
show "$PENSTOCK" train binary.yaml
show "$PENSTOCK" train text.yaml
show "$PENSTOCK" train open.yaml
printf 'inputs: {x: {shape: [4]}}\nlayers: [dense: 2]\n' >layers.yaml
show "$PENSTOCK" train layers.yaml
show "$PENSTOCK" explain good.yaml fc1
show "$PENSTOCK" train good.yaml --set model.weights=folder
show "$PENSTOCK" train good.yaml --set model.weights=weights.pth
show "$PENSTOCK" train pipe
show "$PENSTOCK" train model.onnx
show "$PENSTOCK" inspect nowhere.onnx
show "$PENSTOCK" inspect folder
show "$PENSTOCK" inspect good.yaml
show "$PENSTOCK" inspect empty.onnx
show "$PENSTOCK" inspect cut.onnx
show "$PENSTOCK" inspect pipe.onnx
show "$PENSTOCK" inspect unsupported.onnx

echo '=== keys of the job'
wrong 's/version: 1/version: 2/'
wrong '/version/d'
wrong 's/epochs/epoch/'
wrong 's/epochs: 1/epochs: ten/'
wrong 's/epochs: 1/epochs: 0/'
wrong 's/sgd: {lr: 0.1}/rprop: {lr: 0.1}/'
wrong 's/{sgd: {lr: 0.1}}/sgd/'
wrong 's/lr: 0.1/lr: -1/'
wrong 's/softmax_cross_entropy/cross_entropy/'
wrong 's/format: idx/format: mnist/'
wrong 's/format: idx/format: csv/'
wrong 's/batch: 8/batch: 8, microbatches: 3/' 's/^train:/train: {/' 's/^  \(loss\|optimizer\|batch\)\(.*\)/  \1\2,/' 's/^  epochs: 1/  epochs: 1}/'
wrong 's/batch: 8/batch: 8\n  batch: 16/'
wrong 's/batch: 8/batch: 8\n  freeze: "("/'
wrong 's/batch: 8/batch: 8\n  step: 1/'
wrong 's/^train:/plcement: {}\ntrain:/'
wrong '$a devices: 2'
wrong '$a pipeline: gpipe'
wrong 's/^model: .*/model: model.onnx/'
wrong '$a devices: [{name: a, memory: 2}]'
wrong '$a devices: [{name: a, memory: 2 gigs}]'
wrong '$a devices: [{name: a, kind: gpu}]'
wrong '$a devices: [{name: a}, {name: a}]'
wrong '$a placement: {pin: [{nodes: "^nothing", to: cpu}]}'
wrong '$a placement: {pin: [{nodes: "^/layers", to: gpu}]}'

echo '=== data'
printf '\037\213\010garbage' >garbage.gz
head -c 9000 images.idx >cut.idx
head -c 900 images.idx.gz >cut.gz
head -c 9000 inputs.npy >cut.npy
: >empty.npy
python3 - <<'END'
import struct
data = open("labels.idx", "rb").read()
open("high.idx", "wb").write(data[:-3] + b"\x0c" + data[-2:])
open("short.idx", "wb").write(struct.pack(">BBBBI", 0, 0, 8, 1, 20) + data[-20:])
open("wide.idx", "wb").write(struct.pack(">BBBB3I", 0, 0, 8, 3, 40, 32, 32) + bytes(40 * 32 * 32))
open("none.idx", "wb").write(struct.pack(">BBBB3I", 0, 0, 8, 3, 0, 28, 28))
lines = open("table.csv").read().split("\n")
open("word.csv", "w").write("\n".join(lines[:3] + ["x" + lines[3]] + lines[4:]))
open("ragged.csv", "w").write("\n".join(lines[:5] + [lines[5] + ",7"] + lines[6:]))
END
mkdir -p strays/cat notes/cat odd/cat odd/dog
echo hello >strays/cat/notes.txt
echo hello >notes/readme.txt
echo hello >odd/cat/1.png
cp pictures/class0/0000.png odd/dog/1.png
# idx FILES, npy FILES, …: trains on these instead
files() { wrong "s#{format: idx.*#{$1}#" "${@:2}"; }
files 'format: idx, images: nowhere.idx, labels: labels.idx'
files 'format: idx, images: folder, labels: labels.idx'
files 'format: idx, images: pipe, labels: labels.idx'
files 'format: idx, images: images.idx, labels: labels.idx.gzz'
files 'format: idx, images: labels.idx, labels: labels.idx'
files 'format: idx, images: table.csv, labels: labels.idx'
files 'format: idx, images: cut.idx, labels: labels.idx'
files 'format: idx, images: cut.gz, labels: labels.idx'
files 'format: idx, images: garbage.gz, labels: labels.idx'
files 'format: idx, images: none.idx, labels: labels.idx'
files 'format: idx, images: wide.idx, labels: labels.idx'
files 'format: idx, images: images.idx, labels: short.idx'
files 'format: idx, images: images.idx, labels: high.idx'
files 'format: idx, images: images.idx'
files 'format: npy, inputs: {input: labels.npy}, labels: labels.npy'
files 'format: npy, inputs: {input: inputs.npy}, labels: inputs.npy'
files 'format: npy, inputs: {image: inputs.npy}, labels: labels.npy'
files 'format: npy, inputs: {input: inputs.npy, more: inputs.npy}, labels: labels.npy'
files 'format: npy, inputs: inputs.npy, labels: labels.npy'
for shape in 3,4,2 4,2,3; do
    /usr/bin/python3 -c "import numpy; numpy.save('turned.npy', numpy.zeros([40, $shape], numpy.float32))"
    sed 's#file: model.onnx#inputs: {x: {shape: [2, 3, 4]}}, layers: [flatten, dense: 10]#
        s#{format: idx.*#{format: npy, inputs: {x: turned.npy}, labels: labels.npy}#' good.yaml >turned.yaml
    show "$PENSTOCK" train turned.yaml
done
files 'format: npy, inputs: {input: cut.npy}, labels: labels.npy'
files 'format: npy, inputs: {input: empty.npy}, labels: labels.npy'
files 'format: npy, inputs: {input: images.idx}, labels: labels.npy'
files 'format: csv, file: table.csv, label_column: class'
files 'format: csv, file: table.csv'
files 'format: csv, file: word.csv, label_column: label'
files 'format: csv, file: ragged.csv, label_column: label'
files 'format: csv, file: table.csv, label_column: label, delimiter: ";"'
files 'format: images, folder: nowhere, size: 28, channels: 1'
files 'format: images, folder: folder, size: 28, channels: 1'
files 'format: images, folder: strays, size: 28, channels: 1'
files 'format: images, folder: notes, size: 28, channels: 1'
files 'format: images, folder: odd, size: 28, channels: 1' '/holdout/d'
files 'format: images, folder: pictures, size: 28'
files 'format: images, folder: pictures, size: 32, channels: 1'
wrong 's/holdout: 0.25/holdout: 1/'
wrong 's/holdout: 0.25/holdout: 0.001/'
wrong 's/holdout: 0.25/eval: {format: idx, images: wide.idx, labels: labels.idx}/'
wrong 's/holdout: 0.25/eval: {format: idx, images: images.idx, labels: high.idx}/'
wrong 's/batch: 8/batch: 800\n  drop_last: true/'
sed '/holdout/d' good.yaml >job.yaml
show "$PENSTOCK" eval job.yaml

echo '=== model and training'
wrong 's/model.onnx/modle.onnx/'
wrong 's/model.onnx/cut.onnx/'
wrong 's/model.onnx/unsupported.onnx/'
wrong 's/batch: 8/batch: 8\n  freeze: "^conv"/'
wrong 's/batch: 8/batch: 8\n  freeze: "."/'
wrong 's/batch: 8/batch: 8\n  groups: [{match: "bias$", lr_scale: 0.1}, {match: "^conv", weight_decay: 0}]/'
wrong 's/batch: 8/batch: 8\n  groups: [{match: ".", lr_scale: 0.1}, {match: "bias$", weight_decay: 0}]/'
wrong 's/batch: 8/batch: 8\n  groups: [{match: ".", freeze: true}]/'
wrong 's/loss: .*/loss: output/'
wrong 's/loss: .*/loss: mean_squared_error/'
wrong 's/batch: 8/batch: 8\n  loss_output: scores/'
show "$PENSTOCK" train good.yaml --parameters nowhere.safetensors
show "$PENSTOCK" train good.yaml --parameters cut.onnx
sed 's#model.onnx#reference/lenet/model.onnx#' good.yaml >lenet.yaml
penstock train -q lenet.yaml --no-eval --steps 1 --save lenet.safetensors
show "$PENSTOCK" eval good.yaml --parameters lenet.safetensors

echo '=== places that cannot be written'
show "$PENSTOCK" train good.yaml --save nowhere/x.safetensors
show "$PENSTOCK" train good.yaml --save folder
wrong '$a outputs: {dir: good.yaml}'
wrong '$a outputs: {dir: good.yaml/run}'
wrong '$a outputs: {export: nowhere/x.onnx}'
show "$PENSTOCK" predict good.yaml -o nowhere/x.npy
show "$PENSTOCK" export good.yaml -o folder

# What the messages above cannot show, because their numbers are the machine's.
sed '$a devices: [{name: small, memory: 100KiB}]' good.yaml >job.yaml
fails 5 "device 'small': .* does not fit, .* of 100 KiB are in use" "$PENSTOCK" train job.yaml
sed 's/batch: 8/batch: 1000000000/' good.yaml >job.yaml
fails 5 "device 'cpu': .* does not fit" "$PENSTOCK" train -q job.yaml
sed 's/lr: 0.1/lr: 1000000000/' good.yaml >job.yaml
fails 8 'error: step [23], microbatch 0 .*elements are infinite or not a number.*the bits are the same' "$PENSTOCK" train -q job.yaml

# with --json an error leaves nothing on standard output, or one object that tells of it
sed 's/labels: labels.idx/labels: x/' good.yaml >other.yaml
code=0
penstock train --json other.yaml >out.json 2>messages || code=$?
[ "$code" = 3 ] || die "exit code $code: $(cat messages)"
grep -q "cannot open 'x'" messages || die "$(cat messages)"
check 'd["exit_code"] == 3 and "cannot open" in d["error"]' out.json
code=0
penstock train --json job.yaml >out.json 2>messages || code=$?
[ "$code" = 8 ] || die "exit code $code: $(cat messages)"
check 'd["exit_code"] == 8 and "step" in d["error"] and len(d["steps"]) >= 1' out.json

# standard output that takes nothing
for arguments in 'inspect model.onnx' 'inspect --json model.onnx' 'doctor' 'schema' \
    'train --json -q good.yaml' 'eval -q good.yaml' '--help' 'train --help'; do
    code=0
    # shellcheck disable=SC2086 # words
    penstock $arguments >/dev/full 2>messages || code=$?
    [ "$code" = 1 ] || die "$arguments >/dev/full: exit code $code: $(cat messages)"
    grep -q 'error: cannot write' messages || die "$arguments >/dev/full: $(cat messages)"
done
# and a reader that goes away is no reason for a message
{ penstock schema --json 2>messages || true; } | head -c 10 >/dev/null
[ ! -s messages ] || die "a closed pipe: $(cat messages)"
[ "$(find . -name '*.part' | wc -l)" = 0 ] || die "left: $(find . -name '*.part')"
