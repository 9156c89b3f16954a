# train.shard beside the rest: in replicas, with a worker that is lost, evaluated, predicted with and
# exported; classes with weights, layouts of one product for queries, keys and values; PyTorch's losses;
# a layer that no worker process has the memory for.
. tests/end_to_end/trainings.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp heads fused fat:16384

has_eval=yes
four=$(pins 'shard0$' 'shard1$' 'shard2$' 'shard3$')

sgd='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 6'
adamw='optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, batch: 24, microbatches: 4, steps: 5'
all='{nodes: "^(gemm|matmul|gather)", ways: 4}'

# ---- replicas

# replicated MODEL TRAIN SHAPE...: SHAPE is REPLICAS DEVICES HOST [OWNERS]
replicated() {
    local model=$1 train="$2, lanes: 4" whole expected found shape
    shift 2
    sharded_job one.yaml "$model" "$train" ''
    whole=$(numbers one.yaml)
    sharded_job one.yaml "$model" "$train" "$all"
    expected=$(numbers one.yaml)
    near "$model in lanes" "$whole" "$expected"
    for shape; do
        set -- $shape
        sharded_job many.yaml "$model" "$train" "$all" "$2" "$3" "replicas: $1${4:+, owners: [$4]}"
        found=$(numbers many.yaml)
        [ "$found" = "$expected" ] || die "$model, replicas $shape: $found, one device: $expected"
    done
}
replicated mlp "$sgd" '2 2 process' '2 4 localhost' '3 3 localhost'
replicated heads "$adamw" '2 4 localhost' '2 3 process d3'

# ---- a worker that is lost

recovery='checkpoint: {dir: lost, every: 5 steps}
recovery: {on_loss: replan, grace: 0s}'
train="${sgd/steps: 6/steps: 150}"
sharded_job one.yaml heads "$train" "$all"
expected=$(numbers one.yaml)
for devices in 3 4; do
    rm -rf lost
    sharded_job lost.yaml heads "$train" "$all" "$devices" localhost 'strategy: round_robin' 1GiB "$recovery"
    "$PENSTOCK" train --json --no-eval lost.yaml 2>messages >losses.json &
    training=$!
    await_commits lost 2 # the fence, and a checkpoint
    kill -9 "$(pgrep -P "$training" -f ' worker ' | sed -n 2p)"
    wait "$training" || die "a worker of $devices was lost: $(cat messages)"
    grep -q 'lost worker' messages || die "nobody was lost: $(cat messages)"
    [ "$(json 'd["parameters_hash"]' <losses.json)" = "${expected##* }" ] ||
        die "a worker of $devices was lost: another hash"
done

# ---- eval, predict, export: what is trained in slices serves whole and in slices

kept='outputs: {dir: run}'
sharded_job one.yaml heads "$adamw" "$all" 1 process '' 1GiB "$kept"
penstock train -q one.yaml --no-eval --overwrite 2>messages || die "$(cat messages)"
penstock predict one.yaml -o one.npy 2>messages || die "$(cat messages)"
evaluated=$(penstock eval --json one.yaml | json '(d["loss"], d["correct"], d["examples"])')
for place in 'process round_robin' 'localhost round_robin'; do
    set -- $place
    sharded_job many.yaml heads "$adamw" "$all" 4 "$1" "strategy: $2" 1GiB "$kept"
    penstock predict many.yaml -o many.npy 2>messages || die "predict, $place: $(cat messages)"
    cmp -s one.npy many.npy || die "predictions of slices on $place differ from one device"
    [ "$(penstock eval --json many.yaml | json '(d["loss"], d["correct"], d["examples"])')" = "$evaluated" ] ||
        die "the evaluation of slices on $place differs from one device"
done
penstock export one.yaml -o exported.onnx >/dev/null 2>messages || die "export: $(cat messages)"
sharded_job whole.yaml heads "$adamw" '' 1 process '' 1GiB "$kept"
penstock predict whole.yaml -o whole.npy 2>messages || die "$(cat messages)"
sed 's/heads.onnx/exported.onnx/; s/dir: run/dir: none/' whole.yaml >exported.yaml
penstock predict exported.yaml -o exported.npy 2>messages || die "$(cat messages)"
cmp -s whole.npy exported.npy || die 'the exported model has other outputs than the parameters'
/usr/bin/python3 - <<'END' || die 'outputs of slices are far from those of the whole'
import numpy
a, b = numpy.load("one.npy"), numpy.load("whole.npy")
assert a.shape == b.shape and not numpy.array_equal(a, b)
numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
END

