# order: free: lanes come as they come, and the record of it makes the same numbers again, on any
# replicas; after a stop, and where the coordinator or a worker was killed. And what is refused.
. tests/end_to_end/trainings.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp gpt

# job FILE MODEL TRAIN [REPLICAS [DEVICES [HOST [MORE]]]]
job() {
    local limit=59 threads=mixed
    write_job "$1" "$2" "$3" "${5:-1}" "${6:-process}" "replicas: ${4:-1}, time_limit: 100ms" "${7:-}"
}

momentum='optimizer: {sgd: {lr: 0.01, momentum: 0.9}}, batch: 16, microbatches: 8, lanes: 4'
adamw='optimizer: {adamw: {lr: 0.01}}, batch: 12, microbatches: 4, lanes: 4'
free='consistency: {async: {staleness: 5, order: free}}'
adaptive='consistency: {async: {staleness: 3, order: free, compensation: adaptive}}'

# ---- a record has the bits of what it is of, wherever that ran, and wherever it runs again

again() { # MODEL TRAIN SHAPE OTHER...: recorded by REPLICAS DEVICES HOST, and replayed by the others
    local model=$1 train=$2 shape=$3 other expected found
    shift 3
    rm -rf kept
    job many.yaml "$model" "$train" $shape
    expected=$(numbers many.yaml --checkpoint kept)
    for other in "$@"; do
        job many.yaml "$model" "$train" $other
        found=$(numbers many.yaml --replay kept)
        [ "$found" = "$expected" ] ||
            die "$model, $train, recorded by $shape, replayed by $other: $found, not $expected"
    done
}
again mlp "$momentum, $free, steps: 6" '4 4 grpc' '1 1 process' '2 2 process' '4 4 grpc'
again mlp "$momentum, $free, steps: 6" '1 1 process' '2 4 process'
again gpt "$adamw, $adaptive, steps: 5" '2 2 process' '1 1 process' '1 2 process'

# lanes on devices of their own do not come by their numbers
rm -rf kept
job many.yaml mlp "$momentum, $free, steps: 40" 4 4
many=$(numbers many.yaml --checkpoint kept)
orders=$(awk 'NR > 3 && length($2) == 4 {print $2}' kept/order/order.* | sort -u)
[ "$(wc -l <<<"$orders")" -gt 1 ] || die "40 steps have one order: $orders"
[ "$(awk 'NR > 3' kept/order/order.* | wc -l)" = 40 ] || die "not a line for each step: $(cat kept/order/order.*)"
check 'd["asynchronous"]["staleness_worst"] <= 5 and "drawn_time" not in d["asynchronous"]' losses.json
job one.yaml mlp "$momentum, $free, steps: 40"
[ "$(numbers one.yaml --replay kept/order/order.*)" = "$many" ] || die 'one device does not do again what four did'

# the same order makes the same versions as where it is drawn: none, without staleness
none='consistency: {async: {staleness: 0, order: free}}'
job sync.yaml mlp "$momentum, steps: 6"
job many.yaml mlp "$momentum, $none, steps: 6" 4 4
rm -rf none
[ "$(numbers many.yaml --checkpoint none)" = "$(numbers sync.yaml)" ] || die 'staleness 0 is not synchronous'

# one device compares itself with one device that takes lanes in the same order
"$PENSTOCK" verify many.yaml >out 2>messages || die "verify: $(cat out messages)"

# ---- a stop and an end

job many.yaml mlp "$momentum, $free, steps: 12" 2 2
job one.yaml mlp "$momentum, $free, steps: 12"
first=$(numbers many.yaml --steps 5 --checkpoint stopped)
rest=$(numbers one.yaml --checkpoint stopped --continue)
[ "${first% *} $rest" = "$(numbers many.yaml --replay stopped)" ] || die 'a stop is not in the record'
# from another folder, to which the record goes along
rm -rf branch
rest=$(numbers many.yaml --resume stopped --steps 16 --checkpoint branch)
whole=$(numbers one.yaml --steps 16 --replay branch)
case $whole in *" $rest") ;; *) die "from another folder: $rest, not the end of $whole" ;; esac

