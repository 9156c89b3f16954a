#!/usr/bin/python3
"""Replicas that exchange while they compute, beside those that exchange afterwards.

  exchange_bench.py --penstock build/gcc/penstock [--out build/bench] [--hosts 4] [--cores 1.4] [--models a,b]
                    [--ratios 0.25,0.5,1,2]

Hosts are those of cluster_bench.py: one replica on each, one microbatch in a lane. `compute` is what
the busiest device computes in a step, measured with lines of 10 Gbit/s. `transfer` is what the
fullest line takes to carry the sums and values of a step one after the other, out of a host or into
it. Lines are made as slow as each ratio of the two says, and the plans know it. No step can be
shorter than the longer of the two; `ends` is what the line carries for the pieces whose exchange
nothing is left to hide. `busy` is the share of the step in which devices compute, in the mean.
Rows are added to exchange.rows.json in --out. Needs root, as cluster_bench.py.
"""
import argparse
import json
import os
import sys

import cluster_bench

# batch and microbatches: one for each of four lanes
MODELS = {"residual_mlp": 256, "resnet18": 16, "mlp2048": 256, "bert4": 8, "lstm512": 32}
STEPS = 8
QUICK_LINE = 10000 # Mbit/s

JOB = """version: 1
{model}
data: {{train: {{format: npy, inputs: {{{input}: {name}_inputs.npy}}, labels: {name}_labels.npy}}}}
train: {{loss: softmax_cross_entropy, optimizer: {{sgd: {{lr: 0.0001}}}}, batch: {batch}, microbatches: {hosts},
  lanes: {hosts}, steps: {steps}, shuffle: false}}
pipeline: {{exchange: {exchange}}}
costs: exchange.costs.yaml
placement: {{replicas: {hosts}, time_limit: 2s}}
links: [{{between: ["n?", "n?"], bandwidth: {rate:.3f}Mbit/s}}]
devices:
{devices}
"""


def write_job(options, model, cluster, exchange, rate):
    write, name = cluster_bench.MODELS[model][:2]
    path = f"{options.out}/exchange.{model}.{exchange}.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(JOB.format(model=write(options.out), input=name, name=model, batch=MODELS[model],
                              hosts=options.host_count, steps=STEPS + cluster_bench.WARM_UP, exchange=exchange,
                              rate=rate, devices="\n".join(f"  - {device}" for device in cluster.devices())))
    return path


def set_rate(cluster, rate):
    for host in cluster.hosts[1:]:
        cluster_bench.run("ip", "netns", "exec", host.name, "tc", "qdisc", "change", "dev", "eth0", "root", "tbf",
                          "rate", f"{rate * 1000:.0f}kbit", "burst", "256kbit", "latency", "50ms")


def line_bytes(plan, stages=None):
    """Bytes of the fullest line in a step, of all transfers or of those from and to these stages."""
    lines = {}
    for transfer in plan["transfers"]:
        source, target = (plan["stages"][transfer[end]]["device"] for end in ("from", "to"))
        if stages is not None and not {transfer["from"], transfer["to"]} & stages:
            continue
        for line in (("out", source), ("in", target)):
            lines[line] = lines.get(line, 0) + transfer["bytes"]
    return max(lines.values(), default=0)


def first_stages(plan):
    """Those that end their backward pass last."""
    firsts = {}
    for number, stage in enumerate(plan["stages"]):
        firsts.setdefault(stage["device"], number)
    return set(firsts.values())


