#!/usr/bin/python3
"""PyTorch's DistributedDataParallel in two processes over gloo, at its best settings: the peer of the
replicas of `make bench`. Prints one JSON object.

  torch_ddp_peer.py MODEL [--batch B] [--microbatches M] [--runs R] [--variant V]...

Two processes of one thread each, with half of the batch each. Gradients accumulate over M
microbatches of the whole step, all but the last of a process under no_sync. Settings and variants
as in torch_peer.py. The best of all by median is `best`.
"""
import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import torch_peer

WARM_UP = 2
RANKS = 2


def measure(options):
    """Runs in a child: times the steps of one variant."""
    import torch
    import torch.distributed
    import bench_models
    layout, _, update = options.variant[0].split(":")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{options.port}", rank=options.rank,
                                         world_size=RANKS)
    model = bench_models.build(options.model)
    inputs, labels = (torch.from_numpy(a) for a in bench_models.data(options.model))
    if layout == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        inputs = inputs.to(memory_format=torch.channels_last)
    repeats = -(-options.batch // len(inputs))
    share = options.batch // RANKS
    own = slice(options.rank * share, (options.rank + 1) * share)
    x = torch.cat([inputs] * repeats)[:options.batch][own]
    y = torch.cat([labels] * repeats)[:options.batch][own]
    replica = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.001, momentum=0.9, foreach=update == "foreach")
    count = options.microbatches // RANKS
    size = share // count
    times = []
    for _ in range(WARM_UP + options.runs):
        torch.distributed.barrier()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for number, (part, target) in enumerate(zip(x.split(size), y.split(size))):
            with contextlib.nullcontext() if number + 1 == count else replica.no_sync():
                scores = replica(part)
                loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2), target.flatten()) / count
                del scores
                loss.backward()
                loss.item()
        optimizer.step()
        torch.distributed.barrier()
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times[WARM_UP:])
    return {"variant": options.variant[0], "torch": torch.__version__, "step_ms": seconds * 1e3,
            "samples_per_second": options.batch / seconds}


def run_variant(options, variant):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options.threads = 1
    command = [sys.executable, os.path.abspath(__file__), options.model, "--batch", str(options.batch),
               "--microbatches", str(options.microbatches), "--runs", str(options.runs), "--variant", variant,
               "--port", str(port)]
    children = [subprocess.Popen(command + ["--rank", str(rank)], stdout=subprocess.PIPE, text=True,
                                 env=torch_peer.environment(options, variant.split(":")[1])) for rank in range(RANKS)]
    texts = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        sys.exit(f"torch_ddp_peer.py: variant {variant} failed")
    return json.loads(texts[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--microbatches", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--variant", action="append", metavar="LAYOUT:CORE:UPDATE")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch % options.microbatches or options.microbatches % RANKS:
        parser.error(f"expected microbatches of {RANKS} processes, all of one size")
    if options.rank is not None:
        print(json.dumps(measure(options)))
        return
    cases = [run_variant(options, variant)
             for variant in options.variant or torch_peer.eager_variants(options.model)]
    print(json.dumps({"model": options.model, "batch": options.batch, "microbatches": options.microbatches,
                      "best": min(cases, key=lambda case: case["step_ms"]), "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
