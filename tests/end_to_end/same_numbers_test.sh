# The numbers of one device of one thread: losses of all steps and the hash of all parameters and
# statistics are the same for any number of devices of 1 to 3 threads, placement, schedule and transport (threads of one process; or
# processes, through shared memory where it is auto, or over gRPC). A part of the matrix runs
# here, all of it when PEN_LONG is set (make check-long); SAME_FIGURES=FILE keeps what was found,
# SAME_ONLY=PATTERN runs those whose "CASE TRANSPORT" matches.
. tests/end_to_end/common.sh

long=${PEN_LONG:-0}
python3 "$top/tests/end_to_end/make_training_models.py" . mlp branching tied
if [ "$long" = 1 ]; then
    python3 "$top/tests/end_to_end/make_training_models.py" . resnet18
else
    python3 "$top/tests/end_to_end/make_training_models.py" . resnet18:16
fi

# what is trained: 90, 70, 60 and 44 examples, so that the last batch of an epoch is short, and with
# 16 examples in 4 microbatches its last microbatch too
declare -A train
train[mlp]='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 20'
train[mlp_adamw]='optimizer: {adamw: {lr: 0.01}}, clip_norm: 0.5, batch: 20, microbatches: 5, steps: 20'
train[mlp_one]='optimizer: adam, batch: 24, steps: 20'
train[mlp_frozen]='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, freeze: "^fc[123]\\.", batch: 16, microbatches: 4, steps: 20'
train[branching]='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 20'
train[branching_adamw]='optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, batch: 16, microbatches: 8, steps: 20'
train[tied]='optimizer: {sgd: {lr: 0.5}}, batch: 16, microbatches: 4, steps: 20'
train[tied_adamw]='optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, batch: 16, microbatches: 4, steps: 20'
train[resnet18]='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 12, microbatches: 4, steps: 5'

# job FILE CASE TRANSPORT DEVICES SCHEDULE STRATEGY
job() {
    local model=${2%%_*} host='' d
    [ "$3" != process ] && host=', host: localhost'
    {
        cat <<END
version: 1
model: {file: $model.onnx}
data: {train: {format: npy, inputs: {x: ${model}_x.npy}, labels: ${model}_y.npy}}
train: {loss: softmax_cross_entropy, ${train[$2]}, seed: 3}
placement: {strategy: $6, seed: 5, time_limit: 1s}
pipeline: {schedule: $5, transport: ${3/process/auto}}
devices:
END
        for ((d = 1; d <= $4; d++)); do
            echo "  - {name: d$d, threads: $(($4 == 1 ? 1 : d % 3 + 1))$host}"
        done
    } >"$1"
}

# numbers JOB: losses, then the hash; or the first line of what it failed with
numbers() {
    if penstock train --json "$1" 2>messages >losses.json; then
        json '" ".join([repr(s["loss"]) for s in d["steps"]] + [d["parameters_hash"]])' <losses.json
    else
        grep -m 1 error: messages || echo "failed: $(tail -n 1 messages)"
    fi
}

count=0 differences=0
# same CASE TRANSPORT DEVICES SCHEDULE STRATEGY
same() {
    local found
    if [ ! -f "$1.one" ]; then
        job one.yaml "$1" process 1 auto auto
        numbers one.yaml >"$1.one"
        ! grep -q : "$1.one" || die "$1 on one device: $(cat messages)"
    fi
    job many.yaml "$@"
    found=$(numbers many.yaml)
    count=$((count + 1))
    if [ "$found" = "$(cat "$1.one")" ]; then
        echo "$* same" >>"${SAME_FIGURES:-/dev/null}"
        return
    fi
    echo "$* DIFFERS: $(cut -c -150 <<<"$found")" >>"${SAME_FIGURES:-/dev/null}"
    differences=$((differences + 1))
    printf 'differs: %s\n one device: %s\n found:      %s\n' "$*" "$(head -c 300 "$1.one")" "$(head -c 300 <<<"$found")" >&2
}

schedules='gpipe 1f1b interleaved zero_bubble auto'
if [ "$long" = 1 ]; then
    for case in mlp mlp_adamw mlp_frozen branching branching_adamw tied tied_adamw resnet18; do
        for transport in process auto grpc; do
            for devices in 2 3 4 8; do
                for schedule in $schedules; do
                    for strategy in greedy dynamic_programming random; do
                        [ -z "${SAME_ONLY:-}" ] || [[ "$case $transport" =~ $SAME_ONLY ]] || continue
                        same $case $transport $devices $schedule $strategy
                    done
                done
            done
        done
    done
    for devices in 1 2 4; do
        same mlp_one process $devices auto auto
        same mlp_one auto $devices auto auto
        same mlp_one grpc $devices auto auto
    done
else
    same mlp grpc 1 auto auto
    same mlp process 2 gpipe greedy
    same mlp process 3 1f1b dynamic_programming
    same mlp process 8 auto auto
    same mlp auto 4 zero_bubble random
    same mlp_adamw process 4 interleaved greedy
    same mlp_adamw grpc 2 1f1b auto
    same mlp_one process 2 auto greedy
    same mlp_one auto 3 auto greedy
    same mlp_frozen process 4 zero_bubble greedy
    same mlp_frozen grpc 3 gpipe dynamic_programming
    same branching process 2 zero_bubble random
    same branching process 4 1f1b random
    same branching auto 3 interleaved greedy
    same branching_adamw process 8 gpipe random
    same branching_adamw grpc 4 auto auto
    same tied process 2 1f1b greedy
    same tied process 3 zero_bubble dynamic_programming
    same tied_adamw process 4 interleaved random
    same tied_adamw auto 2 gpipe greedy
    same resnet18 process 4 auto auto
    same resnet18 grpc 2 1f1b greedy
fi
[ "$differences" -eq 0 ] || die "$differences of $count runs have other numbers than one device"
