#!/usr/bin/python3
"""The table of `make bench`: Penstock against PyTorch at its best settings, in one run.

  run_bench.py --penstock build/gcc/penstock [--out build/bench] [--rounds R] [--steps N] [CASE...]

A case is MODEL:THREADS:MICROBATCHES. Both programs do the same training step (forward, loss,
backward, SGD with momentum) on the same model and data, in turn, round after round, each time in a
process of its own; a round's time is the median of its steps, and the figure is the median of the
rounds. PyTorch's best variant (torch_peer.py) is found in a first round.
Prints one table of ratios, ours to theirs (below 1: Penstock is faster, or smaller), and puts them
into build/bench.json.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import bench_rows

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = ["mlp4096:1:1", "mlp4096:2:1", "mlp4096:1:4", "mlp4096:2:4", "resnet18:1:1",
         "resnet18:2:1", "resnet50:1:1", "resnet50:2:1", "gpt4:1:1", "gpt4:2:1",
         "lstm512:1:1", "lstm512:2:1", "gru512:1:1", "gru512:2:1", "bert4:1:1", "bert4:2:1",
         "gpt4:1:4"]
BATCH = {"mlp4096": 128, "resnet18": 8, "resnet50": 8, "gpt4": 4, "bert4": 8, "lstm512": 32,
         "gru512": 32, "vit_tiny": 8, "convnext_tiny": 8}
WARM_UP = 2
# The peer's settings that are tried. Convolutions do not use OpenBLAS, so its core does not matter.
CONVOLUTIONAL = ["contiguous:auto:each", "channels_last:auto:each", "channels_last:auto:foreach"]
VARIANTS = {"resnet18": CONVOLUTIONAL, "resnet50": CONVOLUTIONAL,
            "convnext_tiny": CONVOLUTIONAL}  # none said: all

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
  steps: {steps}
  shuffle: false
devices:
  - {{name: bench, threads: {threads}}}
"""


def run_ours(options, model, threads, microbatches):
    """Median step in ms, and peak resident bytes."""
    path = f"{options.out}/{model}.{threads}.{microbatches}.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(JOB.format(model=model, batch=BATCH[model], threads=threads,
                              microbatches=microbatches, steps=options.steps + WARM_UP))
    output = subprocess.run([options.penstock, "train", path, "--json"], check=True,
                            stdout=subprocess.PIPE).stdout
    report = json.loads(output)
    times = [step["seconds"] * 1e3 for step in report["steps"][WARM_UP:]]
    return statistics.median(times), report["measured"]["resident_bytes_peak"]


def run_peer(options, model, threads, microbatches, variants):
    """The whole report of torch_peer.py."""
    command = ["/usr/bin/python3", f"{HERE}/torch_peer.py", model, "--threads", str(threads),
               "--microbatches", str(microbatches), "--runs", str(options.steps)]
    for variant in variants:
        command += ["--variant", variant]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def measure(options, case):
    """The rows of one case: step time, and peak memory."""
    model, threads, microbatches = case.split(":")
    threads, microbatches = int(threads), int(microbatches)
    best = run_peer(options, model, threads, microbatches, VARIANTS.get(model, []))["best"]["variant"]
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(run_ours(options, model, threads, microbatches))
        theirs.append(run_peer(options, model, threads, microbatches, [best])["best"])
    name = f"{model}, {microbatches} microbatches" if microbatches > 1 else model
    peer = f"torch {best}"
    return [bench_rows.row(f"{name}: training step", threads, [time for time, _ in ours],
                [variant["median_ms"] for variant in theirs], peer, "ms"),
            bench_rows.row(f"{name}: peak memory", threads, [peak / 2**20 for _, peak in ours],
                [variant["peak_bytes"] / 2**20 for variant in theirs], peer, "MiB")]


def show(rows):
    print(f"{'benchmark':<44} {'threads':>7} {'ours':>10} {'other':>10} {'unit':>5} {'ratio':>6}  "
          "other is")
    for entry in rows:
        print(f"{entry['name']:<44} {entry['threads']:>7} {entry['ours']:>10.1f} "
              f"{entry['other']:>10.1f} {entry['unit']:>5} {entry['ratio']:>6.3f}  "
              f"{entry['other_name']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--json", default="build/bench.json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    options = parser.parse_args()
    models = sorted({case.split(":")[0] for case in options.cases or CASES})
    missing = [model for model in models if not os.path.exists(f"{options.out}/{model}.onnx")]
    if missing:
        subprocess.run(["/usr/bin/python3", f"{HERE}/export_bench_models.py", "--out", options.out,
                        *missing], check=True, stdout=subprocess.DEVNULL)
    rows = []
    for case in options.cases or CASES:
        print(f"measuring {case}", file=sys.stderr, flush=True)
        rows += measure(options, case)
    bench_rows.save(options.json, rows)
    show(rows)


if __name__ == "__main__":
    main()
