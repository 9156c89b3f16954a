#!/usr/bin/python3
"""PyTorch's training step at its best settings: the peer of `make bench`. Prints one JSON object.

  torch_peer.py MODEL [--threads N] [--microbatches M] [--runs R] [--batch B] [--variant V]...

A step is forward, loss, backward and SGD with momentum 0.9, over the whole batch in M microbatches
whose gradients accumulate. Each variant runs in a process of its own (so that its peak memory is
its own) with:
  - the OpenMP build of OpenBLAS, threads set for both libraries;
  - MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_=4G: freed activations stay mapped;
  - zero_grad(set_to_none=True).
Variants are LAYOUT:CORE:UPDATE. LAYOUT: contiguous, channels_last (convolutional models only).
CORE: the kernels OpenBLAS picks by itself (auto), or SKYLAKEX, its AVX-512 kernels, which it does
not pick on processors newer than itself. UPDATE: each (PyTorch's default) or foreach.
The best variant by median is `best`; all are in `variants`.

Fields: model, batch, threads, microbatches, runs, openblas_parallel (2: OpenMP), torch, best, and
of each variant: variant, median_ms, minimum_ms, maximum_ms, peak_bytes (VmHWM of the process with
interpreter and libraries), base_bytes (VmHWM before the model was made), losses (first, last).
"""
import argparse
import ctypes
import glob
import json
import os
import statistics
import subprocess
import sys
import time

BATCH = {"mlp4096": 128, "resnet18": 8, "resnet50": 8, "gpt4": 4, "bert4": 8, "lstm512": 32,
         "gru512": 32, "vit_tiny": 8, "convnext_tiny": 8}
WARM_UP = 3


def openblas_parallel():
    """0 serial, 1 pthread, 2 OpenMP, None: BLAS is not OpenBLAS."""
    try:
        return ctypes.CDLL("libblas.so.3").openblas_get_parallel()
    except (OSError, AttributeError):
        return None


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None


def measure(options, variant):
    """Runs in the child: times the steps of one variant."""
    layout, _, update = variant.split(":")
    import torch
    import bench_models
    torch.set_num_threads(options.threads)
    if len(bench_models.MODELS[options.model][1]) == 3:  # convolutional
        import torchvision  # part of the base, not of the model's memory
        assert torchvision
    base = peak_bytes()
    model = bench_models.build(options.model)
    inputs, labels = (torch.from_numpy(a) for a in bench_models.data(options.model))
    if layout == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        inputs = inputs.to(memory_format=torch.channels_last)
    inputs, labels = inputs.split(options.batch), labels.split(options.batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9,
                                foreach=update == "foreach")
    size = options.batch // options.microbatches
    times, losses = [], []
    for step in range(WARM_UP + options.runs):
        x, y = inputs[step % len(inputs)], labels[step % len(inputs)]
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for part, target in zip(x.split(size), y.split(size)):
            scores = model(part)
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2), target.flatten())
            del scores  # as in a training loop that keeps the loss alone
            if options.microbatches > 1:
                loss = loss / options.microbatches
            loss.backward()
            total += loss.item()
        optimizer.step()
        times.append((time.perf_counter() - start) * 1e3)
        losses.append(total)
    times = times[WARM_UP:]
    return {"variant": variant, "median_ms": statistics.median(times), "minimum_ms": min(times),
            "maximum_ms": max(times), "peak_bytes": peak_bytes(), "base_bytes": base,
            "losses": [losses[0], losses[-1]], "openblas_parallel": openblas_parallel(),
            "torch": torch.__version__}


def environment(options, core):
    variables = dict(os.environ)
    threads = str(options.threads)
    variables.update(OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads,
                     MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(4 << 30))
    variables.pop("OPENBLAS_CORETYPE", None)
    if core != "auto":
        variables["OPENBLAS_CORETYPE"] = core
    openmp = glob.glob("/usr/lib/*/openblas-openmp")
    if openmp:  # whatever the alternatives system prefers
        paths = openmp + [p for p in [variables.get("LD_LIBRARY_PATH")] if p]
        variables["LD_LIBRARY_PATH"] = ":".join(paths)
    return variables


def default_variants(model):
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        cores = ["auto", "SKYLAKEX"] if " avx512f " in file.read() else ["auto"]
    if model in ("mlp4096", "gpt4", "bert4", "lstm512", "gru512", "vit_tiny"):
        return [f"contiguous:{core}:{update}" for core in cores for update in ("each", "foreach")]
    return [f"{layout}:{core}:each" for layout in ("contiguous", "channels_last") for core in cores]


def run_variant(options, variant):
    command = [sys.executable, os.path.abspath(__file__), options.model, "--child", variant,
               "--threads", str(options.threads), "--microbatches", str(options.microbatches),
               "--runs", str(options.runs), "--batch", str(options.batch)]
    done = subprocess.run(command, env=environment(options, variant.split(":")[1]), check=False,
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"torch_peer.py: variant {variant} ended with status {done.returncode}")
    return json.loads(done.stdout)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model", choices=BATCH)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--microbatches", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--batch", type=int, help="default: the benchmark's")
    parser.add_argument("--variant", action="append", metavar="LAYOUT:CORE:UPDATE")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch is None:
        options.batch = BATCH[options.model]
    for name in ("threads", "microbatches", "runs", "batch"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if options.batch % options.microbatches:
        parser.error(f"--batch {options.batch} is no multiple of --microbatches")
    for variant in options.variant or []:
        if variant.count(":") != 2:
            parser.error(f"--variant {variant}: expected LAYOUT:CORE:UPDATE")
    return options


def main():
    options = parse()
    if options.child:
        print(json.dumps(measure(options, options.child)))
        return
    chosen = options.variant or default_variants(options.model)
    variants = [run_variant(options, variant) for variant in chosen]
    parallel, version = variants[0]["openblas_parallel"], variants[0]["torch"]
    if parallel != 2:
        print("torch_peer.py: warning: BLAS is not the OpenMP build of OpenBLAS; install "
              "libopenblas0-openmp for PyTorch's best figures", file=sys.stderr)
    for variant in variants:
        del variant["openblas_parallel"], variant["torch"]
    print(json.dumps({"model": options.model, "batch": options.batch, "threads": options.threads,
                      "microbatches": options.microbatches, "runs": options.runs,
                      "openblas_parallel": parallel, "torch": version,
                      "best": min(variants, key=lambda v: v["median_ms"]), "variants": variants},
                     indent=1))


if __name__ == "__main__":
    main()
