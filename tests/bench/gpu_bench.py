#!/usr/bin/python3
"""Training steps on this machine's GPU beside PyTorch's on the same one: the table of `make bench GPU=1`.

  gpu_bench.py --penstock build/gcc/penstock --peer-python PYTHON [--out build/bench-gpu] [--rounds R] [--steps N]
               [--memory 8GiB] [CASE...]

A case is MODEL:PRECISION, such as resnet50:bfloat16. PYTHON has a PyTorch for the GPU. Models, data and the step are
those of run_bench.py with --scale times its batch. Of PyTorch, the best of eager, torch.compile and its CUDA graphs
counts; tf32 and bfloat16 are its own switches for that. Memory is the device's: ours as planned, theirs as reserved.
`first loss` is the distance of the two, over theirs: both do the same work. Rows go to build/bench.json.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import bench_rows
import run_bench

PRECISIONS = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 3e-2}  # and how far first losses may be apart
CASES = [f"{model}:{precision}" for model in ("mlp4096", "resnet50", "gpt12", "lstm512") for precision in PRECISIONS]


def run_ours(options, model, precision):
    """Median step in ms, the device's bytes, and the first loss."""
    path = f"{options.out}/{model}.{precision}.yaml"
    job = run_bench.JOB.format(model=model, batch=options.scale * run_bench.BATCH.get(model, run_bench.BATCH_OF_OTHERS),
                               threads=1, microbatches=1, steps=options.steps + run_bench.WARM_UP, momentum=0.9)
    job = job[:job.index("devices:")]
    job += f"numerics: {{precision: {precision}}}\n"
    job += f"devices:\n  - {{name: bench, kind: cuda, memory: {options.memory}}}\n"
    with open(path, "w", encoding="ascii") as file:
        file.write(job)
    report = json.loads(subprocess.run([options.penstock, "train", path, "--json"], check=True,
                                       stdout=subprocess.PIPE).stdout)
    times = [step["seconds"] * 1e3 for step in report["steps"][run_bench.WARM_UP:]]
    return statistics.median(times), report["predicted"]["device_bytes"], report["steps"][0]["loss"]


def measure(options, case):
    model, precision = case.split(":")
    command = [options.peer_python, f"{run_bench.HERE}/torch_peer.py", model, "--runs", str(options.steps),
               "--device", options.peer_device, "--precision", precision]
    ours, theirs, best = [], [], []
    for _ in range(options.rounds):
        ours.append(run_ours(options, model, precision))
        report = json.loads(subprocess.run(command + best, check=True, stdout=subprocess.PIPE).stdout)
        best = ["--variant", report["best"]["variant"]]
        theirs.append(report["best"])
    peer = f"torch {report['torch']}, {theirs[0]['variant']}"
    step = bench_rows.row(f"{model}, {precision}: GPU, training step", 1, [time for time, _, _ in ours],
                          [variant["median_ms"] for variant in theirs], peer, "ms")
    memory = bench_rows.row(f"{model}, {precision}: GPU, memory", 1, [size / 2**20 for _, size, _ in ours],
                            [variant["peak_bytes"] / 2**20 for variant in theirs], peer, "MiB")
    loss = theirs[0]["losses"][0]
    step["first_loss"] = memory["first_loss"] = abs(ours[0][2] - loss) / abs(loss)
    if not step["first_loss"] <= PRECISIONS[precision]:
        sys.exit(f"{case}: other losses, {ours[0][2]} and {loss}: not the same work")
    return [step, memory]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--peer-python", required=True, help="an interpreter with PyTorch for the GPU")
    parser.add_argument("--peer-device", default="cuda", help="PyTorch's; another is for a trial without a GPU")
    parser.add_argument("--out", default="build/bench-gpu")
    parser.add_argument("--json", default="build/bench.json")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--memory", default="8GiB", help="of the GPU, for us")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    options = parser.parse_args()
    for case in options.cases:
        if case.count(":") != 1 or case.split(":")[0] not in run_bench.MODELS or case.split(":")[1] not in PRECISIONS:
            parser.error(f"no case '{case}': MODEL:PRECISION, such as {CASES[0]}")
    os.environ["BENCH_SCALE"] = str(options.scale)  # for bench_models.py
    cases = options.cases or CASES
    missing = sorted({case.split(":")[0] for case in cases if not os.path.exists(
        f"{options.out}/{case.split(':')[0]}.onnx")})
    if missing:
        subprocess.run(["/usr/bin/python3", f"{run_bench.HERE}/export_bench_models.py", "--out", options.out, *missing],
                       check=True, stdout=subprocess.DEVNULL)
    rows = []
    for case in cases:
        print(f"measuring {case}", file=sys.stderr, flush=True)
        rows += measure(options, case)
        bench_rows.save(options.json, rows)
    bench_rows.show_table(["benchmark", "ours", "other", "unit", "ratio", "first loss", "other is"],
                          [[row["name"], f"{row['ours']:.1f}", f"{row['other']:.1f}", row["unit"],
                            f"{row['ratio']:.3f}", f"{row['first_loss']:.1e}", row["other_name"]] for row in rows])


if __name__ == "__main__":
    main()
