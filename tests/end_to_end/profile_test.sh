#!/usr/bin/env bash
# profile and probe: tables that are made, kept, added to and checked; what cannot be measured.
. tests/end_to_end/common.sh
cat >job.yaml <<'END'
version: 1
model: {file: reference/lenet/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/lenet/inputs.npy}, labels: reference/lenet/labels.npy}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 8, epochs: 1}
devices:
  - {name: a, threads: 1}
  - {name: b, threads: 1}
  - {name: c, threads: 1, host: "localhost:7070"}
  - {name: d, threads: 4, host: "n2:7070", memory: 1GiB}
costs: costs.yaml
END
grep -v 'name: d' job.yaml >here.yaml
penstock profile --json --operator-time 1ms here.yaml >first.json 2>messages
grep -q 'wrote .*costs.yaml: [0-9]* operators, 1 rates, 0 links' messages || die "$(cat messages)"
check 'd["schema"] == "penstock/profile/1" and len(d["devices"]) == 1' first.json
check 'd["devices"][0]["measured"] == len(d["devices"][0]["operators"]) > 20' first.json
check 'd["devices"][0]["failed"] == d["devices"][0]["left"] == d["devices"][0]["kept"] == 0' first.json
check 'all(o["seconds"] > 0 for o in d["devices"][0]["operators"])' first.json
check 'd["devices"][0]["flops"] > 1e6 and "step_seconds" not in d["devices"][0]' first.json
grep -q '^  - {op: "conv", shape: "float32\[8,1,28,28\] float32\[6,1,5,5\] float32\[6\] ->' costs.yaml ||
    die "$(cat costs.yaml)"

# what is there is kept, byte for byte
cp costs.yaml before.yaml
penstock profile --json here.yaml >second.json 2>messages
check 'd["devices"][0]["measured"] == 0 and d["devices"][0]["kept"] > 20' second.json
cmp costs.yaml before.yaml

# links are added to it: of a process that a training would start, which measures with this one
grep -v 'name: [cd]' job.yaml | sed 's/^costs/  - {name: c, threads: 1, host: localhost}\n&/' >started.yaml
penstock probe started.yaml >out 2>messages || die "$(cat messages)"
grep -q '^2 links over memory: ' out || die "$(cat out)"
grep -q '^a to c over loopback: ' out || die "$(cat out)"
grep -q '^c to a over loopback: ' out || die "$(cat out)"
[ "$(grep -c '^  - {from: ' costs.yaml)" = 6 ] || die "$(cat costs.yaml)"
[ "$(grep -c '^  - {op: ' costs.yaml)" = "$(grep -c '^  - {op: ' before.yaml)" ] || die 'operators were lost'
grep -v 'name: [cd]' job.yaml >memory.yaml
penstock probe --json memory.yaml -o other.yaml >probe.json 2>messages
check '[l["medium"] for l in d["links"]] == ["memory"] and d["links"][0]["count"] == 2' probe.json
check 'all(l["bandwidth"] > 1e6 and l["latency"] > 0 for l in d["links"])' probe.json

# whole steps: compared, or taken as costs
penstock profile --check --steps 3 --top 5 here.yaml >out 2>messages
grep -q '^in 3 steps of ' out || die "$(cat out)"
grep -qE '^mean absolute error of operators: [0-9.]+ % weighted by time' out || die "$(cat out)"
grep -q 'and [0-9]* more$' out || die "$(cat out)"
cp before.yaml in_step.yaml
penstock profile --in-step --steps 3 --json here.yaml -o in_step.yaml --operator-time 1ms >steps.json 2>messages
check 'd["devices"][0]["steps"] == 3' steps.json
check 'd["devices"][0]["persistent_bytes"] > 0 and d["devices"][0]["arena_bytes"] > 0' steps.json
[ "$(grep -c 'runs: 3}' in_step.yaml)" -gt 20 ] || die "$(cat in_step.yaml)"

# a limit of time leaves operators, and says so
penstock profile --time-limit 1us --json here.yaml -o short.yaml >short.json 2>messages
check 'd["devices"][0]["left"] > 10' short.json
grep -q 'warning: the time limit left' messages || die "$(cat messages)"

# mistakes
fails 3 "no device is called 'z', possible: a, b, c, d" "$PENSTOCK" profile --device z job.yaml
fails 3 "^job.yaml:[0-9:]*: error: device 'd' is at 'n2:7070', on another machine, and there is no TLS" \
    "$PENSTOCK" profile --device d job.yaml
echo 'version: 1
rates: [{kind: cpu, threads: 0, flops: 1G, memory_bandwidth: 1GB/s}]' >wrong.yaml
fails 3 '^wrong.yaml:2:30: error: rates\[0\].threads: found "0"' "$PENSTOCK" profile job.yaml -o wrong.yaml
fails 3 '^wrong.yaml:2:30: error: ' "$PENSTOCK" probe job.yaml -o wrong.yaml
fails 2 'nowhere' "$PENSTOCK" profile job.yaml -o nowhere/costs.yaml
fails 2 '^error: --steps: found "0"' "$PENSTOCK" profile --steps 0 job.yaml
grep -v '^costs' job.yaml >silent.yaml
penstock profile --device a --time-limit 1us silent.yaml >out 2>messages
grep -q 'nothing will be written' messages || die "$(cat messages)"
