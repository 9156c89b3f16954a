# One hash: a step of K lanes has the bits of one device, whichever replicas have which lanes, with a
# pipeline of two stages or without, on threads and in processes. MODELS='mlp gpt' some of the models.
. tests/end_to_end/common.sh
models=${MODELS:-mlp resnet18:16 gpt embedding}
# shellcheck disable=SC2086
python3 "$top/tests/end_to_end/make_training_models.py" . $models

# of the last batch there are not all microbatches, and of one of them not all examples
limits='mlp=59 gpt=59 embedding=59 resnet18=29'

# job MODEL OPTIMIZER LANES REPLICAS STAGES PLACE
job() {
    local d limit
    limit=$(sed -E "s/.*$1=([0-9]+).*/\1/" <<<"$limits")
    cat <<END
version: 1
model: {file: $1.onnx}
data: {train: {format: npy, inputs: {x: $1_x.npy}, labels: $1_y.npy, limit: $limit}}
train: {loss: softmax_cross_entropy, $2, batch: 16, microbatches: 8, lanes: $3, steps: 6, seed: 3}
placement: {replicas: $4, stages: {minimum: $5}, time_limit: 200ms}
pipeline: {time_limit: 0s}
devices:
END
    for ((d = 1; d <= $4 * $5; d++)); do
        echo "  - {name: d$d, memory: 1GiB, threads: 1$([ "$6" = threads ] || echo ', host: localhost')}"
    done
}

# divide LANES,LANES... PLAN: the plan's replicas have so many lanes
divide() {
    python3 - "$@" <<'END'
import re, sys
counts = [int(n) for n in sys.argv[1].split(",")]
text = open(sys.argv[2]).read()
firsts = [sum(counts[:i]) for i in range(len(counts))]
found = iter(zip(firsts, counts))
def give(match):
    first, count = next(found)
    return f"lanes: [{first}, {first + count - 1}], devices:"
text, made = re.subn(r"lanes: \[\d+, \d+\], devices:", give, text)
assert made == len(counts), (made, counts)
open(sys.argv[2], "w").write(text)
END
}

numbers() {
    timeout 120 "$PENSTOCK" train --json --no-eval "$1" 2>messages >losses.json || die "$(cat messages)"
    json '" ".join([repr(s["loss"]) for s in d["steps"]] + [d["parameters_hash"]])' <losses.json
}

count=0
# all_of MODEL OPTIMIZER LANES DIVISION...
all_of() {
    local model=$1 optimizer=$2 lanes=$3 expected found division replicas stages place
    job "$model" "$optimizer" "$lanes" 1 1 threads >one.yaml
    expected=$(numbers one.yaml)
    for division in "${@:4}"; do
        replicas=$(tr -cd , <<<"$division" | wc -c)
        replicas=$((replicas + 1))
        for stages in 1 2; do
            for place in threads processes; do
                job "$model" "$optimizer" "$lanes" $replicas $stages $place >many.yaml
                penstock plan -q many.yaml -o first.plan.yaml 2>messages || die "$(cat messages)"
                divide "$division" first.plan.yaml
                penstock plan -q many.yaml --from first.plan.yaml -o many.plan.yaml 2>messages || die "$(cat messages)"
                [ "$(grep -c '^  - {lanes:' many.plan.yaml)" = $replicas ] || die "$(cat many.plan.yaml)"
                found=$(numbers many.plan.yaml)
                [ "$found" = "$expected" ] ||
                    die "$model, $optimizer, lanes $division, $stages stages, $place: $found, one device: $expected"
                count=$((count + 1))
            done
        done
    done
    echo "$model, $lanes lanes, $(sed -E 's/^[^{]*\{([a-z]+).*/\1/' <<<"$optimizer"): ${expected##* }"
}

for model in $models; do
    for optimizer in 'optimizer: {sgd: {lr: 0.05, momentum: 0.9}}' 'optimizer: {adamw: {lr: 0.01}}, clip_norm: 0.5'; do
        all_of "${model%:*}" "$optimizer" 4 2,2 1,3 1,1,1,1
        all_of "${model%:*}" "$optimizer" 8 4,4 3,5 3,3,2
    done
done
echo "$count trainings in replicas, each with the hash of one device"
