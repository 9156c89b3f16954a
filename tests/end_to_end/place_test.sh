# Placing workloads of the public benchmark's form: what is printed and written, and every mistake.
. tests/end_to_end/common.sh

# chain.json: 12 layers with their backward nodes, on 3 accelerators and a core
python3 - <<'EOF'
import json

def node(i, accelerator, size, backward=False, color=None, supported=1):
    return {"id": i, "supportedOnFpga": supported, "cpuLatency": 10 * accelerator, "fpgaLatency": accelerator,
            "isBackwardNode": int(backward), "colorClass": color if color is not None else i, "size": size}

def edge(a, b, cost):
    return {"sourceId": a, "destId": b, "cost": cost}

def write(name, nodes, edges, accelerators=3, cores=1, size=64):
    json.dump({"maxFPGAs": accelerators, "maxCPUs": cores, "maxSizePerFPGA": size, "nodes": nodes, "edges": edges},
              open(name, "w"), indent=1)

layers = 12
forward = [node(10 + i, 1 + i % 3, 8) for i in range(layers)]
backward = [node(110 + i, 2 * (1 + i % 3), 4, True, 10 + i) for i in range(layers)]
edges = [edge(10 + i, 11 + i, 0.25) for i in range(layers - 1)]
edges += [edge(111 + i, 110 + i, 0.25) for i in range(layers - 1)]
edges += [edge(10 + i, 110 + i, 0.25) for i in range(layers - 1)] + [edge(21, 121, 0.25)]
write("chain.json", forward + backward, edges)
write("tight.json", [node(i, 1, 40, supported=1) for i in range(4)], [edge(i, i + 1, 1) for i in range(3)], 3, 0)
write("large.json", [node(0, 1, 8), node(1, 1, 65)], [edge(0, 1, 1)], 2, 0)
write("core_only.json", [node(0, 1, 8), node(1, 1, 1, supported=False)], [edge(0, 1, 1)], 2, 0)
write("small.json", [node(0, 1, 8), node(1, 2, 8), node(2, 3, 8)], [edge(0, 1, 0.5), edge(1, 2, 0.5)], 2, 1)
write("empty.json", [], [], 1, 0)
write("wide.json", [node(i, 1 + i * 37 % 11, 1) for i in range(60)],
      [edge(i, i + 1 + i * 7 % 5, 0.25 + i % 3) for i in range(55)])
EOF

# without what differs from run to run
place() {
    printf '$ penstock place %s\n' "$*"
    local code=0
    timeout 60 "$PENSTOCK" place "$@" </dev/null >place.out 2>&1 || code=$?
    sed -E 's/^time  .*/time         (some)/' place.out
    printf 'exit %d\n\n' "$code"
}

echo '=== what is found'
place small.json
place small.json --strategy exhaustive --contiguous
place small.json --objective latency --strategy exhaustive
place small.json --strategy round_robin -o placement.json
cat placement.json
place small.json --strategy manual --placement placement.json
echo '{"0": 2, "1": 0, "2": 0}' >wished.json
place small.json --strategy manual --placement wished.json
fails 2 "placement beside the strategy .auto." "$PENSTOCK" place small.json --placement wished.json
place empty.json

echo '=== as JSON'
for options in '' '--contiguous' '--objective latency' '--objective latency --contiguous' '--objective traffic'; do
    # shellcheck disable=SC2086 # several options
    penstock place chain.json --json --time-limit 0.2s -o out.json $options >result.json
    check 'd["schema"] == "penstock/place/1"' result.json
    check 'd["strategy"] == "auto" and d["objective"] in ("throughput", "latency", "traffic")' result.json
    check 'len(d["placement"]) == 24 and set(d["placement"].values()) <= {0, 1, 2, 3}' result.json
    check '0 <= d["lower_bound"] <= d["value"] and 0 < d["seconds"] and len(d["devices"]) == 4' result.json
    check 'abs(d["gap"] - (d["value"] / d["lower_bound"] - 1 if d["lower_bound"] > 0 else 0)) < 1e-9' result.json
    check 'all(e["bytes"] <= 64 for e in d["devices"][:3])' result.json
    check 'd["objective"] != "throughput" or max(e["load"] for e in d["devices"]) == d["value"]' result.json
    check 'all(d["placement"][str(10 + i)] == d["placement"][str(110 + i)] for i in range(12))' result.json
    json 'json.dumps(d["placement"], sort_keys=True)' <result.json >one
    json 'json.dumps(d["placement"], sort_keys=True)' <out.json >two
    cmp one two || die "-o wrote another placement than --json printed"
