#!/usr/bin/env python3
"""Small models in PyTorch's own form, and what training them with PyTorch gives.

    python3 make_pytorch_references.py     (PyTorch 2.8 or later, NumPy)

NAME.pt2 is the model as it was before training, NAME.npz has its input `x`, the labels `y`, the
losses of STEPS steps (SGD with momentum, in float64), and what the buffers hold afterwards.
`half` has 16-bit weights, `plain` is the form in which nothing is changed in place, and `fixed`
has a batch that is a number. `numbered` reads a size that only a formula tells. `averages`,
`quantized` and `given` change buffers in the forward pass, once for each of the microbatches of a step.
In `nothing`, whose microbatches have one example, a tensor has no elements.
`branches` and `hidden` are refused: they have no NAME.npz. Some
are also written without stack traces, as seeds of tests/fuzz/pt2_fuzz.c.
"""
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from exported_traces import shorten  # noqa: E402

STEPS = 3
SEEDS = os.path.join(HERE, "..", "..", "fuzz", "corpus", "pt2")
BATCH = torch.export.Dim.DYNAMIC


class Views(nn.Module):
    """Changes in place: of views, of views of views, of buffers, and under no_grad."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.last = nn.Linear(6, 4)
        self.frozen = nn.Parameter(torch.ones(6) * 1.5, requires_grad=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("average", torch.zeros(6))
        self.register_buffer("mask", torch.tril(torch.ones(6, 6)).t(), persistent=False)

    def forward(self, x):
        y = self.first(x)
        y[:, 1] = 0.5
        y[:, 2:4].mul_(2)
        turned = y.t()[4:].transpose(0, 1)
        turned.add_(x[:, :2])
        halves = y.view(-1, 2, 3)
        halves[:, 1].relu_()
        copy = y * 1.0
        y = y + self.mask.sum(0) * 0.1
        copy += 1
        self.count.add_(2)
        with torch.no_grad():
            self.average.mul_(0.9).add_(y.mean(0), alpha=0.1)
        every_other = torch.zeros_like(y)
        every_other[:, ::2] = y[:, ::2]
        left, right = (y * self.frozen).chunk(2, 1)
        sum_ = torch.cat([left.tanh(), right], 1) + every_other + self.average * 0.01 + copy
        with torch.no_grad():
            stopped = sum_ * 2
        return self.last(sum_ + stopped * 0.1)


class Plain(Views):
    """Without no_grad, which run_decompositions forgets."""

    def forward(self, x):
        y = self.first(x)
        y[:, 1] = 0.5
        y[:, 2:4].mul_(2)
        y[:, 4:] += x[:, :2]
        y[:, ::3] = x[:, 1:3]
        self.count.add_(2)
        self.average.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.last(y * self.frozen + self.average + self.mask.sum(0))


class Pictures(nn.Module):
    """Batch normalization, dropout that drops nothing, an activation in place; two outputs."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.Dropout(0.0),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(4 * 9, 3)

    def forward(self, x):
        hidden = self.net(x)
        return {"logits": self.head(hidden), "hidden": [hidden, x]}


class Tied(nn.Module):
    """Two names of one weight."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(5, 7, bias=False)
        self.gate = nn.Linear(5, 7, bias=False)
        self.gate.weight = self.up.weight
        self.down = nn.Linear(7, 3)

    def forward(self, x):
        return (self.down(torch.relu(self.up(x)) * torch.sigmoid(self.gate(x))),)


class Numbered(nn.Module):
    """Sizes that are formulas of the batch."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 6)

    def forward(self, x):
        pairs = torch.cat([x, x * 2], 0)
        added = torch.zeros_like(pairs) + pairs
        return self.layer(added.view(2, x.shape[0], 4).sum(0)).view(x.shape[0], -1, 3).sum(1)


class Averages(nn.Module):
    """Moving averages between layers, which divide what passes: the gradient reads them, too. One is
    read by an earlier layer than the one that changes it, and one that stays by the first and the last."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.middle = nn.Linear(8, 8)
        self.last = nn.Linear(8, 3)
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("scale", torch.ones(8))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("level", torch.ones(()) * 0.5)
        self.register_buffer("tilt", torch.randn(8))

    def forward(self, x):
        y = self.first(x) + self.tilt
        self.steps.add_(1)
        z = torch.tanh((y - self.mean) / self.scale.clone())
        with torch.no_grad():
            self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
            self.scale.mul_(0.9).add_(y.abs().mean(0), alpha=0.1)
        h = torch.relu(self.middle(z * self.level.clone()))
        h = h + self.middle(h)
        self.level.lerp_(h.detach().abs().mean(), 0.2)
        return self.last(h / self.scale * self.tilt)


class Quantized(nn.Module):
    """A codebook that follows what falls to it, between two layers; what is taken of it passes the
    gradient straight through."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(6, 4)
        self.decode = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        self.register_buffer("codes", torch.randn(5, 4))
        self.register_buffer("sizes", torch.ones(5))
        self.register_buffer("sums", torch.randn(5, 4))

    def forward(self, x):
        y = self.encode(x)
        flat = y.detach()
        distances = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codes.t() + self.codes.pow(2).sum(1)
        chosen = distances.argmin(1)
        hits = F.one_hot(chosen, 5).to(x.dtype)
        taken = F.embedding(chosen, self.codes)
        with torch.no_grad():
            self.sizes.mul_(0.8).add_(hits.sum(0), alpha=0.2)
            self.sums.mul_(0.8).add_(hits.t() @ flat, alpha=0.2)
            total = self.sizes.sum()
            smooth = (self.sizes + 0.1) / (total + 0.5) * total
            self.codes.copy_(self.sums / smooth.unsqueeze(1))
        taken = y + (taken - y).detach()
        return self.decode(taken)


