# placement.replicas: losses and parameters are those of one device with as many lanes, whatever the
# replicas, their stages, optimizer and transport, in short steps and after a stop too.
. tests/end_to_end/trainings.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp gpt embedding resnet18:16

# job FILE MODEL TRAIN REPLICAS[/OWNERS] DEVICES [HOST [MORE]]: `limit` may say how many examples
job() {
    local threads=mixed owners=''
    case $4 in */*) owners="owners: [${4#*/}], " ;; esac
    write_job "$1" "$2" "$3" "$5" "${6:-process}" "replicas: ${4%%/*}, ${owners}time_limit: 1s" "${7:-}"
}

momentum='optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, batch: 16, microbatches: 8'
adamw='optimizer: {adamw: {lr: 0.01}}, clip_norm: 0.5, batch: 16, microbatches: 8'
# 59 examples: of the last batch, 11, there are five microbatches and a half. Then a replica of the
# last two lanes has none
few=59
count=0
same() { # MODEL TRAIN LANES "REPLICAS DEVICES HOST"...
    local model=$1 train="$2, lanes: $3, steps: 9" expected found shape
    limit=$few job one.yaml "$model" "$train" 1 1
    expected=$(numbers one.yaml)
    for shape in "${@:4}"; do
        set -- $shape
        limit=$few job many.yaml "$model" "$train" "$1" "$2" "$3" "${links:-}"
        found=$(numbers many.yaml)
        [ "$found" = "$expected" ] || die "$model, $train, replicas $shape: $found, one device: $expected"
        count=$((count + 1))
    done
}
same mlp "$momentum" 4 '2 2 process' '2 4 process' '4 4 grpc' '3 3 process'
same mlp "$adamw" 8 '2 2 grpc' '3 5 process' '3 3 process'
same gpt "$adamw" 4 '2 2 process' '2 4 grpc' '4 4 process'
same gpt "$momentum" 3 '3 3 process' '2 4 process'
same embedding "$momentum" 8 '3 3 process' '2 4 process'
same embedding "$adamw" 4 '2 2 grpc' '3 5 process'
groups='groups: [{match: "fc1", freeze: true}, {match: "ln|table", weight_decay: 0, lr_scale: 0.3}]'
same gpt "$adamw, $groups" 4 '2 2 process' '2 4 grpc'
same embedding "$adamw, $groups" 4 '3 3 process'
same embedding 'optimizer: {lamb: {lr: 0.01}}, clip_value: 0.001, batch: 16, microbatches: 8' 4 '2 4 process'
same embedding 'optimizer: {adafactor: {lr: 0.1}}, batch: 16, microbatches: 8' 4 '2 4 process'
same embedding 'optimizer: {adagrad: {lr_decay: 0.1}}, clip_norm: 0.5, batch: 16, microbatches: 8' 4 '2 2 process'
few=35 # of the last batch, 11, three microbatches and a short one
pictures='batch: 12, microbatches: 4'
same resnet18 "optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, $pictures" 4 '2 2 process' '3 3 process' '4 4 grpc'
same resnet18 "optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, $pictures" 2 '2 4 grpc'

# where links are slow, devices have several stages, whose exchange goes on while others compute
links='links: [{between: ["d?", "d?"], bandwidth: 1Gbit/s, latency: 20us}]'
same resnet18 "optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, $pictures" 4 '2 2 process' '3 3 grpc'
penstock plan many.yaml -o many.plan.yaml >/dev/null
grep -q '^exchange: overlapped' many.plan.yaml || die 'exchange is not overlapped'
[ "$(grep -c '^  - {devices:' many.plan.yaml)" -gt 3 ] || die "few stages: $(grep -A6 '^stages' many.plan.yaml)"
sed 's|^placement:|pipeline: {exchange: after_backward}\n&|' many.yaml >after.yaml
after=$(numbers after.yaml)
[ "$after" = "$(numbers many.yaml)" ] || die 'exchange after the backward pass has other numbers'
few=59
same gpt "$adamw" 4 '2 2 process' '4 4 grpc'
same mlp "$momentum" 4 '2 2 grpc' '2 4 process'
same embedding "$momentum" 4 '4 4 process'
links=