# told JOB FOLDER: what was told of its steps before it was killed (begun.json) and after
# (losses.json) is what one device makes of the record
told() {
    job one.yaml mlp "$momentum, $free, steps: 120"
    penstock train -q --json one.yaml --replay "$2" >whole.json 2>messages || die "replay of $2: $(cat messages)"
    [ "$(json 'd["parameters_hash"]' <losses.json)" = "$(json 'd["parameters_hash"]' <whole.json)" ] ||
        die "$1: the record of $2 has other parameters"
    python3 - <<'END' || die "$1: other losses were told"
import json, re
whole = {s["step"]: s["loss"] for s in json.load(open("whole.json"))["steps"]}
rest = {s["step"]: s["loss"] for s in json.load(open("losses.json"))["steps"]}
begun = {int(s): float(l) for s, l in
         re.findall(r'"step": (\d+), "epoch": \d+, "loss": ([-+.\de]+),', open("begun.json").read())}
assert len(whole) == 120 and max(rest) == 120, (len(whole), max(rest))
assert begun, "nothing was told before the kill"
for losses in begun, rest:
    for step, loss in losses.items():
        assert whole[step] == loss, f"step {step}: {loss}, the record makes {whole[step]}"
END
}

# the coordinator is killed while it trains
job many.yaml mlp "$momentum, $free, steps: 120" 2 2 grpc
"$PENSTOCK" train --json many.yaml --checkpoint killed --every '10 steps' >begun.json 2>messages &
training=$!
await_commits killed 3
kill -9 $training 2>/dev/null || die "it was over before it could be killed: $(cat messages)"
wait $training 2>/dev/null || true
rest=$(numbers many.yaml --checkpoint killed --continue)
told 'a killed coordinator' killed

# a worker is killed while it trains: steps since the checkpoint are done again, in the order of before
job many.yaml mlp "$momentum, $free, steps: 120" 2 2 grpc 'recovery: {grace: 1s}'
"$PENSTOCK" train --json many.yaml --checkpoint lost --every '30 steps' >losses.json 2>messages &
training=$!
for ((i = 0; i < 600; i++)); do
    [ "$(wc -l <lost/order/order.000000000001 2>/dev/null || echo 0)" -lt 45 ] || break
    sleep 0.05
done
cp losses.json begun.json
kill -9 "$(pgrep -P $training -f worker | head -n 1)" || die "no worker to be killed: $(cat messages)"
wait $training || die "it did not go on: $(cat messages)"
check 'd["measured"]["recoveries"] == 1' losses.json
told 'a killed worker' lost

# ---- what is refused

job seed.yaml mlp "$momentum, consistency: {async: {staleness: 5}}, steps: 6"
fails 3 "seed.yaml:4:.*--replay: found a training with order: seed, which draws the same order each time, expected" \
    "$PENSTOCK" train seed.yaml --replay kept
fails 3 "sync.yaml:4:.*--replay: found a training with consistency: sync, which has no order, expected" \
    "$PENSTOCK" train sync.yaml --replay kept
job one.yaml mlp "$momentum, $free, steps: 40"
fails 3 "one.yaml:4:.*order: found free, but no folder for checkpoints, in which the order is recorded" \
    "$PENSTOCK" train one.yaml
job other.yaml mlp "${momentum/microbatches: 8/microbatches: 4}, $free, steps: 40"
fails 3 "kept/order/order.0*1:2:1: error: the record is of another training: found 'model .*, microbatches 8, .*expected 'model .*microbatches 4" \
    "$PENSTOCK" train other.yaml --replay kept
job long.yaml mlp "$momentum, $free, steps: 41"
fails 3 'the record is too short: it has the order of 40 steps, the training has 41; --steps 40 would do' \
    "$PENSTOCK" train long.yaml --replay kept
head -c -6 kept/order/order.* >cut
fails 3 'cut:43:1: error: the order of step 40 cannot be read: the line is cut off' "$PENSTOCK" train one.yaml --replay cut
sed '20s/^\(.*\) 0/\1 1/; 20s/^\(.*\) 1/\1 0/' kept/order/order.* >changed
cmp -s changed kept/order/order.* || fails 3 'changed:20:1: error: the order of step 17 cannot be read: the checksum of the line is wrong' \
    "$PENSTOCK" train one.yaml --replay changed
fails 3 'not a record of the order of lanes' "$PENSTOCK" train one.yaml --replay one.yaml
fails 4 'there is no record of the order of lanes in nothing' "$PENSTOCK" train one.yaml --replay nothing
# a checkpoint whose record is gone, or shorter than it
cp -r stopped shorter
sed -i '9,$d' shorter/order/order.*
job one.yaml mlp "$momentum, $free, steps: 20"
fails 3 'the record has the order of 5 steps, of which 12 were done by the checkpoint' \
    "$PENSTOCK" train one.yaml --checkpoint shorter --continue
job seed.yaml mlp "$momentum, consistency: {async: {staleness: 5}}, steps: 20"
fails 3 "consistency 'async, staleness 5, order free', the job has 'async, staleness 5'" \
    "$PENSTOCK" train seed.yaml --checkpoint stopped --continue
