# What a training leaves: it is said when nothing will be kept, and what is there from before is
# replaced only when somebody says so, before any work.
. tests/end_to_end/common.sh

# job [LINE...]: a training of two steps, with these lines more
job() {
    cat >job.yaml <<'END'
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.05}}, batch: 8, steps: 2}
devices: [{name: a, threads: 1}]
END
    printf '%s\n' "$@" >>job.yaml
}
unkept='warning: nothing of what is trained will be kept: .outputs: \{dir: run1\}. in the job, or --save FILE'

# warns COUNT COMMAND...: the command goes well, and says so many times that nothing is kept
warns() {
    local count=$1
    shift
    "$@" >said.out 2>said || die "$*: exit code $?: $(cat said)"
    [ "$(grep -cE "$unkept" said)" = "$count" ] || die "$*: expected $count warnings: $(cat said)"
}

job
warns 1 penstock train job.yaml
warns 1 penstock train -q job.yaml
warns 1 penstock train --json job.yaml
warns 0 penstock train job.yaml --save one.safetensors
warns 0 penstock train job.yaml --checkpoint kept
job 'outputs: {export: one.onnx}'
warns 0 penstock train job.yaml
job 'checkpoint: {dir: kept2, every: 1 steps}'
warns 0 penstock train job.yaml
job 'outputs: {dir: run1}'
warns 0 penstock train job.yaml

# refuses TEXT COMMAND...: exit code 2, and no file here was touched
refuses() {
    local text=$1 before
    shift
    before=$(find . -type f ! -name 'fails.*' -newer job.yaml -exec stat -c '%n %Y %i' {} + | sort)
    fails 2 "^error: $text" "$@"
    [ "$(find . -type f ! -name 'fails.*' -newer job.yaml -exec stat -c '%n %Y %i' {} + | sort)" = "$before" ] ||
        die "$*: it left or changed files"
}
there='which is there from before; another name keeps both, --overwrite replaces it'
refuses "outputs.dir: found run1/parameters.safetensors, $there\$" "$PENSTOCK" train job.yaml
refuses "outputs.dir: found run1/parameters.safetensors, $there, and --continue goes on from the checkpoints\$" \
    "$PENSTOCK" train job.yaml --checkpoint kept3
refuses "outputs.dir: " "$PENSTOCK" train job.yaml --parameters run1/parameters.safetensors
sed -i 's/input: ref/inptu: ref/' job.yaml # even where the job would not train
refuses "outputs.dir: " "$PENSTOCK" train job.yaml
job 'outputs: {dir: run1}'
penstock plan -q job.yaml -o job.plan >/dev/null
refuses "outputs.dir: " "$PENSTOCK" train job.plan
job 'outputs: {export: one.onnx}'
refuses "outputs.export: found one.onnx, $there" "$PENSTOCK" train job.yaml
job
refuses "--save: found one.safetensors, $there" "$PENSTOCK" train job.yaml --save one.safetensors
refuses "--save: found ./run1/../one.safetensors, $there" "$PENSTOCK" train job.yaml --save ./run1/../one.safetensors

# the ways out
before=$(stat -c %i run1/parameters.safetensors)
job 'outputs: {dir: run1, export: one.onnx}'
penstock train -q job.yaml --overwrite --save one.safetensors
[ "$(stat -c %i run1/parameters.safetensors)" != "$before" ] || die "--overwrite replaced nothing"
cmp run1/parameters.safetensors one.safetensors
job 'outputs: {dir: run2}'
penstock train -q job.yaml
job 'outputs: {dir: run1}' 'checkpoint: {dir: run1/kept, every: 1 steps}'
penstock train -q job.yaml --continue
penstock train -q job.yaml --continue # it is done, and says so by what it leaves
penstock train -q job.yaml --resume run1/kept
job 'outputs: {dir: run1}'
penstock train -q job.yaml --resume run1/kept --steps 2
: >empty.safetensors # a file without anything in it, as mktemp makes it, is nobody's work
penstock train -q job.yaml --overwrite --save empty.safetensors
job
: >empty2.safetensors
penstock train -q job.yaml --save empty2.safetensors

# what can be made again from what is kept is written anew
job 'outputs: {dir: run2}'
sed -i 's/{name: a, threads: 1}/&, {name: b, threads: 1}/' job.yaml
for _ in 1 2; do
    penstock export -q job.yaml -o out.onnx
    penstock plan -q job.yaml -o out.plan >/dev/null
    penstock train -q job.yaml --overwrite --report out.html --trace out.json
done