# owners of their own: they run no stage, whatever the number of replicas
few=59
same mlp "$momentum" 4 '2/d1 3 process' '2/d2,d4 6 grpc' '1/d1 2 grpc'
same gpt "$adamw" 4 '2/d3 3 grpc' '4/d1,d2 6 process'
same gpt "$momentum" 1 '1/d1 3 process'
same embedding "$adamw" 8 '3/d4 4 grpc' '2/d1,d2,d3 5 process'
few=35
same resnet18 "optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, $pictures" 4 '2/d1,d4 4 grpc' '1/d2 3 process'

# running statistics are where evaluations read them
for replicas in 1 2; do
    job norm.yaml resnet18 "optimizer: {sgd: {lr: 0.05, momentum: 0.9}}, $pictures, lanes: 4, steps: 3" \
        $replicas $((2 * replicas - 1))
    sed -i 's/^data: {\(.*\)}$/data: {\1, holdout: 0.2}/' norm.yaml
    penstock train --json norm.yaml 2>messages >norm$replicas.json || die "$(cat messages)"
done
[ "$(json '[d["evaluation"]["loss"], d["parameters_hash"]]' <norm1.json)" = \
    "$(json '[d["evaluation"]["loss"], d["parameters_hash"]]' <norm2.json)" ] || die 'another evaluation'

# which lanes a replica has is the plan's, and may be edited; the numbers are not
job two.yaml mlp "$momentum, lanes: 4, steps: 5" 2 2
expected=$(numbers two.yaml)
penstock plan two.yaml -o two.plan.yaml >/dev/null
grep -q '^  - {lanes: \[0, 1\], devices: \["d1"\]}' two.plan.yaml ||
    grep -q '^  - {lanes: \[0, .\], devices:' two.plan.yaml || die "$(grep -A3 '^replicas' two.plan.yaml)"
sed -E '/^replicas/,/^stages/{s/lanes: \[0, .\]/lanes: [0, 2]/; s/lanes: \[., 3\]/lanes: [3, 3]/}' two.plan.yaml >edited.plan.yaml
[ "$(numbers edited.plan.yaml)" = "$expected" ] || die 'an edited plan has other numbers'
penstock verify two.yaml >verified 2>&1 || die "verify: $(cat verified)"
grep -q 'tensors equal, bit for bit, after 1 step on 2 devices' verified || die "$(cat verified)"

# so may owners; verify compares these plans too
job owned.yaml mlp "$momentum, lanes: 4, steps: 5" 2/d1,d3 4 process 'pipeline: {exchange: after_backward}'
penstock plan owned.yaml -o owned.plan.yaml >table
[ "$(grep -c '^owner .* updates .* of parameters' table)" = 2 ] || die "$(cat table)"
grep -q '^owners: \["d1", "d3"\]' owned.plan.yaml || die "$(grep -A3 '^replicas' owned.plan.yaml)"
sed -E '/gemm[2-5]"/s/updates: ./updates: 3/; /lanes: /{s/\[0, 1\]/[0, 0]/; s/\[2, 3\]/[1, 3]/}' \
    owned.plan.yaml >edited.plan.yaml
penstock plan owned.yaml --from edited.plan.yaml -o again.plan.yaml >/dev/null
[ "$(numbers again.plan.yaml)" = "$expected" ] || die 'an edited plan with owners has other numbers'
penstock diff two.plan.yaml again.plan.yaml | grep -q '^owners  *replicas, then d1 (' ||
    die "$(penstock diff two.plan.yaml again.plan.yaml)"
penstock explain again.plan.yaml gemm2 | grep -q "^owner  *'d3' updates" || die "$(penstock explain again.plan.yaml gemm2)"
for plan in owned.yaml again.plan.yaml; do
    penstock verify "$plan" >verified 2>&1 || die "verify: $(cat verified)"
    grep -q 'tensors equal, bit for bit, after 1 step on 4 devices' verified || die "$(cat verified)"
done

# stopped and continued with other replicas; optimizer state is there once
mkdir kept
job first.yaml mlp "$adamw, lanes: 4, steps: 3" 2 2 process 'checkpoint: {dir: kept, every: 1 step}'
job second.yaml mlp "$adamw, lanes: 4, steps: 7" 4 4 process 'checkpoint: {dir: kept, every: 1 step}'
job whole.yaml mlp "$adamw, lanes: 4, steps: 7" 1 1
whole=$(numbers whole.yaml)
penstock train first.yaml >/dev/null 2>&1
penstock train --continue --json second.yaml 2>messages >losses.json || die "$(cat messages)"
[ "$(json 'd["parameters_hash"]' <losses.json)" = "${whole##* }" ] || die 'continued: another hash'

