# Steps take no memory that they do not give back: what the processes of a pipeline hold after
# thousands of steps is what they held at the tenth. 600 steps; 10,000 when PEN_LONG is set.
. tests/end_to_end/common.sh
case $PENSTOCK in *address* | *thread*)
    echo 'skipped: sanitizers keep what was freed'
    exit 0
    ;;
esac
python3 "$top/tests/end_to_end/make_training_models.py" . mlp
steps=600
[ "${PEN_LONG:-0}" = 0 ] || steps=10000

# watch NAME DEVICE...: at most 256 KiB more, which the allocator's caches take
watch() {
    local name=$1 device
    shift
    {
        cat <<END
version: 1
model: {file: mlp.onnx}
data: {train: {format: npy, inputs: {x: mlp_x.npy}, labels: mlp_y.npy}}
train:
  loss: softmax_cross_entropy
  optimizer: {sgd: {lr: 0.001}}
  batch: 16
  microbatches: 4
  steps: $steps
placement: {strategy: greedy}
pipeline: {schedule: 1f1b}
devices:
END
        for device; do echo "  - $device"; done
    } >job.yaml
    python3 "$top/tests/end_to_end/watch_memory.py" $steps "$PENSTOCK" train job.yaml --json --quiet >watched.json ||
        die "$name: no figures"
    [ -z "${LEAK_FIGURES:-}" ] || echo "$name $(cat watched.json)" >>"$LEAK_FIGURES"
    check 'd["grown"] <= 256' watched.json "$name grows"
}
watch one '{name: a, threads: 1}'
watch process '{name: a, threads: 1}' '{name: b, threads: 1}' '{name: c, threads: 1}'
watch grpc '{name: a, threads: 1, host: localhost}' '{name: b, threads: 1, host: localhost}'