# ---- losses

# same WHAT MODEL TRAIN: as it is, and in slices on one device and on four
same() {
    local whole expected found
    sharded_job one.yaml "$2" "$3" ''
    whole=$(numbers one.yaml)
    sharded_job one.yaml "$2" "$3" "$all"
    expected=$(numbers one.yaml)
    near "$1" "$whole" "$expected"
    sharded_job many.yaml "$2" "$3" "$all" 4 localhost "$four"
    found=$(numbers many.yaml)
    [ "$found" = "$expected" ] || die "$1 on 4 devices: $found, not $expected"
}
weights='class_weights: [1, 0.5, 2, 1, 0, 3, 1, 1, 0.25, 1]'
same smoothing mlp "$sgd, label_smoothing: 0.2"
same weights mlp "$adamw, $weights"
same 'weights and smoothing' mlp "$sgd, $weights, label_smoothing: 0.1, ignore_index: 3"
same 'one product for q, k and v' fused "$adamw"
penstock inspect --dump-after remove_dead one.yaml >dump 2>messages || die "$(cat messages)"
[ "$(grep -c '^forward .*/shard[0-3]: attention(' dump)" = 8 ] || die "attention is whole: $(cat dump)"

# ---- PyTorch's losses, which are of double precision

sharded_job one.yaml mlp 'optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 8, microbatches: 4, steps: 20, shuffle: false' \
    '{nodes: "Gemm$", ways: 4}' 4 localhost
sed -i 's|file: mlp.onnx|file: reference/mlp/model.onnx|
        s|{x: mlp_x.npy}, labels: mlp_y.npy|{input: reference/mlp/inputs.npy}, labels: reference/mlp/labels.npy|' one.yaml
found=$(numbers one.yaml)
python3 - $found <<'END' || die "not PyTorch's losses: $found"
import csv, sys
expected = [row for row in csv.reader(open("reference/mlp/sgd/losses.csv")) if row[0].isdigit()]
assert len(expected) >= 20 == len(sys.argv) - 2, (len(expected), len(sys.argv))
for (step, *losses), found in zip(expected, sys.argv[1:-1]):
    assert abs(float(losses[0]) - float(found)) < 2e-6 * float(losses[0]), (step, losses, found)
END

# ---- slices of a checkpoint open at other ways, on workers

three=${all/ways: 4/ways: 3}
sharded_job one.yaml heads "$sgd" "$all"
whole=$(numbers one.yaml)
sharded_job many.yaml heads "$sgd" "$all" 4 localhost "$four"
penstock train -q many.yaml --steps 3 --checkpoint kept --no-eval 2>messages || die "$(cat messages)"
for ways in 2 3; do
    sharded_job many.yaml heads "$sgd" "${all/ways: 4/ways: $ways}" 3 localhost 'strategy: round_robin'
    found=$(numbers many.yaml --resume kept)
    near "resumed with $ways ways" "$whole" "$(echo "$whole" | cut -d' ' -f1-3) $found"
done

# ---- a layer that no worker has the memory for

step='optimizer: {sgd: {lr: 0.01, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 2'
sharded_job one.yaml fat "$step" '{nodes: "^gemm[23]", ways: 4}'
expected=$(numbers one.yaml)
grpc='pipeline: {transport: grpc}'
sharded_job many.yaml fat "$step" '' 4 localhost '' 7MiB "$grpc"
fails 5 "would need 1[0-9.]* MiB of memory and may use 7.00 MiB.*most of it for 'gemm2' .12" "$PENSTOCK" train many.yaml
sharded_job many.yaml fat "$step" '{nodes: "^gemm[23]", ways: 4}' 4 localhost '' 7MiB "$grpc"
found=$(numbers many.yaml)
[ "$found" = "$expected" ] || die "on four workers: $found, not $expected"
check '[v["bytes"] for v in d["measured"]["devices"]] == [v["bytes"] for v in d["predicted"]["devices"]]' losses.json
check 'all(v["bytes"] <= 7 << 20 for v in d["measured"]["devices"])' losses.json
check 'len(set(v["worker"] for v in d["measured"]["devices"])) == 4' losses.json