# a replica that is lost: its lanes go to the other
train="$adamw, lanes: 4, steps: 200"
job alone.yaml gpt "$train" 1 1
whole=$(numbers alone.yaml)
job lost.yaml gpt "$train" 2 2 grpc 'checkpoint: {dir: lost, every: 5 steps}
recovery: {on_loss: replan, grace: 0s}'
"$PENSTOCK" train --json lost.yaml 2>messages >losses.json &
training=$!
await_commits lost 2 # the fence, and a checkpoint
kill -9 "$(pgrep -P "$training" -f ' worker ' | head -n 1)"
wait "$training" || die "a replica was lost: $(cat messages)"
grep -q 'lost worker' messages || die "nobody was lost: $(cat messages)"
[ "$(json 'd["parameters_hash"]' <losses.json)" = "${whole##* }" ] || die 'a replica was lost: another hash'

# an owner that is lost: another one has its parameters, or the replicas; states are the checkpoint's
for owners in d2,d3 d3; do
    job lost.yaml gpt "$train" "2/$owners" $((2 + (${#owners} + 1) / 3)) grpc "checkpoint: {dir: lost-${owners//,/-}, every: 5 steps}
recovery: {on_loss: replan, grace: 0s}"
    "$PENSTOCK" train --json lost.yaml 2>messages >losses.json &
    training=$!
    await_commits "lost-${owners//,/-}" 2
    kill -9 "$(pgrep -P "$training" -f ' worker ' | sed -n 3p)"
    wait "$training" || die "an owner was lost: $(cat messages)"
    grep -qE 'lost worker 3 .*, which runs stages [23]:' messages || die "no owner was lost: $(cat messages)"
    [ "$(json 'd["parameters_hash"]' <losses.json)" = "${whole##* }" ] || die 'an owner was lost: another hash'
done

# workers that read the data themselves
job read.yaml mlp "$momentum, lanes: 4, steps: 5" 2 4 grpc
sed -i 's/^data: {\(.*\)}$/data: {\1, read_on: workers}/' read.yaml
[ "$(numbers read.yaml)" = "$expected" ] || die "workers that read: $(numbers read.yaml)"

# what cannot be is named
job lanes.yaml mlp "$momentum, lanes: 2, steps: 5" 3 4
fails 3 'placement.replicas: found 3, expected at most 2' "$PENSTOCK" train lanes.yaml
job lanes.yaml mlp "$momentum, lanes: 9, steps: 5" 2 2
fails 3 'train.lanes: found 9, expected at most as many as train.microbatches, 8' "$PENSTOCK" train lanes.yaml
job owners.yaml mlp "$momentum, lanes: 4, steps: 5" 2/x 3
fails 3 'no device is called "x", possible: d1, d2, d3' "$PENSTOCK" train owners.yaml
job owners.yaml mlp "$momentum, lanes: 4, steps: 5" 2/d1,d2 3
fails 3 'placement.replicas: found 2, expected at most 1: each has a device that is none' "$PENSTOCK" train owners.yaml
job owners.yaml mlp "$momentum, lanes: 4, steps: 5" 1/d1,d2 2
fails 3 'placement.owners: found all 2 devices, expected at most 1' "$PENSTOCK" train owners.yaml
job owners.yaml mlp "$momentum, lanes: 4, steps: 5" 1/d1,replicas 2
fails 3 'placement.owners: found `replicas` beside devices' "$PENSTOCK" train owners.yaml
job owners.yaml mlp "$momentum, lanes: 4, steps: 5" 2/d1 3
sed -i 's/time_limit: 1s/time_limit: 1s, pin: [{nodes: gemm1, to: d1}]/' owners.yaml
fails 3 "'gemm1' is pinned to 'd1', which placement.owners names" "$PENSTOCK" train owners.yaml
job owners.yaml mlp "$momentum, lanes: 4, steps: 5" 2/d1 3
sed -i '/name: d1/s/1GiB/300KiB/' owners.yaml
fails 5 "device 'd1' of owners needs .* of memory and may use 300 KiB: parameters" "$PENSTOCK" train owners.yaml
echo "$count"
