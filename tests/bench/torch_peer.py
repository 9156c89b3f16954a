#!/usr/bin/python3
"""PyTorch's training step at its best settings: the peer of `make bench`. Prints one JSON object.

  torch_peer.py MODEL [--threads N] [--microbatches M] [--runs R] [--batch B] [--device D] [--precision P]
                [--variant V]...

A step is forward, loss, backward and SGD with momentum 0.9 (none where bench_models says so), over the whole
batch in M microbatches whose gradients accumulate. Each variant runs in a process of its own (so that its peak
memory is its own) with:
  - threads set for PyTorch and its libraries; of Debian's PyTorch, the OpenMP build of OpenBLAS;
  - MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_=4G: freed activations stay mapped;
  - zero_grad(set_to_none=True).
Variants are LAYOUT:CORE:UPDATE:MODE. LAYOUT: contiguous, channels_last (convolutional models only). CORE: the
kernels OpenBLAS picks by itself (auto), or SKYLAKEX, its AVX-512 kernels, which it does not pick on processors
newer than itself; PyTorch from PyPI has MKL, which picks by itself. UPDATE: each (PyTorch's default), foreach or
fused (since 2.4 on the CPU). MODE: eager, compiled (torch.compile, since 2.0; its making is not counted), or graphs
(that with CUDA graphs).
With --device cuda all is on the GPU, which is awaited after each step, and peak_bytes are the GPU's: what PyTorch
has reserved there. --precision tf32 and bfloat16 (autocast) are for products; float32 has neither.
The best variant by median is `best`; all that ran are in `variants`, those that could not in `failed`.

Fields: model, batch, threads, microbatches, runs, blas, torch, best, and of each variant: variant, median_ms,
minimum_ms, maximum_ms, peak_bytes (VmHWM of the process with interpreter and libraries), base_bytes (VmHWM before
the model was made), losses (first, last).
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

WARM_UP = 3
CONVOLUTIONAL = ("resnet", "densenet", "convnext", "efficientnet", "mobilenet", "unet")


def openblas_parallel():
    """0 serial, 1 pthread, 2 OpenMP, None: BLAS is not OpenBLAS."""
    try:
        return ctypes.CDLL("libblas.so.3").openblas_get_parallel()
    except (OSError, AttributeError):
        return None


def blas(torch):
    """What multiplies matrices, as text."""
    if "BLAS_INFO=mkl" in torch.__config__.show():
        return "MKL"
    return {2: "OpenBLAS, OpenMP", 1: "OpenBLAS, pthread", 0: "OpenBLAS, serial"}.get(openblas_parallel(), "other")


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None


def measure(options, variant):
    """Runs in the child: times the steps of one variant."""
    layout, _, update, mode = variant.split(":")
    import torch
    import bench_models
    torch.set_num_threads(options.threads)
    if options.model.startswith(CONVOLUTIONAL) or options.model.startswith("vit"):
        import torchvision  # part of the base, not of the model's memory
        assert torchvision
    base = peak_bytes()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    model = bench_models.build(options.model).to(options.device)
    inputs, labels = (torch.from_numpy(a).to(options.device) for a in bench_models.data(options.model))
    if layout == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        inputs = inputs.to(memory_format=torch.channels_last)
    inputs, labels = inputs.split(options.batch), labels.split(options.batch)
    momentum = 0.0 if options.model in bench_models.WITHOUT_MOMENTUM else 0.9
    chosen = {"each": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}[update]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=momentum, **chosen)
    modes = {"compiled": {}, "graphs": {"mode": "reduce-overhead"}}
    run = torch.compile(model, **modes[mode]) if mode in modes else model
    size = options.batch // options.microbatches
    times, losses = [], []
    for step in range(WARM_UP + options.runs):
        x, y = inputs[step % len(inputs)], labels[step % len(inputs)]
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for part, target in zip(x.split(size), y.split(size)):
            with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bfloat16"):
                scores = run(part)
            loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2).float(), target.flatten())
            del scores  # as in a training loop that keeps the loss alone
            if options.microbatches > 1:
                loss = loss / options.microbatches
            loss.backward()
            total += loss.item()
        optimizer.step()
        if options.device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
        losses.append(total)
    times = times[WARM_UP:]
    peak = torch.cuda.max_memory_reserved() if options.device == "cuda" else peak_bytes()
    return {"variant": variant, "median_ms": statistics.median(times), "minimum_ms": min(times),
            "maximum_ms": max(times), "peak_bytes": peak, "base_bytes": base,
            "losses": [losses[0], losses[-1]], "blas": blas(torch), "torch": torch.__version__}


def environment(options, core):
    variables = dict(os.environ)
    threads = str(options.threads)
    variables.update(OPENBLAS_NUM_THREADS=threads, OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads,
                     MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(4 << 30))
    variables.pop("OPENBLAS_CORETYPE", None)
    if core != "auto":
        variables["OPENBLAS_CORETYPE"] = core
    openmp = glob.glob("/usr/lib/*/openblas-openmp")
    if openmp:  # whatever the alternatives system prefers
        paths = openmp + [p for p in [variables.get("LD_LIBRARY_PATH")] if p]
        variables["LD_LIBRARY_PATH"] = ":".join(paths)
    return variables


def default_variants(model, device="cpu"):
    """All that could be the best: of Debian's PyTorch its cores, of PyPI's what newer ones can do."""
    if device == "cuda":
        layouts = ["contiguous", "channels_last"] if model.startswith(CONVOLUTIONAL) else ["contiguous"]
        return [f"{layout}:auto:fused:{mode}" for layout in layouts for mode in ("eager", "compiled", "graphs")]
    is_newest = sys.prefix != sys.base_prefix  # a virtual environment
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        has_more = " avx512f " in file.read()
    cores = ["auto", "SKYLAKEX"] if has_more and not is_newest else ["auto"]
    updates = ["each", "foreach", "fused"] if is_newest else ["each", "foreach"]
    if model == "dlrm_sparse":
        updates = ["each"]  # the others refuse gradients of rows
    layouts = ["contiguous", "channels_last"] if model.startswith(CONVOLUTIONAL) else ["contiguous"]
    if model.startswith(CONVOLUTIONAL) and not is_newest:
        updates = ["each"]
    found = [f"{layout}:{core}:{update}:eager" for layout in layouts for core in cores for update in updates]
    if is_newest:
        found += [f"{layout}:auto:{updates[-1]}:compiled" for layout in layouts]
    return found


def eager_variants(model):
    """LAYOUT:CORE:UPDATE of those that need nothing of newer PyTorch: for peers of several processes."""
    found = [variant.rsplit(":", 1) for variant in default_variants(model)]
    return [name for name, mode in found if mode == "eager" and not name.endswith(":fused")]


def run_variant(options, variant):
    """Its figures, or None where this PyTorch cannot do it."""
    command = [sys.executable, os.path.abspath(__file__), options.model, "--child", variant,
               "--threads", str(options.threads), "--microbatches", str(options.microbatches),
               "--runs", str(options.runs), "--batch", str(options.batch), "--device", options.device,
               "--precision", options.precision]
    done = subprocess.run(command, env=environment(options, variant.split(":")[1]), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    print(f"torch_peer.py: {options.model}, {variant}: {said[-1][:200]}", file=sys.stderr)
    return None


def parse():
    import bench_models
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model", choices=bench_models.MODELS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--microbatches", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--batch", type=int, help="default: the benchmark's")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["float32", "tf32", "bfloat16"], default="float32")
    parser.add_argument("--variant", action="append", metavar="LAYOUT:CORE:UPDATE:MODE")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch is None:
        options.batch = bench_models.SCALE * bench_models.MODELS[options.model][3]
    for name in ("threads", "microbatches", "runs", "batch"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if options.batch % options.microbatches:
        parser.error(f"--batch {options.batch} is no multiple of --microbatches")
    for variant in options.variant or []:
        if variant.count(":") != 3:
            parser.error(f"--variant {variant}: expected LAYOUT:CORE:UPDATE:MODE")
    return options


def main():
    options = parse()
    if options.child:
        print(json.dumps(measure(options, options.child)))
        return
    chosen = options.variant or default_variants(options.model, options.device)
    tried = {variant: run_variant(options, variant) for variant in chosen}
    variants = [figures for figures in tried.values() if figures is not None]
    if not variants:
        sys.exit(f"torch_peer.py: no variant of {options.model} ran")
    library, version = variants[0]["blas"], variants[0]["torch"]
    if library not in ("OpenBLAS, OpenMP", "MKL"):
        print(f"torch_peer.py: warning: BLAS is {library}; install libopenblas0-openmp for PyTorch's best figures",
              file=sys.stderr)
    for variant in variants:
        del variant["blas"], variant["torch"]
    print(json.dumps({"model": options.model, "batch": options.batch, "threads": options.threads,
                      "microbatches": options.microbatches, "runs": options.runs, "blas": library,
                      "torch": version, "best": min(variants, key=lambda v: v["median_ms"]),
                      "variants": variants, "failed": [name for name, figures in tried.items() if figures is None]},
                     indent=1))


if __name__ == "__main__":
    main()