done
# equal seeds, equal placements
for strategy in greedy random round_robin dynamic_programming metis exhaustive; do
    penstock place chain.json --json --seed 7 --strategy $strategy --time-limit 30s -o one >printed || die "$strategy"
    json 'd["strategy"]' <printed
    penstock place chain.json --json --seed 7 --strategy $strategy --time-limit 30s -o two >printed || die "$strategy"
    cmp one two || die "$strategy: equal seeds, different placements"
done

# a search counts its work: the same on one core, and no clock has a part in it
for options in '' '--contiguous' '--objective latency' '--strategy local_search'; do
    # shellcheck disable=SC2086 # several options
    penstock place wide.json --json --time-limit 0.1s -o one $options >printed
    check 'd["cut"] is False' printed
    # shellcheck disable=SC2086
    taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+$')" "$PENSTOCK" place wide.json --json \
        --time-limit 0.1s -o two $options >printed
    check 'd["cut"] is False' printed
    cmp one two || die "other cores, another placement: $options"
done

echo '=== what does not fit'
place tight.json
place tight.json --strategy greedy --contiguous
place tight.json --strategy exhaustive --objective latency
place large.json
place core_only.json

echo '=== the command line'
place
place small.json tight.json
place small.json --strategy greedi
place small.json --strategy ''
place small.json --objective thruput
place small.json --time-limit 0
place small.json --time-limit soon
place small.json --seed -1
place small.json --threads many
place small.json --placement wished.json --strategy manual --contiguos

echo '=== files'
echo '{"0": 3}' >beyond.json
echo '{"9": 0}' >unknown.json
echo '{"0": 0, "0": 1}' >twice.json
printf '{"placement": ' >cut.json
printf '\001\002' >binary.json
mkdir folder
: >nothing.json
place nowhere.json
place folder
place nothing.json
place cut.json
place binary.json
place small.json --strategy manual --placement nowhere.json
place small.json --strategy manual --placement beyond.json
place small.json --strategy manual --placement unknown.json
place small.json --strategy manual --placement twice.json
place small.json -o nowhere/out.json
place small.json -o folder
code=0
"$PENSTOCK" place small.json >/dev/full 2>full.err || code=$?
printf 'standard output full: exit %d, %s\n\n' "$code" "$(cat full.err)"

# wrong KEY-PATH VALUE: small.json with one entry changed; VALUE is JSON, or nothing to drop the entry
wrong() {
    printf '# %s: %s\n' "$1" "${2:-(dropped)}"
    python3 - "$@" >wrong.json <<'EOF'
import json, sys
d = at = json.load(open("small.json"))
*path, last = [int(k) if k.lstrip("-").isdigit() else k for k in sys.argv[1].split(".")]
for key in path:
    at = at[key]
if len(sys.argv) < 3:
    del at[last]
else:
    at[last] = "\0"
print(json.dumps(d).replace('"\\u0000"', sys.argv[2] if len(sys.argv) > 2 else ""))
EOF
    place wrong.json
}

echo '=== entries'
wrong maxFPGAs
wrong maxFPGAs '"two"'
wrong maxFPGAs -1
wrong maxFPGAs 1e18
wrong maxCPUs 99999999999999999999999
wrong maxSizePerFPGA NaN
wrong maxSizePerFPGA -5
wrong maxSizePerFPGA null
wrong nodes
wrong nodes '{}'
wrong nodes.1 17
wrong nodes.1.id
wrong nodes.1.id 0
wrong nodes.1.id 1.5
wrong nodes.1.supportedOnFpga '"yes"'
wrong nodes.1.cpuLatency -0.5
wrong nodes.1.cpuLatency Infinity
wrong nodes.1.fpgaLatency
wrong nodes.1.fpgaLatency 1e40
wrong nodes.1.isBackwardNode 2
wrong nodes.1.colorClass '[1]'
wrong nodes.1.size true
wrong nodes.1.size -8
wrong edges
wrong edges.0.sourceId 77
wrong edges.0.sourceId '"0"'
wrong edges.1.destId
wrong edges.1.destId 0
wrong edges.1.cost -1
wrong edges.1.cost '{"s": 1}'
