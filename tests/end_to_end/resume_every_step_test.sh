# A training of 50 steps is stopped after each of its steps and goes on, on 1 to 4 devices, under
# other strategies and schedules than before: all losses and the parameters are those of the whole.
# Here some of them; when PEN_LONG is set (make check-long) each step onto each number of devices.
# RESUME_FIGURES=FILE keeps what was found.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp

strategies=(greedy dynamic_programming random round_robin local_search)
schedules=(gpipe 1f1b zero_bubble auto interleaved)

# job FILE DEVICES CHOICE: epochs of 6 steps, the last of 10 examples
job() {
    local d
    {
        cat <<END
version: 1
model: {file: mlp.onnx}
data: {train: {format: npy, inputs: {x: mlp_x.npy}, labels: mlp_y.npy}}
train: {loss: softmax_cross_entropy, seed: 3, optimizer: {adamw: {lr: 0.003}}, clip_norm: 1, batch: 16, microbatches: 4,
  steps: 50, learning_rate: {cosine: {final: 0.0001}}, warmup: 5 steps}
placement: {strategy: ${strategies[$3 % 5]}, seed: $3, time_limit: 1s}
pipeline: {schedule: ${schedules[$3 / 5 % 5]}}
devices:
END
        for ((d = 1; d <= $2; d++)); do echo "  - {name: d$d, threads: 1}"; done
    } >"$1"
}

# steps JOB [OPTION...]: "STEP LOSS" of all steps, then "hash HASH"
steps() {
    penstock train --json "$@" 2>messages >losses.json || die "train $*: $(cat messages)"
    grep -oE '"step": [0-9]+|"loss": [^,}]+|"parameters_hash": "[0-9a-f]+"' losses.json |
        sed -E 's/^"step": //; s/^"loss": (.*)/=\1/; s/^"parameters_hash": /hash =/' | tr '\n' ' ' | sed 's/ =/=/g'
}

job whole.yaml 1 3
read -ra whole <<<"$(steps whole.yaml)"
[ "${#whole[@]}" -eq 51 ] || die "the whole has ${#whole[@]} figures, not 50 losses and a hash"

count=0
# resumed STEPS FROM TO: on FROM devices until a step, on TO after it
resumed() {
    local -a first second
    job before.yaml "$2" $((3 * $1 + $2))
    job after.yaml "$3" $((7 * $1 + 5 * $3 + 1))
    rm -rf kept
    read -ra first <<<"$(steps before.yaml --steps "$1" --checkpoint kept --every 50)"
    read -ra second <<<"$(steps after.yaml --resume kept)"
    [ "${first[*]:0:$1}" = "${whole[*]:0:$1}" ] || die "$*: ${first[*]} before, not ${whole[*]:0:$1}"
    [ "${second[*]}" = "${whole[*]:$1}" ] || die "$*: ${second[*]} after, not ${whole[*]:$1}"
    count=$((count + 1))
    echo "stopped after $1 of 50 steps on $2 devices, went on on $3: same" >>"${RESUME_FIGURES:-/dev/null}"
}

if [ "${PEN_LONG:-0}" = 1 ]; then
    for ((step = 1; step < 50; step++)); do
        for to in 1 2 3 4; do
            resumed $step $((step % 4 + 1)) $to
        done
    done
else
    for step in 1 5 6 7 12 17 24 25 30 31 42 49; do
        resumed $step $((step % 4 + 1)) $(((step / 4 + step) % 4 + 1))
    done
fi
echo "$count resumed trainings have the numbers of the whole"
