#!/usr/bin/env python3
"""Makes tests/reference/exports: small models as PyTorch's exporter of today writes them as ONNX.

  make_onnx_exports.py [FOLDER]

Each NAME.onnx comes with NAME.x.npy and NAME.t.npy, inputs and targets, and NAME.losses, the losses
of three steps of SGD (rate 0.1) of the model in float64. Files ending in _lossy were written with the
exporter's optimizer and have lost parameters by it: they have no losses, for their training is
refused. Metadata that only tell lines of Python are left out.

Needs PyTorch 2.15 or later and onnxscript, from a virtual environment.
"""
import copy
import logging
import os
import sys
import warnings

import numpy
import onnx
import torch
from torch import nn
from torch.nn import functional

RATE = 0.1
HERE = os.path.dirname(os.path.abspath(__file__))


class Normed(nn.Module):
    """Batch normalization, which the exporter writes in the form of inference."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc(functional.relu(self.norm(self.conv(x))).mean((2, 3)))


class Scaled(nn.Module):
    """Numbers of the program beside numbers that are trained."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.gain = nn.Parameter(torch.tensor(0.7))
        self.temperature = nn.Parameter(torch.tensor([0.5]))
        self.slope = nn.PReLU()
        self.last = nn.Linear(5, 3)

    def forward(self, x):
        x = self.slope(self.first(x)) * self.gain / 2 ** 0.5 + 0.25
        return self.last(x) * self.temperature.exp()


class Tokens(nn.Module):
    """A tied head, a row for padding, a split, attention."""

    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(12, 8, padding_idx=0)
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24)
        self.second = nn.LayerNorm(8)
        self.head = nn.Linear(8, 12, bias=False)
        self.head.weight = self.token.weight

    def forward(self, x):
        y = self.token(x)
        q, k, v = (t.view(*t.shape[:2], 2, 4).transpose(1, 2) for t in self.qkv(self.norm(y)).split(8, 2))
        z = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(self.second(y + z.transpose(1, 2).flatten(2)))


class Recurrent(nn.Module):
    """Weights that the exporter lays out otherwise."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True)
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


class Cloned(nn.Module):
    """A parameter that is read through an Identity."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 5, bias=False)
        self.bias = nn.Parameter(torch.randn(5))
        self.last = nn.Linear(5, 3)

    def forward(self, x):
        return self.last(torch.relu(self.first(x) + self.bias.clone()))


def trim(path):
    """Only the metadata that say what values are."""
    kept = ("graph_signature", "folded_from", "fx_node")
    model = onnx.load(path)
    graph = model.graph
    for thing in [graph, *graph.node, *graph.initializer, *graph.input, *graph.output, *graph.value_info]:
        entries = [(p.key, p.value) for p in thing.metadata_props if any(k in p.key for k in kept)]
        if isinstance(thing, onnx.NodeProto) and "aten.embedding" not in str(entries):
            entries = []
        del thing.metadata_props[:]
        for key, value in entries:
            thing.metadata_props.add(key=key, value=value)
    onnx.save(model, path)


def losses(model, x, t, steps=3):
    model = copy.deepcopy(model).double().train()
    x = x.double() if x.is_floating_point() else x
    rule = torch.optim.SGD(model.parameters(), lr=RATE)
    found = []
    for _ in range(steps):
        rule.zero_grad()
        y = model(x)
        loss = functional.cross_entropy(y.reshape(-1, y.shape[-1]), t.reshape(-1))
        loss.backward()
        rule.step()
        found.append(loss.item())
    return found


def make(folder, name, model, x, optimize, opset=None):
    torch.manual_seed(3)
    model.train()
    classes = model(x).shape
    t = torch.randint(0, classes[-1], classes[:-1])
    before = copy.deepcopy(model.state_dict())
    path = os.path.join(folder, name + ".onnx")
    torch.onnx.export(copy.deepcopy(model), (x,), path, dynamo=True, optimize=optimize, external_data=False,
                      input_names=["x"], output_names=["y"], opset_version=opset, verbose=False)
    trim(path)
    model.load_state_dict(before)
    numpy.save(os.path.join(folder, name + ".x.npy"), x.numpy())
    numpy.save(os.path.join(folder, name + ".t.npy"), t.numpy())
    if name.endswith("_lossy"):
        return
    with open(os.path.join(folder, name + ".losses"), "w", encoding="utf-8") as file:
        file.write("".join(f"{loss:.17g}\n" for loss in losses(model, x, t)))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "exports")
    os.makedirs(folder, exist_ok=True)
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.manual_seed(0)
    pictures, numbers = torch.randn(4, 2, 6, 6), torch.randn(4, 6)
    tokens, series = torch.randint(0, 12, (4, 5)), torch.randn(4, 5, 4)
    tokens[0, 1] = tokens[2, 3] = 0
    make(folder, "normed", Normed(), pictures, False)
    make(folder, "normed_lossy", Normed(), pictures, True)
    make(folder, "scaled", Scaled(), numbers, False)
    make(folder, "scaled_lossy", Scaled(), numbers, True)
    make(folder, "tokens", Tokens(), tokens, False)
    make(folder, "tokens_23", Tokens(), tokens, False, 23)
    make(folder, "tokens_lossy", Tokens(), tokens, True)
    make(folder, "cloned", Cloned(), numbers, False)
    make(folder, "recurrent_optimized", Recurrent(), series, True)


main()
