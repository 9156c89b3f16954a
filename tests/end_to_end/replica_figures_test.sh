# What replicas send and hold: as predicted, and as lanes and owners ask for by the judge's arithmetic.
. tests/end_to_end/common.sh
python3 "$top/tests/end_to_end/make_training_models.py" . mlp embedding resnet18:16

# job FILE MODEL TRAIN REPLICAS
job() {
    local d
    {
        cat <<END
version: 1
model: {file: $2.onnx}
data: {train: {format: npy, inputs: {x: $2_x.npy}, labels: $2_y.npy}}
train: {loss: softmax_cross_entropy, $3, seed: 3, steps: 3}
placement: {replicas: $4, time_limit: 1s}
devices:
END
        for ((d = 1; d <= $4; d++)); do
            echo "  - {name: d$d, memory: 1GiB, threads: 1, host: localhost}"
        done
    } >"$1.yaml"
}

# measure NAME LANES,LANES...: plans unless there is a plan, edits which lanes replicas have, trains
# by the plan, and prints the judge's units
measure() {
    local list=$2 first=0 count edits='' d=1
    for count in ${list//,/ }; do
        edits+="s/lanes: \[[0-9]+, [0-9]+\], devices: \[\"d$d\"\]/lanes: [$first, $((first + count - 1))], devices: [\"d$d\"]/;"
        first=$((first + count)) d=$((d + 1))
    done
    penstock plan "$1.yaml" -o "$1.first.yaml" >/dev/null 2>messages || die "$1: $(cat messages)"
    sed -E "$edits" "$1.first.yaml" >"$1.edited.yaml"
    penstock plan "$1.yaml" --from "$1.edited.yaml" -o "$1.plan.yaml" >/dev/null 2>messages || die "$1: $(cat messages)"
    penstock train "$1.plan.yaml" --json --no-eval --trace "$1.trace.json" >"$1.json" 2>messages || die "$1: $(cat messages)"
    # once more, for who has which moments: copies for checkpoints are memory, too
    echo "checkpoint: {dir: $1.kept, every: 3 steps}" >>"$1.yaml"
    penstock train "$1.plan.yaml" --json --no-eval >"$1.kept.json" 2>messages || die "$1: $(cat messages)"
    near 0.05 "$1.kept.json"
    check 'all(k["bytes"] > b["bytes"] for k, b in zip(d["measured"]["devices"],
        json.load(open("'"$1"'.json"))["measured"]["devices"]))' "$1.kept.json" 'copies take nothing'
}

# near PART FILE: what devices hold is as predicted
near() {
    check 'all(abs(p["bytes"] - a["bytes"]) <= '"$1"' * p["bytes"]
        for p, a in zip(d["predicted"]["devices"], d["measured"]["devices"]))' "$2"
}

units() { # NAME LANES EXPECTED
    local found
    measure "$1" "$2"
    found=$(python3 "$top/tests/end_to_end/judge_replicas.py" "$1.json" "$1.trace.json" "$1.kept/shards" "$2") ||
        die "$1, lanes $2"
    [ "$found" = "$3" ] || die "$1, lanes $2: sent $found gradients, expected $3"
}

adam='optimizer: {adamw: {lr: 0.01}}, batch: 16, microbatches: 8, lanes: 8'
for case in '2 4,4 1.00' '4 2,2,2,2 1.50' '2 3,5 1.50'; do
    set -- $case
    job "mlp$1-${2//,/-}" mlp "$adam" "$1"
    units "mlp$1-${2//,/-}" "$2" "$3"
done

# a run says how late its exchange came, and a plan is made with that
check 'all(c["planned_seconds"] > 0 for c in d["penstock"]["channels"]
    if c["once_a_step"] and "from" in c and "to" in c)' mlp2-4-4.trace.json 'exchanges are not planned'
check 'any("with" in c for c in d["penstock"]["channels"] if c["once_a_step"])' mlp2-4-4.trace.json
check '"transfer_seconds" in d["measured"]["difference"]' mlp2-4-4.json
penstock plan mlp2-4-4.yaml --from-run mlp2-4-4.trace.json -o seen.plan.yaml >/dev/null 2>messages || die "$(cat messages)"
latencies() { grep -oE 'latency: [^,}]*' "$1" | sort -u; }
[ -n "$(latencies mlp2-4-4.first.yaml)" ] || die 'an exchange has no latency'
[ "$(latencies seen.plan.yaml)" != "$(latencies mlp2-4-4.first.yaml)" ] || die 'the exchange is planned as before'

# rows of tables and of statistics: what was sent and held is what was predicted
for case in 'embedding 2 8' 'embedding 3 8' 'resnet18 2 4' 'resnet18 3 4'; do
    set -- $case
    job "$1$2" "$1" "optimizer: {adamw: {lr: 0.01}}, batch: 16, microbatches: 8, lanes: $3" "$2"
    penstock train "$1$2.yaml" --json --no-eval >"$1$2.json" 2>messages || die "$case: $(cat messages)"
    check 'all(abs(p[k] - a[k]) <= part * p[k] for k, part in (("bytes", 0.05), ("sent_bytes", 0.01))
        for p, a in zip(d["predicted"]["devices"], d["measured"]["devices"]))' "$1$2.json" "$case"
done

# copies for checkpoints are planned: where there is room for them
for host in process localhost; do
    for memory in 1GiB 700KiB; do
        job saved mlp 'optimizer: {adamw: {lr: 0.01}}, batch: 16, microbatches: 4' 1
        sed -i '/^devices/,$d; s/replicas: 1, //' saved.yaml
        [ "$host" = process ] && at='' || at=", host: $host"
        cat >>saved.yaml <<END
checkpoint: {dir: saved-$host-$memory, every: 1 step}
devices:
  - {name: d1, memory: $memory, threads: 1$at}
  - {name: d2, memory: $memory, threads: 1$at}
END
        sed -i 's/placement: {/placement: {strategy: greedy, /' saved.yaml
        penstock plan saved.yaml --json >saved.plan.json 2>messages || die "$host $memory: $(cat messages)"
        penstock train saved.yaml --json --no-eval >saved.json 2>messages || die "$host $memory: $(cat messages)"
        near 0.01 saved.json
        check '[v["bytes"] for v in d["predicted"]["devices"]] == \
            [v["memory"]["total"] for v in json.load(open("saved.plan.json"))["devices"]]' saved.json "$host $memory"
        check '(sum(v["memory"]["saved"] for v in d["devices"]) > 0) == ("'"$memory"'" == "1GiB")' saved.plan.json
    done
done
