# shellcheck shell=bash
# What tests share that train the models of make_training_models.py on one device and on several, and compare the
# numbers: `. tests/end_to_end/trainings.sh` first.
. tests/end_to_end/common.sh

# write_job FILE MODEL TRAIN DEVICES HOST PLACEMENT MORE: HOST is `process`, where devices are threads of the command,
# or else anything. Variables say more: `limit` of the examples; `has_eval`, when not empty, for data to evaluate with;
# `memory` of a device; `threads`, when `mixed`, for devices of one thread and of two.
write_job() {
    local d count=1 host='' data="format: npy, inputs: {x: $2_x.npy}, labels: $2_y.npy${limit:+, limit: $limit}"
    [ "$5" = process ] || host=', host: localhost'
    {
        cat <<END
version: 1
model: {file: $2.onnx}
data: {train: {$data}${has_eval:+, eval: {$data\}}}
train: {loss: softmax_cross_entropy, $3, seed: 3}
placement: {$6}
$7
devices:
END
        for ((d = 1; d <= $4; d++)); do
            [ "${threads:-}" = mixed ] && [ "$4" -gt 1 ] && count=$((d % 2 + 1))
            echo "  - {name: d$d, memory: ${memory:-1GiB}, threads: $count$host}"
        done
    } >"$1"
}

# sharded_job FILE MODEL TRAIN SHARD [DEVICES [HOST [PLACEMENT [MEMORY [MORE]]]]]
sharded_job() {
    local memory=${8:-1GiB}
    write_job "$1" "$2" "$3${4:+, shard: [$4]}" "${5:-1}" "${6:-process}" "seed: 5, time_limit: 1s${7:+, $7}" "${9:-}"
}

# pins PATTERN...: for `placement`, a pattern for each device
pins() {
    local d=1 list=''
    for pattern; do list+="{nodes: \"$pattern\", to: d$d}, " d=$((d + 1)); done
    echo "pin: [${list%, }]"
}

# numbers JOB [OPTION...]: losses of all steps in full, then the hash
numbers() {
    penstock train --json --no-eval "$@" 2>messages >losses.json || die "$*: $(cat messages)"
    json '" ".join([repr(s["loss"]) for s in d["steps"]] + [d["parameters_hash"]])' <losses.json
}

# near WHAT NUMBERS NUMBERS: but for what rounding makes of them; and not the same hash
near() {
    python3 - "$@" <<'END' || die "$1: other numbers"
import sys
a, b = (text.split() for text in sys.argv[2:])
assert len(a) == len(b) > 3 and a[-1] != b[-1], sys.argv[1:]
for x, y in zip(a[:-1], b[:-1]):
    assert abs(float(x) - float(y)) < 3e-4 * abs(float(x)), (sys.argv[1], x, y)
END
}

# await_commits FOLDER COUNT: until a training that runs has committed so many checkpoints there, or for 30 s
await_commits() {
    local i
    for ((i = 0; i < 1500; i++)); do
        [ "$(compgen -G "$1/commit/*" | wc -l)" -lt "$2" ] || break
        sleep 0.02
    done
}
