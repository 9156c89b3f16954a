# Strangers take little of a worker, whatever they send: what it holds of callers before they say who they are is
# bounded, announced sizes are taken as bytes come, and what was taken is given back. Meanwhile it trains.
. tests/end_to_end/common.sh
trap 'kill $(jobs -p) 2>kill.log || :; wait; rm -rf "$work"' EXIT
strangers=$top/tests/end_to_end/strangers.py

mkfifo pipe
"$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 9>pipe 2>worker.log &
worker=$!
read -r port <pipe

# a sanitizer's memory is not the worker's
case $PENSTOCK in
*address* | *thread*) ;;
*) python3 "$strangers" "$worker" "$port" >taken || die "$(cat taken worker.log)" ;;
esac

# callers who say nothing, from the address that the training comes from: as many as may be, and more who want to
python3 "$strangers" --hold "$port" 600 >held &
holder=$!
for _ in {1..200}; do [ -s held ] || sleep 0.1; done
cat >job.yaml <<END_OF_JOB
version: 1
model: {file: reference/mlp/model.onnx}
data: {train: {format: npy, inputs: {input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy}}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {sgd: {lr: 0.05}}, batch: 8, microbatches: 4, epochs: 1}
devices: [{name: a, threads: 1, memory: 1GiB, host: "127.0.0.1:$port"}]
pipeline: {rendezvous_timeout: 30s}
END_OF_JOB
train_losses job.yaml >/dev/null
kill "$holder"

# who and which limit, in a few lines
grep -q 'refused a link from 127\.0\.0\.1:[0-9]*: its address has 256 connections that have not said who they are' \
    worker.log || die "$(cat worker.log)"
[ "$(wc -l <worker.log)" -le 60 ] || die "too many words: $(cat worker.log)"
