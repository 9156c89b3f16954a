#!/usr/bin/python3
"""Pipelines of two stages on two cores, beside what two cores could do, and beside PyTorch.

  pipeline_bench.py --penstock build/gcc/penstock [--out build/bench] [--rounds R] [--no-peer]
                    [efficiency[:MODEL]] [placement]

efficiency  Two devices of one thread each, in one process, and as two processes that share memory
            or use gRPC. The bound is what two independent runs of one thread do at once with the
            same microbatches, summed, times 1 - the bubble of the schedule simulated with the stage
            costs measured in the run, steps overlapping as they do there: what a pipeline would do
            whose stages disturb each other as little as strangers, and whose transfers cost
            nothing. Beside it the bubble measured, and PyTorch with two processes over gloo and
            1F1B, cut where it is fastest.
placement   Greedy placement against random ones, both really run: the time saved.

Prints tables and puts rows into build/bench.json (ours / other: samples a second).
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys

import bench_rows

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_UP = 2
# batch, microbatches, steps
CASES = {"resnet18": (16, 8, 5), "mlp2048": (256, 8, 12)}
RANDOM_SEEDS = 5

JOB = """version: 1
model: {{file: {model}.onnx}}
data: {{train: {{format: npy, inputs: {{input: {model}_inputs.npy}}, labels: {model}_labels.npy}}}}
train:
  loss: softmax_cross_entropy
  optimizer: {{sgd: {{lr: 0.001, momentum: 0.9}}}}
  batch: {batch}
  microbatches: {microbatches}
  steps: {steps}
  shuffle: false
{more}devices:
"""


def write_job(options, name, model, devices, more="", steps=None):
    batch, microbatches, usual = CASES[model]
    path = f"{options.out}/{name}.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(JOB.format(model=model, batch=batch, microbatches=microbatches, more=more,
                              steps=(steps or usual) + WARM_UP))
        for device in devices:
            file.write(f"  - {device}\n")
    return path


def start(options, path, *more):
    environment = dict(os.environ, OMP_PROC_BIND="false")
    return subprocess.Popen([options.penstock, "train", path, "--json", "--no-eval", *more],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment)


def finish(child):
    out, errors = child.communicate()
    if child.returncode != 0:
        sys.exit(f"pipeline_bench.py: {' '.join(child.args)}: {errors}")
    return json.loads(out)


def rate(report, batch):
    """Samples a second over all steps after the first ones: they overlap, so none counts alone."""
    steps = report["steps"][WARM_UP:]
    return batch * len(steps) / sum(step["seconds"] + step["wait_seconds"] for step in steps)


# ---- the bubble, measured and simulated

def tasks_of(trace):
    """What each device computed in the steps after the first ones, in order: tuples of start,
    duration, step, kind, stage, microbatch. Steps overlap: a device begins the next when it is
    through its own tasks."""
    devices = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event.get("ph") != "X" or event.get("cat") != "compute":
            continue
        args = event["args"]
        if args.get("form", 0) == 0 and args["step"] > WARM_UP:
            devices[args["device"]].append((event["ts"], event["dur"], args["step"], args["task"],
                                            args["stage"], args["microbatch"]))
    for tasks in devices.values():
        tasks.sort()
    return devices


def measured_bubble(devices):
    first = min(tasks[0][0] for tasks in devices.values())
    last = max(tasks[-1][0] + tasks[-1][1] for tasks in devices.values())
    busy = sum(task[1] for tasks in devices.values() for task in tasks)
    return 1 - busy / (len(devices) * (last - first))


def simulated_bubble(devices, cost):
    """The same orders with these costs, each task as soon as its inputs are there: a stage's forward
    after that of the stage before, its backward after that of the stage behind, updates after the
    losses of all microbatches."""
    tasks = [task for each in devices.values() for task in each]
    last_stage = max(task[4] for task in tasks)
    count = 1 + max(task[5] for task in tasks if task[3] == "forward")
    ends, free, at = {}, {d: 0.0 for d in devices}, {d: 0 for d in devices}
    back = {"backward", "backward_input"}

    def needs(step, kind, stage, microbatch):
        if kind == "forward":
            return [("f", step, stage - 1, microbatch)] if stage > 0 else []
        if kind in back:
            after = [("b", step, stage + 1, microbatch)] if stage < last_stage else []
            return after + [("f", step, stage, microbatch)]
        if kind == "backward_weight":
            return [("b", step, stage, microbatch)]
        return [("f", step, last_stage, m) for m in range(count)]

    moved = True
    while moved:
        moved = False
        for d, mine in devices.items():
            while at[d] < len(mine):
                _, _, step, kind, stage, microbatch = mine[at[d]]
                wanted = needs(step, kind, stage, microbatch)
                if any(key not in ends for key in wanted):
                    break
                begin = max([free[d]] + [ends[key] for key in wanted])
                free[d] = begin + cost[kind, stage]
                if kind == "forward":
                    ends["f", step, stage, microbatch] = free[d]
                elif kind in back:
                    ends["b", step, stage, microbatch] = free[d]
                at[d] += 1
                moved = True
    if any(at[d] < len(mine) for d, mine in devices.items()):
        sys.exit("pipeline_bench.py: the stages of the plan are no chain")
    busy = sum(cost[task[3], task[4]] for task in tasks)
    return 1 - busy / (len(devices) * max(free.values()))


def bubbles(path):
    """Measured, and simulated with the costs measured."""
    with open(path, encoding="utf-8") as file:
        devices = tasks_of(json.load(file))
    samples = collections.defaultdict(list)
    for tasks in devices.values():
        for _, seconds, _, kind, stage, _ in tasks:
            samples[kind, stage].append(seconds)
    cost = {key: statistics.mean(values) for key, values in samples.items()}
    return measured_bubble(devices), simulated_bubble(devices, cost)


# ---- efficiency

# how the two devices are joined -> whether they are processes, and the job's pipeline.transport
JOINTS = {"threads": (False, "auto"), "shared": (True, "auto"), "gRPC": (True, "grpc")}


def run_pipeline(options, model, joint, costs):
    are_processes, transport = JOINTS[joint]
    host = ", host: localhost" if are_processes else ""
    devices = [f"{{name: d{i}, threads: 1{host}}}" for i in (1, 2)]
    name = f"pipeline.{model}.{joint}".lower()
    more = f"costs: {costs}\npipeline: {{schedule: 1f1b, transport: {transport}}}\n"
    path = write_job(options, name, model, devices, more)
    trace = f"{options.out}/{name}.trace.json"
    report = finish(start(options, path, "--trace", trace))
    measured, simulated = bubbles(trace)
    return rate(report, CASES[model][0]), measured, simulated


def run_peer(options, model):
    batch, microbatches, steps = CASES[model]
    done = subprocess.run(["/usr/bin/python3", f"{HERE}/torch_pipeline_peer.py", model, "--batch",
                           str(batch), "--microbatches", str(microbatches), "--runs", str(steps)],
                          check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["best"]


def export(options, model):
    if not os.path.exists(f"{options.out}/{model}_labels.npy"):
        subprocess.run(["/usr/bin/python3", f"{HERE}/export_bench_models.py", "--out", options.out,
                        model], check=True)


def measure_costs(options, model):
    """Costs of the operators on one thread, so that the cut is a good one."""
    path = write_job(options, f"pipeline.{model}.profile", model, ["{name: d1, threads: 1}"])
    costs = f"pipeline.{model}.costs.yaml"
    subprocess.run([options.penstock, "profile", path, "-o", f"{options.out}/{costs}"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return costs


def measure_efficiency(options, model):
    export(options, model)
    costs = measure_costs(options, model)
    one = write_job(options, f"pipeline.{model}.one", model, ["{name: d1, threads: 1}"])
    lines, rows = [], []
    found = collections.defaultdict(list)
    for _ in range(options.rounds):
        pair = [start(options, one), start(options, one)]
        found["pair"].append(sum(rate(finish(child), CASES[model][0]) for child in pair))
        for joint in JOINTS:
            found[joint].append(run_pipeline(options, model, joint, costs))
        if not options.no_peer:
            found["gloo"].append(run_peer(options, model)["samples_per_second"])
    pair = statistics.median(found["pair"])
    for joint in JOINTS:
        rates = [rate for rate, _, _ in found[joint]]
        measured = statistics.median(m for _, m, _ in found[joint])
        simulated = statistics.median(s for _, _, s in found[joint])
        bounds = [alone * (1 - sim) for alone, (_, _, sim) in zip(found["pair"], found[joint])]
        bound, ours = statistics.median(bounds), statistics.median(rates)
        rows.append(bench_rows.row(f"pipeline {model} {joint}: of the bound", 1, rates, bounds,
                                   "two independent threads x (1 - bubble)", "samples/s"))
        line = [model, joint, f"{ours:.2f}", f"{pair:.2f}", f"{bound:.2f}", f"{ours / bound:.3f}",
                f"{measured:.3f}", f"{simulated:.3f}"]
        if found["gloo"]:
            rows.append(bench_rows.row(f"pipeline {model} {joint}: of PyTorch", 1, rates,
                                       found["gloo"], "PyTorch, gloo", "samples/s"))
            line += [f"{statistics.median(found['gloo']):.2f}",
                     f"{ours / statistics.median(found['gloo']):.2f}"]
        lines.append(line)
    return lines, rows


def efficiency(options, models):
    lines, rows = [], []
    for model in models:
        more = measure_efficiency(options, model)
        lines += more[0]
        rows += more[1]
    heads = ["model", "", "samples/s", "pair", "bound", "of bound", "bubble", "simulated"]
    if not options.no_peer:
        heads += ["gloo", "of gloo"]
    print("\nPipelines of two stages, one thread each (of bound: at least 0.95; of gloo: 1.2)")
    bench_rows.show_table(heads, lines)
    return rows


# ---- placement

def run_placed(options, model, strategy, seed, count):
    more = f"placement: {{strategy: {strategy}, seed: {seed}}}\npipeline: {{schedule: 1f1b}}\n"
    more += f"costs: pipeline.{model}.costs.yaml\n"
    devices = [f"{{name: d{i}, threads: 1}}" for i in range(1, count + 1)]
    path = write_job(options, f"placed.{model}", model, devices, more)
    return rate(finish(start(options, path)), CASES[model][0])


def placement(options, models):
    lines, rows = [], []
    for model in models:
        export(options, model)
        measure_costs(options, model)
        for count in (2, 4):
            greedy = [run_placed(options, model, "greedy", 1, count) for _ in range(options.rounds)]
            random = [run_placed(options, model, "random", seed, count)
                      for seed in range(1, RANDOM_SEEDS + 1)]
            seconds = [statistics.mean(1 / value for value in values) for values in (greedy, random)]
            saved = 1 - seconds[0] / seconds[1]
            rows.append(bench_rows.row(f"greedy placement {model}, {count} devices", 1, greedy,
                                       random, "random placements", "samples/s"))
            lines.append([model, str(count), f"{statistics.median(greedy):.2f}",
                          f"{min(random):.2f} to {max(random):.2f}", f"{100 * saved:.0f} %"])
    print("\nGreedy against random placement, really run (the thesis: 34 % saved)")
    bench_rows.show_table(["model", "devices", "greedy", "random", "time saved"], lines)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    options.penstock = os.path.abspath(options.penstock)
    os.makedirs(options.out, exist_ok=True)
    rows = []
    for part in options.parts or ["efficiency", "placement"]:
        kind, _, model = part.partition(":")
        models = [model] if model else list(CASES)
        if kind not in ("efficiency", "placement") or model not in ("", *CASES):
            parser.error(f"no part '{part}'; there are efficiency, placement, and :MODEL behind them")
        rows += efficiency(options, models) if kind == "efficiency" else placement(options, models)
    bench_rows.save(f"{os.path.dirname(options.out) or '.'}/bench.json", rows)


if __name__ == "__main__":
    main()
