"""What placement saves: the simulated step of greedy and auto beside random placement (the mean of
many seeds) and beside the fastest device alone. Networks are exported and go through `penstock
plan`; workloads of transformers go through `penstock place`, their largest load standing for the
step. The work that this project starts from reports 34% saved by greedy placement on average.
"""
import json
import math
import os
import statistics
import subprocess

import bench_rows
import workload_judge
import placement_table

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ["resnet50", "inception_v3", "densenet121"]
SEEDS = 20
REPORTED = 34.0  # percent
MICROBATCHES, BATCH = 4, 8

JOB = """version: 1
model: {{file: {model}.onnx}}
data:
  train:
    format: npy
    inputs: {{input: {model}_inputs.npy}}
    labels: {model}_labels.npy
train:
  loss: softmax_cross_entropy
  optimizer: {{sgd: {{lr: 0.001, momentum: 0.9}}}}
  batch: {batch}
  microbatches: {microbatches}
  steps: 1
devices:
"""
# rates 1:2:4:8, memories 1:4
DEVICES = ["  - {name: a, memory: 16GiB, flops: 800G}\n", "  - {name: b, memory: 8GiB, flops: 400G}\n",
           "  - {name: c, memory: 4GiB, flops: 200G}\n", "  - {name: d, memory: 4GiB, flops: 100G}\n"]
LINKS = """links:
  - {between: ["^", "^"], bandwidth: 10Gbit/s, latency: 50us}
"""


def write_job(options, model, device_count):
    path = f"{options.out}/{model}.plan{device_count}.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(JOB.format(model=model, batch=BATCH, microbatches=MICROBATCHES))
        file.write("".join(DEVICES[:device_count]))
        if device_count > 1:
            file.write(LINKS)
    return path


def plan(options, path, strategy, seed):
    """Simulated seconds of a step, or None when nothing fits."""
    run = subprocess.run([options.penstock, "plan", path, "--strategy", strategy, "--seed",
                          str(seed), "--time-limit", f"{options.seconds:g}s", "--json", "--quiet"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if run.returncode == 0:
        return json.loads(run.stdout)["step_seconds"]
    if run.returncode == 5:
        return None
    raise RuntimeError(f"{path}, {strategy}: {run.stderr.decode()}")


def plan_figures(options, model):
    """{random, one, greedy, auto} in seconds."""
    path = write_job(options, model, len(DEVICES))
    random = [plan(options, path, "random", seed) for seed in range(1, SEEDS + 1)]
    random = [seconds for seconds in random if seconds is not None]
    return {"random": statistics.mean(random) if random else None,
            "one": plan(options, write_job(options, model, 1), "greedy", 1),
            "greedy": plan(options, path, "greedy", 1), "auto": plan(options, path, "auto", 1)}


def place_figures(options, path):
    """The same for a workload, in seconds; one device is an accelerator, whatever its memory."""
    workload = workload_judge.load(path)

    def value(strategy, seed):
        report = None
        command = [options.penstock, "place", path, "--strategy", strategy, "--seed", str(seed),
                   "--time-limit", f"{options.seconds:g}s", "--json", "--quiet"]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             check=False)
        if run.returncode == 0:
            report = json.loads(run.stdout)
        return None if report is None else 1e-3 * report["value"]

    random = [value("random", seed) for seed in range(1, SEEDS + 1)]
    random = [seconds for seconds in random if seconds is not None]
    one = 1e-3 * sum(node["fpgaLatency"] if node["supportedOnFpga"] else node["cpuLatency"]
                     for node in workload["nodes"].values())
    return {"random": statistics.mean(random) if random else None, "one": one,
            "greedy": value("greedy", 1), "auto": value("auto", 1)}


def saved(figures, name, other):
    if figures[name] is None or figures[other] is None:
        return math.nan
    return 100 * (1 - figures[name] / figures[other])


def export_models(options):
    missing = [model for model in MODELS if not os.path.exists(f"{options.out}/{model}.onnx")]
    if missing:
        subprocess.run(["/usr/bin/python3", f"{HERE}/export_bench_models.py", "--out", options.out,
                        *missing], check=True, stdout=subprocess.DEVNULL)


def table(options, folder):
    """Prints the table; returns rows. Transformers are the workloads with "bert" in their names."""
    export_models(options)
    cases = [(model, plan_figures(options, model)) for model in MODELS]
    cases += [(f"{group}/{name}", place_figures(options, path))
              for group, name, path in placement_table.workloads(folder)
              if "bert" in name.lower() and group != "latency"]
    text = lambda seconds: "-" if seconds is None else f"{1e3 * seconds:.2f}"
    lines, rows = [], []
    for name, figures in cases:
        lines.append([name] + [text(figures[key]) for key in ("random", "one", "greedy", "auto")] +
                     [f"{saved(figures, *pair):.1f}" for pair in
                      (("greedy", "random"), ("auto", "random"), ("greedy", "one"),
                       ("auto", "one"))])
        for strategy in ("greedy", "auto"):
            if figures[strategy] is not None and figures["random"] is not None:
                rows.append(bench_rows.row(f"step of {name}, {strategy}", 0,
                                           [1e3 * figures[strategy]], [1e3 * figures["random"]],
                                           f"random, mean of {SEEDS} seeds", "ms"))
    print(f"a simulated training step, ms; random is the mean of {SEEDS} seeds")
    bench_rows.show_table(["graph", "random", "one device", "greedy", "auto",
                           "greedy saves % of random", "auto % of random", "greedy % of one",
                           "auto % of one"], lines)
    for strategy in ("greedy", "auto"):
        shares = [saved(figures, strategy, "random") for _, figures in cases]
        shares = [share for share in shares if not math.isnan(share)]
        if shares:
            print(f"{strategy} saves {statistics.mean(shares):.1f}% of random placement's time on "
                  f"average; reported elsewhere for greedy: {REPORTED:.0f}%")
    print(flush=True)
    return rows
