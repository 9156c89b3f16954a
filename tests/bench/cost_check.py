#!/usr/bin/python3
"""Prints how well operators measured alone predict those of whole steps.

  cost_check.py --penstock PATH [--threads 1 2] [--repeat 3] [MODEL...]

Models are those of tests/reference, with the batch sizes below. For each: the seconds of a step's
operators, predicted and measured, the error of single operators weighted by time, and the memory.
Each is the median of a few measurements.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

import numpy

MODELS = {  # examples a step
    "mlp": 128,
    "lenet": 128,
    "branching_cnn": 64,
    "batchnorm_cnn": 64,
    "resnet18": 16,
}


def write_job(folder, model, threads):
    reference = os.path.abspath(f"tests/reference/{model}")
    shape = numpy.load(f"{reference}/inputs.npy", mmap_mode="r").shape[1:]
    random = numpy.random.default_rng(0)
    batch = MODELS[model]
    numpy.save(f"{folder}/x.npy", random.random((batch,) + shape, dtype=numpy.float32))
    numpy.save(f"{folder}/y.npy", random.integers(0, 10, batch))
    path = f"{folder}/job.yaml"
    with open(path, "w", encoding="utf-8") as job:
        job.write(f"version: 1\nmodel: {{file: {reference}/model.onnx}}\n"
                  "data: {train: {format: npy, inputs: {input: x.npy}, labels: y.npy}}\n"
                  "train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.01, momentum: 0.9}},"
                  f" batch: {batch}, epochs: 1}}\ndevices: [{{name: a, threads: {threads}}}]\n")
    return path


def measure(penstock, job):
    done = subprocess.run([penstock, "profile", "--check", "--repeat", "--steps", "60", "--json",
                           job], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)["devices"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    options = parser.parse_args()
    errors = []
    print(f"{'model':<15}{'threads':>8}{'measured':>12}{'predicted':>12}{'off':>8}{'error':>8}"
          f"{'memory':>12}")
    for model in options.models or MODELS:
        for threads in options.threads:
            with tempfile.TemporaryDirectory() as folder:
                job = write_job(folder, model, threads)
                runs = [measure(options.penstock, job) for _ in range(options.repeat)]
            measured = statistics.median(run["seconds_in_step"] for run in runs)
            predicted = statistics.median(run["predicted_seconds"] for run in runs)
            error = statistics.median(run["error_weighted"] for run in runs)
            errors.append(error)
            memory = runs[0]["persistent_bytes"] + runs[0]["arena_bytes"]
            print(f"{model:<15}{threads:>8}{measured * 1e3:>9.3f} ms{predicted * 1e3:>9.3f} ms"
                  f"{100 * (predicted / measured - 1):>+6.1f} %{100 * error:>6.1f} %"
                  f"{memory / 2**20:>8.2f} MiB", flush=True)
    print(f"error of operators, weighted by time: {100 * statistics.mean(errors):.1f} % on average")


if __name__ == "__main__":
    main()
