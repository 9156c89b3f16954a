#!/usr/bin/python3
"""Two replicas on two cores, beside what two cores could do, and beside PyTorch.

  replicas_bench.py --penstock build/gcc/penstock [--out build/bench] [--rounds R] [--peer-python PYTHON]
                    [--no-peer] [MODEL...]

Two devices of one thread each, in one process, and as two processes that share memory or use gRPC;
a lane for each. The bound is what two independent trainings of one thread do at once with the same
microbatches, summed: exchange and waiting cost nothing there. PyTorch is DistributedDataParallel
over gloo (torch_ddp_peer.py). `cores` is the processor time of all processes over the time that
passed. Prints a table and puts rows into build/bench.json (samples a second).
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
import pipeline_bench

HERE = os.path.dirname(os.path.abspath(__file__))
# batch, microbatches, steps
CASES = {"resnet50": (16, 4, 4), "gpt4": (4, 2, 6), "mlp4096": (128, 2, 16)}
REPLICAS = 2

JOB = """version: 1
model: {{file: {model}.onnx}}
data: {{train: {{format: npy, inputs: {{input: {model}_inputs.npy}}, labels: {model}_labels.npy}}}}
train: {{loss: softmax_cross_entropy, optimizer: {{sgd: {{lr: 0.001, momentum: 0.9}}}}, batch: {batch},
  microbatches: {microbatches}, steps: {steps}, shuffle: false{more}}}
{rest}devices:
"""


def write_job(options, name, model, batch, microbatches, devices, more="", rest=""):
    path = f"{options.out}/{name}.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(JOB.format(model=model, batch=batch, microbatches=microbatches, more=more, rest=rest,
                              steps=CASES[model][2] + pipeline_bench.WARM_UP))
        file.writelines(f"  - {device}\n" for device in devices)
    return path


def measure_pair(options, model):
    """Two trainings at once, each of what a replica has."""
    batch, microbatches, _ = CASES[model]
    job = write_job(options, f"replicas.{model}.one", model, batch // REPLICAS, microbatches // REPLICAS,
                    ["{name: d1, threads: 1}"])
    pair = [pipeline_bench.start(options, job) for _ in range(REPLICAS)]
    return sum(pipeline_bench.rate(pipeline_bench.finish(child), batch // REPLICAS) for child in pair)


def measure_replicas(options, model, joint):
    batch, microbatches, _ = CASES[model]
    are_processes, transport = pipeline_bench.JOINTS[joint]
    host = ", host: localhost" if are_processes else ""
    job = write_job(options, f"replicas.{model}.{joint}".lower(), model, batch, microbatches,
                    [f"{{name: d{number}, threads: 1{host}}}" for number in (1, 2)], f", lanes: {REPLICAS}",
                    f"pipeline: {{transport: {transport}}}\nplacement: {{replicas: {REPLICAS}, time_limit: 1s}}\n")
    began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    report = pipeline_bench.finish(pipeline_bench.start(options, job))
    passed, now = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cores = (now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime) / passed
    return pipeline_bench.rate(report, batch), cores


def measure_peer(options, model):
    batch, microbatches, steps = CASES[model]
    done = subprocess.run([options.peer_python, f"{HERE}/torch_ddp_peer.py", model, "--batch", str(batch),
                           "--microbatches", str(microbatches), "--runs", str(steps)], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)["best"]


def measure_model(options, model):
    pipeline_bench.export(options, model)
    pair, peer, found = [], [], {joint: [] for joint in pipeline_bench.JOINTS}
    for _ in range(options.rounds):
        pair.append(measure_pair(options, model))
        for joint, rates in found.items():
            rates.append(measure_replicas(options, model, joint))
        if not options.no_peer:
            peer.append(measure_peer(options, model))
    lines, rows = [], []
    bound = statistics.median(pair)
    for joint, measured in found.items():
        rates = [rate for rate, _ in measured]
        ours = statistics.median(rates)
        rows.append(bench_rows.row(f"replicas {model} {joint}: of the bound", 1, rates, pair,
                                   "two independent trainings", "samples/s"))
        line = [model, joint, f"{ours:.2f}", f"{bound:.2f}", f"{ours / bound:.3f}",
                f"{statistics.median(cores for _, cores in measured):.2f}"]
        if peer:
            others = [best["samples_per_second"] for best in peer]
            rows.append(bench_rows.row(f"replicas {model} {joint}: of PyTorch", 1, rates, others,
                                       f"DistributedDataParallel, gloo, {peer[0]['torch']}", "samples/s"))
            line += [f"{statistics.median(others):.2f}", f"{ours / statistics.median(others):.2f}",
                     peer[0]["variant"]]
        lines.append(line)
    return lines, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", default="/usr/bin/python3", help="an interpreter with the PyTorch to compare")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(CASES))
    options = parser.parse_args()
    options.penstock = os.path.abspath(options.penstock)
    os.makedirs(options.out, exist_ok=True)
    lines, rows = [], []
    for model in options.models or CASES:
        if model not in CASES:
            sys.exit(f"replicas_bench.py: no model '{model}'; there are {', '.join(CASES)}")
        more = measure_model(options, model)
        lines += more[0]
        rows += more[1]
    heads = ["model", "", "samples/s", "pair", "of the pair", "cores"]
    if not options.no_peer:
        heads += ["PyTorch", "of PyTorch", "its best"]
    print("\nTwo replicas of one thread each (of the pair: at least 0.95 in one process)")
    bench_rows.show_table(heads, lines)
    bench_rows.save(f"{os.path.dirname(options.out) or '.'}/bench.json", rows)


if __name__ == "__main__":
    main()
