#!/usr/bin/python3
"""The table of `make bench`: Penstock against PyTorch at its best settings, in one run.

  run_bench.py --penstock build/gcc/penstock [--peer-python PYTHON] [--out build/bench] [--rounds R]
               [--steps N] [CASE...]

A case is MODEL:THREADS:MICROBATCHES. Both programs do the same training step (forward, loss, backward, SGD with
momentum) on the same model and data, in turn, round after round, each time in a process of its own; a round's time
is the median of its steps, and the figure is the median of the rounds. PyTorch's best variant (torch_peer.py) is
found in a first round. PYTHON is an interpreter with the PyTorch to compare: `make bench-peer` sets one up with the
newest; without it is Debian's.
Prints one table of ratios, ours to theirs (below 1: Penstock is faster, or smaller), and puts them into
build/bench.json. `spread` is the widest distance of a round from the median, of either. Memory is the peak of the
process; `own` is the ratio without what either process has before it makes a model. A case in which other programs
took more than 3 % of the machine is measured again, at most twice, and then refused: its row says so and has no
ratio.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import bench_rows

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = ["mlp4096", "resnet18", "resnet50", "densenet121", "convnext_tiny", "vit_b16", "unet", "efficientnet_b0",
          "mobilenet_v3_large", "gpt4", "gpt12", "bert4", "lstm512", "gru512", "dlrm", "dlrm_sparse"]
CASES = [f"{model}:{threads}:1" for model in MODELS for threads in (1, 2)]
CASES += ["mlp4096:1:4", "mlp4096:2:4", "gpt4:1:4"]
# The batches of bench_models, which are not read where PyTorch is in another interpreter.
BATCH = {"mlp4096": 128, "lstm512": 32, "gru512": 32, "unet": 4, "gpt4": 4, "gpt12": 4, "dlrm": 512,
         "dlrm_sparse": 512}
BATCH_OF_OTHERS = 8
WITHOUT_MOMENTUM = {"dlrm_sparse"}
WARM_UP = 2
BUSY = 0.03  # of the machine, taken by others
TRIES = 3

JOB = """version: 1
model: {{file: {model}.onnx}}
data:
  train:
    format: npy
    inputs: {{input: {model}_inputs.npy}}
    labels: {model}_labels.npy
train:
  loss: softmax_cross_entropy
  optimizer: {{sgd: {{lr: 0.001, momentum: {momentum}}}}}
  batch: {batch}
  microbatches: {microbatches}
  steps: {steps}
  shuffle: false
devices:
  - {{name: bench, threads: {threads}}}
"""


def processor_seconds():
    """Of all programs since the machine started, and of those that this one has waited for."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    idle, stolen = fields[3] + fields[4], fields[7]
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(fields[:8]) - idle - stolen) / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime


class Watch:
    """Says how much of the machine other programs took while something ran."""

    def __init__(self):
        self.start, self.all, self.own = time.monotonic(), *processor_seconds()

    def others(self):
        everything, own = processor_seconds()
        taken = (everything - self.all) - (own - self.own)
        return max(0.0, taken / ((time.monotonic() - self.start) * os.cpu_count()))


def run_ours(options, model, threads, microbatches):
    """Median step in ms, and peak resident bytes."""
    path = f"{options.out}/{model}.{threads}.{microbatches}.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(JOB.format(model=model, batch=BATCH.get(model, BATCH_OF_OTHERS), threads=threads,
                              microbatches=microbatches, steps=options.steps + WARM_UP,
                              momentum=0 if model in WITHOUT_MOMENTUM else 0.9))
    output = subprocess.run([options.penstock, "train", path, "--json"], check=True,
                            stdout=subprocess.PIPE).stdout
    report = json.loads(output)
    times = [step["seconds"] * 1e3 for step in report["steps"][WARM_UP:]]
    return statistics.median(times), report["measured"]["resident_bytes_peak"]


