#!/usr/bin/env python3
"""Losses of fine-tuning with LoRA, as PyTorch computes them: the reference of `adapt: {lora: …}`.

    make_lora_references.py FOLDER

LoRA is written by hand here, as in the paper: a weight W that stays as it is, and beside it
alpha / rank * (B A), of which A and B are trained. A begins as PEFT has it, Kaiming uniform with
a = sqrt(5), drawn from the counted numbers of base/random.h; B is zero.

Writes NAME.txt of each case: losses of its steps in float64, and in float32, a line a step.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torch.nn.functional as f

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent))
from counted import philox, stream  # noqa: E402

SEED, BATCH, STEPS = 3, 8, 12
CASES = {  # model, adapted parameters, rank, alpha, trained beside, optimizer
    "mlp": ("mlp", ["layers.0", "layers.1"], 8, 16, [],
            lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
    "lenet": ("lenet", ["conv2", "fc1", "fc2"], 4, 6, ["fc3.weight", "fc3.bias"],
              lambda p: torch.optim.AdamW(p, lr=0.01)),
}


def uniform(name, count):
    key = stream(name, 0, 0)
    words = [philox(SEED, key, i) for i in range((count + 3) // 4)]
    return (np.array(words, np.uint64).reshape(-1)[:count] >> 8) / 2.0**24


class Adapter:
    def __init__(self, name, weight, rank, alpha):
        rows, *rest = weight.shape
        inputs = int(np.prod(rest))
        numbers = 2 * uniform(f"{name}.lora_A.weight", rank * inputs) - 1
        bound = np.float32(1 / np.sqrt(inputs))
        first = (bound * numbers.astype(np.float32)).astype(np.float32)
        self.a = torch.tensor(first.reshape(rank, *rest)).to(weight.dtype).requires_grad_()
        self.b = torch.zeros(rows, rank, dtype=weight.dtype, requires_grad=True)
        self.weight, self.scale = weight, alpha / rank

    def __call__(self):
        product = self.b @ self.a.flatten(1)
        return self.weight + self.scale * product.reshape(self.weight.shape)


def mlp(x, w):
    x = x.flatten(1)
    for i in range(3):
        x = f.linear(x, w(f"layers.{i}.weight"), w(f"layers.{i}.bias"))
        x = torch.relu(x) if i < 2 else x
    return x


def lenet(x, w):
    x = torch.sigmoid(f.conv2d(x, w("conv1.weight"), w("conv1.bias"), padding=2))
    x = f.avg_pool2d(x, 2)
    x = torch.tanh(f.conv2d(x, w("conv2.weight"), w("conv2.bias")))
    x = f.max_pool2d(x, 2).flatten(1)
    x = torch.tanh(f.linear(x, w("fc1.weight"), w("fc1.bias")))
    x = torch.sigmoid(f.linear(x, w("fc2.weight"), w("fc2.bias")))
    return f.linear(x, w("fc3.weight"), w("fc3.bias"))


def run(case, dtype):
    model, adapted, rank, alpha, beside, optimizer = case
    folder = here.parent / model
    graph = onnx.load(folder / "model.onnx").graph
    weights = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)).to(dtype)
               for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    x = torch.tensor(np.load(folder / "inputs.npy")).to(dtype)
    y = torch.tensor(np.load(folder / "labels.npy"))
    adapters = {f"{n}.weight": Adapter(n, weights[f"{n}.weight"], rank, alpha) for n in adapted}
    trained = [weights[n].requires_grad_() for n in beside]
    for a in adapters.values():
        trained += [a.a, a.b]
    steps, losses = optimizer(trained), []
    for step in range(STEPS):
        rows = slice(step * BATCH % len(x), step * BATCH % len(x) + BATCH)
        logits = globals()[model](x[rows], lambda n: adapters[n]() if n in adapters else weights[n])
        loss = f.cross_entropy(logits, y[rows])
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    for name, case in CASES.items():
        pairs = zip(run(case, torch.float64), run(case, torch.float32))
        text = "".join(f"{a:.10g} {b:.10g}\n" for a, b in pairs)
        (pathlib.Path(sys.argv[1]) / f"{name}.txt").write_text(text)
