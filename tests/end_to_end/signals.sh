# shellcheck shell=bash
# What the tests of signals share: source behind common.sh. `messages` is what the command says on standard error.

# signal_job STEPS DEVICES FOLDER [REST_OF_DATA [MORE]]: a job of the small model, with what is in FOLDER
signal_job() {
    cat >job.yaml <<END
version: 1
model: {file: $3/mlp/model.onnx}
data:
  train: {format: npy, inputs: {input: $3/mlp/inputs.npy}, labels: $3/mlp/labels.npy}${4:+
  $4}
train: {loss: softmax_cross_entropy, seed: 1, optimizer: {adam: {lr: 0.001}}, batch: 8, microbatches: 2, steps: $1}
devices: [$2]
${5:-}
END
}

# wait_for PATTERN FILE: until a line of it matches
wait_for() {
    for _ in $(seq 600); do
        grep -qE -- "$1" "$2" 2>/dev/null && return
        sleep 0.1
    done
    die "$PWD: nothing like '$1' came within 60 s: $(tail -n 5 "$2")"
}

# ends PID CODES [WHAT]: within 20 s, with one of these codes
ends() {
    local code=0 killer
    (sleep 20 && kill -KILL "$1") 2>/dev/null &
    killer=$!
    wait "$1" || code=$?
    kill "$killer" 2>/dev/null || true
    [[ " $2 " = *" $code "* ]] || die "$PWD, ${3:-the signal}: exit code $code, expected $2: $(tail -n 5 messages)"
}