def base_bytes(options):
    """What our process has before it makes a model: the peak of one that reads the job's tables."""
    subprocess.run([options.penstock, "doctor"], check=True, stdout=subprocess.DEVNULL)
    child = subprocess.Popen([options.penstock, "doctor"], stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_maxrss * 1024


def run_peer(options, model, threads, microbatches, variants):
    """The whole report of torch_peer.py."""
    command = [options.peer_python, f"{HERE}/torch_peer.py", model, "--threads", str(threads),
               "--microbatches", str(microbatches), "--runs", str(options.steps)]
    for variant in variants:
        command += ["--variant", variant]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def measure_rounds(options, model, threads, microbatches, best):
    """Rounds of both in turn, and what others took of the machine meanwhile."""
    watch, ours, theirs = Watch(), [], []
    for _ in range(options.rounds):
        ours.append(run_ours(options, model, threads, microbatches))
        theirs.append(run_peer(options, model, threads, microbatches, [best])["best"])
    return ours, theirs, watch.others()


def spread(values):
    middle = statistics.median(values)
    return max(abs(value - middle) for value in values) / middle


def measure(options, case):
    """The rows of one case: step time, and peak memory."""
    model, threads, microbatches = case.split(":")
    threads, microbatches = int(threads), int(microbatches)
    found = run_peer(options, model, threads, microbatches, [])
    best = found["best"]["variant"]
    for _ in range(TRIES):
        ours, theirs, busy = measure_rounds(options, model, threads, microbatches, best)
        if busy <= BUSY:
            break
        print(f"{case}: others took {100 * busy:.0f} % of the machine", file=sys.stderr)
    name = f"{model}, {microbatches} microbatches" if microbatches > 1 else model
    peer = f"torch {found['torch']}, {found['blas']}, {best}"
    times = [time for time, _ in ours], [variant["median_ms"] for variant in theirs]
    step = bench_rows.row(f"{name}: training step", threads, *times, peer, "ms")
    memory = bench_rows.row(f"{name}: peak memory", threads, [peak / 2**20 for _, peak in ours],
                            [variant["peak_bytes"] / 2**20 for variant in theirs], peer, "MiB")
    step["spread"] = round(max(spread(values) for values in times), 4)
    other = statistics.median(variant["peak_bytes"] - variant["base_bytes"] for variant in theirs)
    memory["own_ratio"] = round((statistics.median(peak for _, peak in ours) - options.base) / other, 4)
    for entry in (step, memory):
        entry["others"] = round(busy, 4)
        if busy > BUSY:
            entry["ratio"] = None
    return [step, memory]


def show(rows):
    lines = []
    for entry in rows:
        ratio = "busy" if entry["ratio"] is None else f"{entry['ratio']:.3f}"
        more = f"{100 * entry['spread']:.1f} %" if "spread" in entry else f"own {entry['own_ratio']:.3f}"
        lines.append([entry["name"], str(entry["threads"]), f"{entry['ours']:.1f}", f"{entry['other']:.1f}",
                      entry["unit"], ratio, more, entry["other_name"]])
    bench_rows.show_table(["benchmark", "threads", "ours", "other", "unit", "ratio", "spread", "other is"], lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--peer-python", default="/usr/bin/python3", help="an interpreter with the PyTorch to compare")
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--json", default="build/bench.json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    options = parser.parse_args()
    known = {case.split(":")[0] for case in CASES}
    for case in options.cases:
        parts = case.split(":")
        if len(parts) != 3 or parts[0] not in known or not (parts[1] + parts[2]).isdigit():
            parser.error(f"no case '{case}': MODEL:THREADS:MICROBATCHES, such as {CASES[0]}")
    options.base = base_bytes(options)
    models = sorted({case.split(":")[0] for case in options.cases or CASES})
    missing = [model for model in models if not os.path.exists(f"{options.out}/{model}.onnx")]
    if missing:
        subprocess.run(["/usr/bin/python3", f"{HERE}/export_bench_models.py", "--out", options.out,
                        *missing], check=True, stdout=subprocess.DEVNULL)
    rows = []
    for case in options.cases or CASES:
        print(f"measuring {case}", file=sys.stderr, flush=True)
        found = measure(options, case)
        bench_rows.save(options.json, found)  # what was measured is kept, whatever comes next
        rows += found
    show(rows)


if __name__ == "__main__":
    main()
