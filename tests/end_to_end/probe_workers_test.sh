#!/usr/bin/env bash
# probe measures links through the workers at their ends: two here, at addresses that are not known
# to be of this machine, and this process. Plans take the figures as measured. Workers that are not
# there, or die meanwhile, are named.
. tests/end_to_end/common.sh

declare -A workers ports
trap 'kill "${workers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
start_worker() { # NUMBER
    mkfifo "pipe$1"
    "$PENSTOCK" worker --insecure --listen 127.0.0.1:0 --announce 9 9>"pipe$1" 2>"worker$1.log" &
    workers[$1]=$!
    read -r "ports[$1]" <"pipe$1"
}
start_worker 1
start_worker 2
one="0.0.0.0:${ports[1]}" two="[::ffff:127.0.0.1]:${ports[2]}"

job() { # FILE HOST HOST [KEYS]
    cat >"$1" <<END
version: 1
model: {file: reference/lenet/model.onnx}
data:
  train: {format: npy, inputs: {input: reference/lenet/inputs.npy}, labels: reference/lenet/labels.npy}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.05}}, batch: 8, epochs: 1}
devices:
  - {name: a, threads: 1}
  - {name: b, threads: 1, memory: 1GiB, host: "$2"}
  - {name: c, threads: 1, memory: 1GiB, host: "$3"}
costs: costs.yaml
${4-}
END
}
job job.yaml "$one" "$two"
penstock probe --insecure --json job.yaml >probe.json 2>messages || die "$(cat messages)"
check '[r.get("host", "") for r in d["rates"]] == ["", "0.0.0.0", "[::ffff:127.0.0.1]"]' probe.json
check 'sorted((l["from"], l["to"]) for l in d["links"]) == [(x, y) for x in "abc" for y in "abc" if x != y]' probe.json
check 'all(l["medium"] == "network" for l in d["links"])' probe.json
check 'all(1e6 < l[k] < 1e12 for l in d["links"] for k in ("bandwidth", "bandwidth_alone"))' probe.json
check 'all(1e-7 < l[k] < 10 for l in d["links"] for k in ("latency", "latency_idle"))' probe.json
check 'all(0 <= l["message"] < 1 for l in d["links"])' probe.json
check 'all(l[k] > 1e6 for l in d["links"] for k in ("send", "receive"))' probe.json
[ "$(grep -c '^  - {from: ' costs.yaml)" = 6 ] || die "$(cat costs.yaml)"
[ "$(grep -c 'message: ' costs.yaml)" = 6 ] || die "$(cat costs.yaml)"

# a plan reads them, and a line that is slow in the table is slow in it
penstock plan --json --strategy round_robin job.yaml >plan.json 2>messages || die "$(cat messages)"
sed 's/bandwidth: [0-9.]*[kMG]B\/s, latency/bandwidth: 1kB\/s, latency/' costs.yaml >slow.yaml
penstock plan --json --strategy round_robin --costs slow.yaml job.yaml >slow.json 2>messages || die "$(cat messages)"
moved='sum(t["seconds"] for t in d["transfers"])'
python3 -c 'import sys
assert float(sys.argv[2]) > 100 * float(sys.argv[1]) > 0, sys.argv' \
    "$(json "$moved" <plan.json)" "$(json "$moved" <slow.json)" || die 'plans do not use the links'

# processes of this host, through shared memory or not, by the job's own word
job here.yaml "127.0.0.1:${ports[1]}" "127.0.0.1:${ports[1]}" 'pipeline: {transport: grpc}'
penstock probe --json -o here_costs.yaml here.yaml >here.json 2>messages || die "$(cat messages)"
check '[l["medium"] for l in d["links"]] == ["memory", "loopback", "loopback"]' here.json

# errors name the worker and the reason; what the table has stays
cp costs.yaml before.yaml
job gone.yaml "$one" '[::ffff:127.0.0.1]:1' 'pipeline: {rendezvous_timeout: 2 s}'
fails 6 'not there after 2 s: worker 3 \(\[::ffff:127.0.0.1\]:1\): .*[Rr]efused' \
    "$PENSTOCK" probe --insecure gone.yaml
fails 3 "^job.yaml:[0-9:]*: error: device 'b' is at '0.0.0.0:.*', on another machine, and there is no TLS" \
    "$PENSTOCK" probe job.yaml
penstock probe --insecure job.yaml >out 2>messages &
probe=$!
sleep 5
kill -9 "${workers[2]}"
code=0
wait "$probe" || code=$?
[ "$code" = 6 ] || die "exit code $code: $(cat messages)"
grep -qE 'worker 3' messages || die "$(cat messages)"
cmp costs.yaml before.yaml

# the other serves on
job one.yaml "$one" "$one"
penstock probe --insecure -o one_costs.yaml one.yaml >out 2>messages || die "$(cat messages)"
[ "$(grep -c '^  - {from: ' one_costs.yaml)" = 4 ] || die "$(cat one_costs.yaml)"
