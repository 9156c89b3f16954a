# train.shard: layers in slices have one hash on 1, 2 and 4 devices, and nearly the numbers of the
# model as it is; files and checkpoints hold whole tensors; a layer that fits no device trains.
. tests/end_to_end/trainings.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp gpt heads embedding:50257 fat:16384

sgd='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 6'
adamw='optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, batch: 24, microbatches: 4, steps: 5'
four=$(pins 'shard0$' 'shard1$' 'shard2$' 'shard3$')

# same MODEL TRAIN SHARD: as it is, and sharded on one device and on others. Pieces of gpt draw random
# numbers of their own.
same() {
    local expected found slices
    sharded_job one.yaml "$1" "$2" ''
    expected=$(numbers one.yaml)
    sharded_job one.yaml "$1" "$2" "$3"
    found=$(numbers one.yaml)
    [ "$1" = gpt ] || near "$1 $2 $3" "$expected" "$found"
    expected=$found
    sharded_job many.yaml "$1" "$2" "$3" 2 process "$(pins 'shard[02]$' 'shard[13]$')"
    found=$(numbers many.yaml)
    [ "$found" = "$expected" ] || die "$1, $2, $3 on 2 devices: $found, not $expected"
    sharded_job many.yaml "$1" "$2" "$3" 4 localhost "$four"
    found=$(numbers many.yaml)
    [ "$found" = "$expected" ] || die "$1, $2, $3 on 4 devices: $found, not $expected"
}
all='{nodes: "^(gemm|matmul|gather)", ways: 4}'
same mlp "$sgd" '{nodes: "^gemm", ways: 4}'
same mlp "$adamw, lanes: 2" '{nodes: "^gemm[1-6]", ways: 4}, {nodes: gemm7, ways: 3}'
# a slice is of the group of its whole
groups='groups: [{match: "^fc3.bias$", freeze: true}, {match: "bias$", lr_scale: 0.2}, {match: "^fc[2-4].weight$", weight_decay: 0.5, lr_scale: 3}]'
same mlp "$sgd, $groups" '{nodes: "^gemm", ways: 4}'
same gpt "$adamw" "$all"
same heads "$sgd" "$all"
same heads "$adamw" "$all"
same embedding "${adamw/steps: 5/steps: 4}" "$all" # 50257 classes

# heads stay in pieces from the first product of an attention to its last
sharded_job one.yaml heads "$sgd" "$all"
penstock inspect --dump-after remove_dead one.yaml >dump 2>messages || die "$(cat messages)"
[ "$(grep -c '^forward .*/shard[0-3]: attention(' dump)" = 8 ] || die "attention is whole: $(cat dump)"
if grep ' concat(' dump | grep -v '^forward gather1/concat' | grep '^forward' >out; then die "put together: $(cat out)"; fi

# verify compares slices, joined
sharded_job many.yaml gpt "$adamw" "$all" 3
penstock verify many.yaml --steps 2 >out 2>messages || die "verify: $(cat messages out)"
grep -q shard0 out && die "verify names slices: $(cat out)"

# ---- files hold whole tensors

tensors() {
    python3 - "$1" <<'END'
import hashlib, json, struct, sys
whole = open(sys.argv[1], "rb").read()
size, = struct.unpack("<Q", whole[:8])
for name, e in sorted(json.loads(whole[8:8 + size]).items()):
    if name == "__metadata__": continue
    data = whole[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]]
    print(name, e["shape"], hashlib.sha256(data).hexdigest())
