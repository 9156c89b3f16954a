# train.lanes: the gradient of a step is the tree over lanes, added by hand with NumPy from trainings
# of each lane by itself; the numbers are the same on any devices, schedule and transport, after a
# stop too; plans and checkpoints keep the lanes.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp branching gpt embedding resnet18:16

# job FILE MODEL TRAIN [DEVICES [HOST [SCHEDULE [STRATEGY [TRANSPORT]]]]]
job() {
    local d host='' data=$2
    [ "${5:-process}" = process ] || host=', host: localhost'
    {
        cat <<END
version: 1
model: {file: $2.onnx}
data: {train: {format: npy, inputs: {x: ${lane_data:-$data}_x.npy}, labels: ${lane_data:-$data}_y.npy}}
train: {loss: softmax_cross_entropy, $3, seed: 3}
placement: {strategy: ${7:-auto}, seed: 5, time_limit: 1s}
pipeline: {schedule: ${6:-auto}, transport: ${8:-auto}}
devices:
END
        for ((d = 1; d <= ${4:-1}; d++)); do
            echo "  - {name: d$d, threads: $((${4:-1} == 1 ? 1 : d % 2 + 1))$host}"
        done
    } >"$1"
}

# ---- the tree by hand

# After a step from zero, the velocity of SGD is the gradient. A lane that is trained by itself has
# its gradient times a power of two, since it has such a share of the step's examples.
cat >tree.py <<'END'
import glob, json, struct, sys
import numpy as np

def velocity(folder):
    whole = open(glob.glob(folder + "/shards/*")[0], "rb").read()
    size, = struct.unpack("<Q", whole[:8])
    return {name: np.frombuffer(whole[8 + size:], "<f4", (e["data_offsets"][1] - e["data_offsets"][0]) // 4,
                                e["data_offsets"][0])
            for name, e in json.loads(whole[8:8 + size]).items() if name.endswith("/velocity")}