def busiest(trace_path):
    """Median over steps of what the busiest device computes, in seconds."""
    with open(trace_path, encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X" and e.get("cat") == "compute"]
    steps = {}
    for event in events:
        step = steps.setdefault(event["args"]["step"], {})
        step[event["args"]["device"]] = step.get(event["args"]["device"], 0) + event["dur"] * 1e-6
    most = sorted(max(step.values()) for step in list(steps.values())[cluster_bench.WARM_UP:])
    return most[len(most) // 2]


def train(options, model, cluster, exchange, rate):
    set_rate(cluster, rate)
    job = write_job(options, model, cluster, exchange, rate)
    name = f"{options.out}/exchange.{exchange}"
    plan = json.loads(cluster_bench.run(options.penstock, "plan", job, "-o", f"{name}.plan.yaml", "--json").stdout)
    cluster_bench.run(*cluster.command(options.penstock, "train", f"{name}.plan.yaml", "--json", "--no-eval",
                                       "--insecure", "--overwrite", "--trace", f"{name}.trace.json"))
    seconds, bubble = cluster_bench.measured(f"{name}.trace.json")
    return {"plan": plan, "real": seconds, "busy": 1 - bubble, "busiest": busiest(f"{name}.trace.json")}


def measure_model(options, model, cluster, rows):
    set_rate(cluster, QUICK_LINE)
    job = write_job(options, model, cluster, "after_backward", QUICK_LINE)
    for words in (["profile", job, "--operator-time", "50ms"], ["probe", job]):
        cluster_bench.run(*cluster.command(options.penstock, *words, "--insecure", "-q"))
    quick = train(options, model, cluster, "after_backward", QUICK_LINE)
    compute, line = quick["busiest"], line_bytes(quick["plan"])
    for ratio in options.ratios:
        rate = line * 8e-6 / (ratio * compute)
        row = {"model": model, "hosts": options.host_count, "ratio": ratio, "Mbit/s": rate, "compute": compute,
               "transfer": ratio * compute, "bytes": line}
        for exchange in ("overlapped", "after_backward"):
            trained = train(options, model, cluster, exchange, rate)
            plan = trained.pop("plan")
            row[exchange] = {"predicted": plan["step_seconds"], "stages": len(plan["stages"]),
                             "ends": line_bytes(plan, first_stages(plan)) * 8e-6 / rate, **trained}
        rows.append(row)
        with open(f"{options.out}/exchange.rows.json", "a", encoding="ascii") as file:
            file.write(json.dumps(row) + "\n")
        show(row)


def show(row):
    over, last = row["overlapped"], row["after_backward"]
    least = max(row["compute"], row["transfer"])
    print(f"| {row['model']} | {row['ratio']} | {row['Mbit/s']:.0f} | {row['compute']:.3f} | {row['transfer']:.3f} "
          f"| {over['predicted']:.3f} | {over['real']:.3f} | {over['real'] / (1.1 * least + over['ends']):.2f} "
          f"| {over['busy']:.0%} | {last['predicted']:.3f} | {last['real']:.3f} | {last['busy']:.0%} "
          f"| {over['busy'] / last['busy'] - 1:+.0%} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--hosts", dest="host_count", type=int, default=4)
    parser.add_argument("--cores", type=float, default=1.4, help="that all hosts share")
    parser.add_argument("--models", default=",".join(MODELS), help=", ".join(MODELS))
    parser.add_argument("--ratios", default="0.25,0.5,1,2", help="of transfer to compute")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("exchange_bench.py: hosts in namespaces need root and iproute2")
    os.makedirs(options.out, exist_ok=True)
    options.penstock, options.out = os.path.abspath(options.penstock), os.path.abspath(options.out)
    options.ratios = [float(ratio) for ratio in options.ratios.split(",")]
    options.place, options.rate = "cluster", QUICK_LINE
    print("| model | ratio | Mbit/s | compute | transfer | predicted | overlapped | of its limit | busy "
          "| predicted | afterwards | busy | gain |")
    print("|---" * 13 + "|")
    rows = []
    cluster = cluster_bench.Cluster(options)
    try:
        for model in options.models.split(","):
            measure_model(options, model, cluster, rows)
    finally:
        cluster.close()
    gains = [row["overlapped"]["busy"] / row["after_backward"]["busy"] - 1 for row in rows]
    print(f"\ndevices are busy {sum(gains) / len(gains):+.0%} in the mean, by the share of a step")


if __name__ == "__main__":
    main()