class Nothing(nn.Module):
    """The first example of a microbatch is changed: of one example, no others are left."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        y = self.first(x)
        y[:1] = y[:1].tanh() * 2
        return self.last(y.relu())


class Given(nn.Module):
    """Batch normalization by statistics that the pass changes: as they were, and as they became. An
    activation comes after the change, and another normalization changes them once more."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.middle = nn.Linear(5, 5)
        self.last = nn.Linear(5, 3)
        self.register_buffer("mean", torch.randn(5) * 0.1)
        self.register_buffer("var", torch.ones(5) * 1.3)

    def forward(self, x):
        y = self.first(x)
        z = F.batch_norm(y, self.mean.clone(), self.var.clone(), training=False)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(y.mean(0), alpha=0.1)
            self.var.mul_(0.9).add_(y.var(0, unbiased=False), alpha=0.1)
        y = self.middle(z.relu())
        y = y + F.batch_norm(y, self.mean.clone(), self.var.clone(), training=False).relu()
        return self.last(F.batch_norm(y, self.mean, self.var, training=True, momentum=0.3))


class Hidden(nn.Module):
    """Gradients do not see what happens to a trained tensor under no_grad."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        y = self.layer(x)
        with torch.no_grad():
            y.clamp_(-0.2, 0.3)
        return y


class Branches(nn.Module):
    """What is computed depends on data."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        y = self.layer(x)
        return torch.cond(y.sum() > 0, torch.relu, torch.tanh, (y,))


def outputs_of(result):
    if isinstance(result, dict):
        return result["logits"]
    return result[0] if isinstance(result, tuple) else result


def refuse(name, model, x):
    program = torch.export.export(model.train(), (x,), dynamic_shapes=({0: BATCH},))
    shorten(program.graph_module)
    torch.export.save(program, os.path.join(HERE, name + ".pt2"))


def make(name, model, x, classes, dynamic=True, decompose=False, microbatches=1):
    model.train()
    y = torch.randint(0, classes, (x.shape[0],))
    shapes = ({0: BATCH},) if dynamic else None
    program = torch.export.export(model, (x,), dynamic_shapes=shapes)
    if decompose:
        program = program.run_decompositions({})
    shorten(program.graph_module)
    torch.export.save(program, os.path.join(HERE, name + ".pt2"))
    if name in ("views", "pictures", "half", "numbered"):
        shorten(program.graph_module, keep=False)
        torch.export.save(program, os.path.join(SEEDS, name + ".pt2"))
    model = model.double()
    x = x.double()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.1, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses.append(0)
        for part, labels in zip(x.chunk(microbatches), y.chunk(microbatches)):
            loss = F.cross_entropy(outputs_of(model(part)), labels) / microbatches
            loss.backward()
            losses[-1] += loss.item()
        optimizer.step()
    saved = {"buffer." + key: value.numpy() for key, value in model.named_buffers()
             if key in model.state_dict()}
    np.savez(os.path.join(HERE, name + ".npz"), x=x.float().numpy(), y=y.numpy(),
             losses=np.array(losses), **saved)
    print(name, losses)


torch.manual_seed(0)
make("views", Views(), torch.randn(8, 6), 4)
make("pictures", Pictures(), torch.randn(8, 1, 6, 6), 3)
make("tied", Tied(), torch.randn(8, 5), 3)
make("plain", Plain(), torch.randn(8, 6), 4, decompose=True)
make("fixed", Tied(), torch.randn(8, 5), 3, dynamic=False)
make("half", Tied().half().float().half(), torch.randn(8, 5).half(), 3)
make("numbered", Numbered(), torch.randn(8, 4), 3)
make("averages", Averages(), torch.randn(8, 6), 3, microbatches=4)
make("quantized", Quantized(), torch.randn(8, 6), 3, microbatches=4)
make("nothing", Nothing(), torch.randn(8, 6), 3, microbatches=8)
refuse("branches", Branches(), torch.randn(8, 4))
refuse("hidden", Hidden(), torch.randn(8, 4))
make("given", Given(), torch.randn(8, 6), 3, microbatches=2)