END
}
# kept MODEL TRAIN SHARD: a checkpoint that four devices wrote, opened at other ways
kept() {
    local expected found
    rm -rf kept whole.st slices.st
    sharded_job one.yaml "$1" "$2" ''
    expected=$(numbers one.yaml)
    penstock train -q one.yaml --steps 3 --save whole.st --overwrite 2>messages || die "$(cat messages)"
    sharded_job many.yaml "$1" "$2" "$3" 4 localhost "$four"
    penstock train --json many.yaml --steps 3 --checkpoint kept --save slices.st 2>messages >first.json ||
        die "$(cat messages)"
    tensors whole.st | cut -d']' -f1 >whole.names
    tensors slices.st | cut -d']' -f1 >slices.names
    diff whole.names slices.names || die "$1: a file has other tensors"
    penstock checkpoint verify kept >out 2>&1 || die "$(cat out)"
    penstock checkpoint export kept -o exported.st >out 2>&1 || die "$(cat out)"
    tensors slices.st >slices.tensors
    tensors exported.st >exported.tensors
    diff slices.tensors exported.tensors || die "$1: the checkpoint has other tensors than the training"
    first=$(json '" ".join(repr(s["loss"]) for s in d["steps"])' <first.json)
    for shard in '' "${3//ways: 4/ways: 2}" "$3"; do
        sharded_job one.yaml "$1" "$2" "$shard"
        found="$first $(numbers one.yaml --resume kept)"
        near "$1, resumed with '$shard'" "$expected" "$found"
        grep -q 'passed over' messages && die "$(cat messages)"
    done
    expected=$(numbers one.yaml) # the same ways: the same bits
    [ "$found" = "$expected" ] || die "$1: a stop changed bits: $found, not $expected"
    # and back: a checkpoint without slices is cut
    rm -rf kept
    sharded_job one.yaml "$1" "$2" ''
    penstock train -q one.yaml --steps 3 --checkpoint kept 2>messages || die "$(cat messages)"
    expected=$(numbers one.yaml)
    found="$(echo "$expected" | cut -d' ' -f1-3) $(numbers many.yaml --resume kept)"
    near "$1, cut, from whole tensors" "$expected" "$found"
}
kept mlp "$adamw" '{nodes: "^gemm", ways: 4}'
kept heads "$sgd" "$all"

# ---- too large for each device

step='optimizer: {sgd: {lr: 0.01, momentum: 0.9}}, batch: 16, microbatches: 4, steps: 2'
sharded_job many.yaml fat "$step" '' 4 process '' 7MiB
fails 5 "would need 1[0-9.]* MiB of memory and may use 7.00 MiB.*most of it for 'gemm2' .12" "$PENSTOCK" train many.yaml
sharded_job one.yaml fat "$step" '{nodes: "^gemm[23]", ways: 4}'
expected=$(numbers one.yaml)
sharded_job many.yaml fat "$step" '{nodes: "^gemm[23]", ways: 4}' 4 process '' 7MiB
found=$(numbers many.yaml)
[ "$found" = "$expected" ] || die "in little memory: $found, not $expected"
check '[v["bytes"] for v in d["measured"]["devices"]] == [v["bytes"] for v in d["predicted"]["devices"]]' losses.json

# ---- what cannot be

refused() {
    sharded_job one.yaml mlp "$sgd" "$1"
    fails 3 "$2" "$PENSTOCK" train one.yaml
}
refused '{nodes: "^gem1", ways: 4}' 'one.yaml:4:.*no node matches "\^gem1", near: gemm1'
refused '{nodes: relu1, ways: 4}' "'relu1' means no node that can be sharded, as 'relu1' .relu.; these can: products"
refused '{nodes: gemm7, ways: 11}' "one.yaml:4:.*'gemm7' has 10 columns, which are no 11 ways: at most 10"
sharded_job one.yaml mlp "$sgd, lanes: 2, consistency: {async: {staleness: 1}}" '{nodes: "^gemm", ways: 4}'
fails 3 'train.shard: found together with consistency: async' "$PENSTOCK" train one.yaml
refused '{nodes: "^gemm", ways: 1}' 'ways: found "1", expected an integer from 2 to 1024'
refused '{nodes: "^gemm", ways: 5000}' 'ways: found "5000", expected an integer from 2 to 1024'
sharded_job one.yaml gpt "$sgd" '{nodes: gather1, ways: 4}'
fails 3 "parameter 'table' is read by 'gather1' and by 'matmul" "$PENSTOCK" train one.yaml

# a layer that is frozen is cut, too
sharded_job one.yaml mlp "$sgd, freeze: \"^fc[12][.]\"" ''
expected=$(numbers one.yaml)
sharded_job one.yaml mlp "$sgd, freeze: \"^fc[12][.]\"" '{nodes: "^gemm", ways: 4}'
found=$(numbers one.yaml)
near 'frozen layers that are cut' "$expected" "$found"
