# --sandbox: a verb does its work, and nothing outside of its folders is written.
. tests/end_to_end/common.sh

cat >job.yaml <<YAML
version: 1
model: {file: reference/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.001}}, batch: 8, microbatches: 2, steps: 4}
devices: [{name: a, threads: 1}, {name: b, threads: 1, host: localhost}]
checkpoint: {dir: out/kept}
outputs: {dir: out/run}
YAML

# readers of models need nothing but to read
for model in reference/mlp/model.onnx reference/keras/branching.h5 reference/keras/attending.keras; do
    penstock inspect "$model" >open.out
    penstock inspect --sandbox - "$model" >closed.out || die "$model: cannot be read in a sandbox"
    cmp open.out closed.out
done

# a training, with a worker process of its own, checkpoints and outputs, has the same numbers
mkdir out
train_losses job.yaml >open.losses
mv out/run open.run
rm -r out/kept
train_losses job.yaml --sandbox out >closed.losses
cmp open.losses closed.losses
cmp open.run/parameters.safetensors out/run/parameters.safetensors

# what is to be written elsewhere is named, and is not there
fails 3 "'elsewhere'.*Permission denied" "$PENSTOCK" train job.yaml --sandbox out --set outputs.dir=elsewhere
[ ! -e elsewhere ] || die 'something was written outside'
fails 2 "closed.safetensors.*Permission denied" "$PENSTOCK" train job.yaml -q --sandbox out/run --set outputs.dir=out/run/2 \
    --set checkpoint.dir=out/run/kept --save closed.safetensors
[ ! -e closed.safetensors ] || die 'something was written outside'

# a folder that is not there is no wish that could be kept
fails 3 "a sandbox: 'missing': No such file" "$PENSTOCK" inspect --sandbox missing reference/mlp/model.onnx

# a worker that takes links gives up calls by itself, in all of its threads
mkfifo port
"$PENSTOCK" worker --listen 127.0.0.1:0 --store kept --announce 9 9>port 2>worker.log &
worker=$!
read -r _ <port
for thread in /proc/$worker/task/*/status; do
    grep -q '^Seccomp:.*2$' "$thread" || die "$thread: $(cat "$thread")"
done
kill "$worker"
wait "$worker" || die "the worker ended with $?: $(cat worker.log)"