def add(lanes, at, size):
    if at >= len(lanes): return None
    if size == 1: return lanes[at]
    left, right = add(lanes, at, size // 2), add(lanes, at + size // 2, size // 2)
    return left if right is None else left + right

shares = [float(s) for s in sys.argv[1].split(",")]
found = velocity("kept_all")
parts = [velocity(f"kept_{l}") for l in range(len(shares))]
in_order = 0
for name in found:
    lanes = [np.float32(share) * part[name] for share, part in zip(shares, parts)]
    assert any(np.any(l != 0) for l in lanes), name
    total = add(lanes, 0, 64)
    if not np.array_equal(total.view("u4"), found[name].view("u4")):
        sys.exit(f"{name}: {np.count_nonzero(total != found[name])} of {total.size} elements differ")
    row = lanes[0]
    for l in lanes[1:]: row = row + l
    in_order += np.count_nonzero(row != total)
assert len(found) > 3 and (len(shares) < 4 or in_order > 0), "the order of lanes does not matter here"
END

# tree MODEL BATCH MICROBATCHES LANES COUNTS EXAMPLES: a step of EXAMPLES, whose lanes have so many
# microbatches each
tree() {
    local model=$1 batch=$2 microbatches=$3 lanes=$4 examples=$6 size=$(($2 / $3)) first=0 lane=0 shares='' count
    local sgd='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, shuffle: false, steps: 1'
    rm -rf kept_*
    take() { /usr/bin/python3 -c 'import numpy as n, sys
for f in "xy": n.save("part_" + f, n.load(sys.argv[1] + "_" + f + ".npy")[int(sys.argv[2]):int(sys.argv[3])])' "$model" "$1" "$2"; }
    local lane_data=part
    take 0 "$examples"
    job all.yaml "$model" "$sgd, batch: $batch, microbatches: $microbatches, lanes: $lanes"
    penstock train -q all.yaml --checkpoint kept_all >out 2>messages || die "$*: $(cat messages)"
    for count in ${5//,/ }; do
        take $first $((first + count * size))
        job lane.yaml "$model" "$sgd, batch: $((count * size)), microbatches: $count"
        penstock train -q lane.yaml --checkpoint kept_$lane >out 2>messages || die "lane $lane: $(cat messages)"
        shares+=${shares:+,}$(/usr/bin/python3 -c "print($count * $size / $examples)")
        first=$((first + count * size)) lane=$((lane + 1))
    done
    /usr/bin/python3 tree.py "$shares" >out 2>&1 || die "$*: $(cat out)"
}
tree mlp 64 8 4 2,2,2,2 64
tree mlp 16 4 3 2,1,1 16
tree mlp 16 8 8 1,1,1,1,1,1,1,1 16
tree mlp 64 8 4 2,2 32 # a short step: the first lanes
tree resnet18 16 4 4 1,1,1,1 16

# ---- one hash

# numbers JOB [OPTION...]: losses, then the hash
numbers() {
    penstock train --json "$@" 2>messages >losses.json || die "$*: $(cat messages)"
    json '" ".join([repr(s["loss"]) for s in d["steps"]] + [d["parameters_hash"]])' <losses.json
}
sgd='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 8, steps: 8'
rest='optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, batch: 32, microbatches: 8, steps: 8' # 90 = 2 * 32 + 6 * 4 + 2
adamw='optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, batch: 24, microbatches: 8, steps: 8'
# same MODEL TRAIN LANES RUN...: RUN is DEVICES,HOST,SCHEDULE,STRATEGY[,TRANSPORT]
same() {
    local model=$1 train="$2, lanes: $3" expected found run
    shift 3
    job one.yaml "$model" "$train"
    expected=$(numbers one.yaml)
    echo "$model ${train:0:18} ${expected##* }" >>hashes
    for run; do
        # shellcheck disable=SC2086
        job many.yaml "$model" "$train" ${run//,/ }
        found=$(numbers many.yaml)
        [ "$found" = "$expected" ] || die "$model, $train on $run: $found, not $expected"
    done
}
same mlp "$sgd" 1
same mlp "$sgd" 3 2,process,1f1b,greedy 3,process,zero_bubble,random
same mlp "$sgd" 4 3,process,interleaved,random 2,grpc,1f1b,greedy,grpc
same mlp "$adamw" 8 3,process,1f1b,random 2,process,zero_bubble,greedy
same mlp "$rest" 5 3,process,zero_bubble,greedy
same branching "$adamw" 3 3,process,zero_bubble,random 2,auto,1f1b,greedy
same branching "$sgd" 4 2,process,interleaved,random
same branching "$sgd" 8 3,process,gpipe,random
same gpt "$sgd" 3 2,process,zero_bubble,random
same gpt "$adamw" 4 3,process,1f1b,random 2,auto,1f1b,greedy
same gpt "$adamw" 8 3,process,interleaved,random
same embedding "$adamw" 3 3,process,1f1b,random
same embedding "$sgd" 4 2,process,zero_bubble,random 2,grpc,1f1b,greedy,grpc
[ "$(head -n 3 hashes | sort -u | wc -l)" = 3 ] || die "numbers that do not depend on lanes: $(cat hashes)"

# verify compares them
job two.yaml gpt "$adamw, lanes: 3" 2 process 1f1b random
penstock verify two.yaml --steps 3 >out 2>messages || die "verify: $(cat messages out)"

# ---- kept by checkpoints and plans

job whole.yaml branching "$adamw, lanes: 3"
whole=$(numbers whole.yaml)
job two.yaml branching "$adamw, lanes: 3" 2 process zero_bubble random
first=$(numbers two.yaml --steps 3 --checkpoint kept)
[ "${first% *} $(numbers whole.yaml --resume kept)" = "$whole" ] || die 'a stop and a resume have other numbers'
job other.yaml branching "$adamw, lanes: 4"
fails 3 'other.yaml:4:.*with lanes 3, the job has 4' "$PENSTOCK" train other.yaml --resume kept
job other.yaml branching "$adamw"
fails 3 'with lanes 3, the job has 1' "$PENSTOCK" train other.yaml --resume kept

penstock plan -q two.yaml -o made.plan.yaml >out 2>messages || die "plan: $(cat messages)"
grep -q '^numerics: {.*lanes: 3}$' made.plan.yaml || die "the plan has no lanes: $(head -n 8 made.plan.yaml)"
[ "$(numbers made.plan.yaml)" = "$whole" ] || die 'the plan has other numbers'
sed -i 's/lanes: 3/lanes: 4/' two.yaml
fails 4 'made for 3 lanes of microbatches, but the job has 4' "$PENSTOCK" train made.plan.yaml

# memory as it is planned: sums, and stacks of lanes
for lanes in 4 8; do
    job one.yaml mlp "$adamw, lanes: $lanes"
    penstock plan one.yaml --json >plan.json
    numbers one.yaml >/dev/null
    check "0.98 < $(json 'd["devices"][0]["memory"]["total"]' <plan.json) / d['predicted']['device_bytes'] < 1.02" losses.json
done
job two.yaml mlp "$adamw, lanes: 8" 2 process 1f1b greedy
numbers two.yaml >/dev/null
check '[v["bytes"] for v in d["measured"]["devices"]] == [v["bytes"] for v in d["predicted"]["devices"]]' losses.json

job one.yaml mlp "$sgd, lanes: 9"
fails 3 'one.yaml:4:.*train.lanes: found 9, expected at most as many as train.microbatches, 8' "$PENSTOCK" train one.yaml
job one.yaml mlp "$sgd, lanes: 0"
fails 3 'train.lanes: ' "$PENSTOCK" train one.yaml
