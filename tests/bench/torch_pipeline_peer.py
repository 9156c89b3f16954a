#!/usr/bin/python3
"""PyTorch's pipeline of two processes over gloo, at its best settings: the peer of the pipelines of
`make bench`. Prints one JSON object.

  torch_pipeline_peer.py MODEL [--batch B] [--microbatches M] [--runs R] [--cut K]... [--variant V]...

Two processes of one thread each run the schedule 1F1B: the first computes the layers before the
cut, the second the others and the loss. Activations and gradients go by isend and irecv; each
receive is posted before the work that comes before it, so that it goes on beside that. Gradients
accumulate over the microbatches; each process updates its own parameters (SGD, momentum 0.9).
Settings as in torch_peer.py: the OpenMP build of OpenBLAS, one thread for both libraries, freed
activations stay mapped, zero_grad(set_to_none=True); variants are LAYOUT:CORE:UPDATE. A cut is the
number of blocks in the first stage; by default those around the middle of the work are tried. The
best of all by median is `best`.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

import torch_peer

WARM_UP = 2


def blocks(name):
    """The model as a list of blocks that run one after another."""
    import bench_models
    from torch import nn
    model = bench_models.build(name)
    if not name.startswith("resnet"):
        layers = list(model)
        return [nn.Sequential(*layers[i:i + 2]) for i in range(0, len(layers), 2)]
    first = nn.Sequential(model.conv1, model.bn1, model.relu, model.maxpool)
    middle = [block for layer in (model.layer1, model.layer2, model.layer3, model.layer4)
              for block in layer]
    return [first] + middle + [nn.Sequential(model.avgpool, nn.Flatten(1), model.fc)]


def inputs_of(options):
    import bench_models
    import numpy
    import torch
    _, shape, classes, _ = bench_models.MODELS[options.model]
    random = numpy.random.RandomState(bench_models.SEED)
    x = random.standard_normal((options.batch,) + shape).astype(numpy.float32)
    return torch.from_numpy(x), torch.from_numpy(random.randint(0, classes, options.batch))


class Rank:
    """One of the two processes."""

    def __init__(self, options, rank, variant, cut):
        import torch
        import torch.distributed
        from torch import nn
        self.torch, self.dist, self.rank = torch, torch.distributed, rank
        layout, _, update = variant.split(":")
        torch.set_num_threads(1)
        self.dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{options.port}", rank=rank,
                                     world_size=2)
        parts = blocks(options.model)
        self.model = nn.Sequential(*(parts[:cut] if rank == 0 else parts[cut:])).train()
        self.count = options.microbatches
        x, y = inputs_of(options)
        if layout == "channels_last":
            self.model = self.model.to(memory_format=torch.channels_last)
            x = x.to(memory_format=torch.channels_last)
        size = options.batch // self.count
        self.x, self.y = x.split(size), y.split(size)
        with torch.no_grad():  # the shape of what is passed on; statistics start anew behind it
            whole = nn.Sequential(*blocks(options.model)[:cut])
            self.edge = whole(self.x[0][:2])
            shape = (size,) + tuple(self.edge.shape[1:])
        memory = torch.channels_last if self.is_last_dims(shape, layout) else torch.contiguous_format
        self.buffers = [torch.empty(shape).contiguous(memory_format=memory)
                        for _ in range(self.count)]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=0.9,
                                         foreach=update == "foreach")

    @staticmethod
    def is_last_dims(shape, layout):
        return layout == "channels_last" and len(shape) == 4

    def flat(self, tensor):
        """A contiguous view of a tensor's memory, which is what gloo takes."""
        if tensor.dim() == 4 and not tensor.is_contiguous():
            return tensor.permute(0, 2, 3, 1)
        return tensor

    def send(self, tensor):
        tensor = self.flat(tensor.detach())
        return self.dist.isend(tensor.contiguous(), 1 - self.rank), tensor

    def step_first(self):
        outputs, sends = [], []
        receives = [None] * self.count

        def forward(m):
            receives[m] = self.dist.irecv(self.flat(self.buffers[m]), 1)
            outputs.append(self.model(self.x[m]))
            sends.append(self.send(outputs[m]))

        def backward(m):
            receives[m].wait()
            outputs[m].backward(self.buffers[m].view_as(outputs[m]))
            outputs[m] = None

        forward(0)
        for m in range(1, self.count):
            forward(m)
            backward(m - 1)
        backward(self.count - 1)
        for work, _ in sends:
            work.wait()
        return 0.0

    def step_second(self):
        sends, total = [], 0.0
        receives = [self.dist.irecv(self.flat(b), 0) for b in self.buffers]
        for m in range(self.count):
            receives[m].wait()
            entry = self.buffers[m].detach().requires_grad_()
            entry.grad = None
            loss = self.torch.nn.functional.cross_entropy(self.model(entry), self.y[m])
            loss = loss / self.count
            loss.backward()
            total += loss.item()
            sends.append(self.send(entry.grad))
        for work, _ in sends:
            work.wait()
        return total

    def run(self, runs):
        times, losses = [], []
        for _ in range(WARM_UP + runs):
            self.dist.barrier()
            start = time.perf_counter()
            self.optimizer.zero_grad(set_to_none=True)
            losses.append(self.step_first() if self.rank == 0 else self.step_second())
            self.optimizer.step()
            self.dist.barrier()
            times.append(time.perf_counter() - start)
        return times[WARM_UP:], losses


def run_case(options, variant, cut):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options.threads = 1
    command = [sys.executable, os.path.abspath(__file__), options.model, "--batch",
               str(options.batch), "--microbatches", str(options.microbatches), "--runs",
               str(options.runs), "--variant", variant, "--cut", str(cut), "--port", str(port)]
    environment = torch_peer.environment(options, variant.split(":")[1])
    children = [subprocess.Popen(command + ["--rank", str(rank)], env=environment,
                                 stdout=subprocess.PIPE, text=True) for rank in (0, 1)]
    texts = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        sys.exit(f"torch_pipeline_peer.py: variant {variant}, cut {cut} failed")
    return json.loads(texts[1])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cut", type=int, action="append")
    parser.add_argument("--variant", action="append", metavar="LAYOUT:CORE:UPDATE")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch % options.microbatches:
        parser.error(f"--batch {options.batch} is no multiple of --microbatches")
    return options


# Blocks in the first stage that come near to half of the work.
CUTS = {"resnet18": [4, 5], "mlp2048": [3]}


def main():
    options = parse()
    if options.rank is not None:
        rank = Rank(options, options.rank, options.variant[0], options.cut[0])
        times, losses = rank.run(options.runs)
        seconds = statistics.median(times)
        print(json.dumps({"variant": options.variant[0], "cut": options.cut[0],
                          "step_ms": seconds * 1e3, "samples_per_second": options.batch / seconds,
                          "losses": [losses[0], losses[-1]]}))
        return
    variants = options.variant or torch_peer.eager_variants(
        "mlp4096" if options.model.startswith("mlp") else options.model)
    cases = [run_case(options, variant, cut)
             for cut in options.cut or CUTS[options.model] for variant in variants]
    print(json.dumps({"model": options.model, "batch": options.batch,
                      "microbatches": options.microbatches,
                      "best": min(cases, key=lambda c: c["step_ms"]), "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
