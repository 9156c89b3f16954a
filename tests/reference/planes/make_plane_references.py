#!/usr/bin/env python3
"""A network of planes, and a language model as exported transformers are, and what PyTorch makes of
training them with losses that have options.

    make_plane_references.py

Writes beside itself, of each model, NAME.pt2 as torch.export saves it, with NAME_inputs.npy and
NAME_labels.npy; and losses.txt, a line a model: its name, and the losses of its steps in float64,
and in float32. Each step takes the next BATCH rows, over and over. Parameters begin as multiples of
1/256, so that the files can be packed well. Made with PyTorch 2.15.
"""
import pathlib
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as f

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from exported_traces import shorten  # noqa: E402

ROWS, BATCH, STEPS, TIME, WORDS, CLASSES = 8, 4, 6, 12, 24, 5
WEIGHTS = (0.5, 2, 0.25, 1, 3.25)


class Outline(nn.Module):
    """What is up and down again, with borders of every kind."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.by_group = nn.GroupNorm(2, 8)
        self.down = nn.Conv2d(8, 16, 4, stride=2)
        self.by_instance = nn.InstanceNorm2d(16, affine=True)
        self.deep = nn.Conv2d(16, 16, 3)
        self.slope = nn.PReLU(16)
        self.narrow = nn.Conv2d(16, 8, 1)
        self.side = nn.Conv2d(16, 4, 1)
        self.out = nn.Conv2d(24, CLASSES, 1)

    def forward(self, x):
        a = f.elu(self.by_group(self.stem(f.pad(x, (1, 1, 1, 1), mode="reflect"))))
        b = f.mish(self.by_instance(self.down(f.pad(a, (1, 1, 1, 1), mode="replicate"))))
        c = self.slope(self.deep(f.pad(b, (0, 2, 2, 0))))
        d = f.interpolate(self.narrow(c), scale_factor=2, mode="bilinear", align_corners=False)
        e = f.interpolate(f.softplus(self.side(b)), scale_factor=2, mode="nearest")
        g = f.pixel_shuffle(c, 2)
        size = (a.pow(2).mean((2, 3), keepdim=True) + 1e-3).rsqrt()
        joined = torch.cat((a * size, d, e, g), 1)
        return self.out(torch.where(joined > 1, torch.log(joined.clamp(min=1)) + 1, joined))


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def turned(x):
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.proj = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, mask, cos, sin):
        batch, time, width = x.shape
        y = self.norm1(x)
        q, k, v = (p(y).view(batch, time, self.heads, -1).transpose(1, 2)
                   for p in (self.q, self.k, self.v))
        q, k = (p * cos + turned(p) * sin for p in (q, k))
        scores = (q @ k.transpose(2, 3) / q.shape[-1] ** 0.5).masked_fill(~mask, -1e9)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, time, width)
        x = x + self.proj(y)
        y = self.norm2(x)
        return x + self.down(f.silu(self.gate(y)) * self.up(y))


class Rotary(nn.Module):
    """Word 0 is padding; places are counted over all other words."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=0)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(2))
        self.norm, self.out = Norm(width), nn.Linear(width, WORDS, bias=False)
        half = width // heads // 2
        self.register_buffer("rates", 100.0 ** (-torch.arange(half) / half), persistent=False)

    def forward(self, tokens):
        is_word = tokens != 0
        places = (is_word.to(torch.int64).cumsum(1) - 1).clamp(min=0)
        angles = places.unsqueeze(-1).to(self.rates.dtype) * self.rates
        angles = torch.cat((angles, angles), -1).unsqueeze(1)
        time = tokens.shape[1]
        mask = torch.ones(time, time, dtype=torch.bool).tril() & is_word[:, None, None, :]
        mask = mask | torch.eye(time, dtype=torch.bool)
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x, mask, angles.cos(), angles.sin())
        return self.out(self.norm(x))


def plane_loss(scores, labels):
    weights = torch.tensor(WEIGHTS, dtype=scores.dtype)
    return f.cross_entropy(scores, labels, weights, ignore_index=255, label_smoothing=0.1)


def word_loss(scores, labels):
    return f.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=0)


MODELS = {
    "outline": (Outline, plane_loss, lambda p: torch.optim.NAdam(p, lr=0.01, weight_decay=0.001)),
    "rotary": (Rotary, word_loss, lambda p: torch.optim.RAdam(p, lr=0.02)),
}


def data(name):
    random = numpy.random.RandomState(7)
    if name == "outline":
        inputs = random.randint(-16, 17, (ROWS, 3, 12, 12)).astype("float32") / 16
        labels = (inputs.sum(1) > 0).astype("int64") + 2 * (inputs[:, 0] > 0.3)
        labels[random.rand(*labels.shape) < 0.1] = 255
        labels[random.rand(*labels.shape) < 0.1] = 4
        return inputs, labels
    tokens = random.randint(1, WORDS, (ROWS, TIME + 1))
    tokens[:, 1::2] = (tokens[:, :-1:2] * 3 + 1) % (WORDS - 1) + 1  # every other one can be told
    for row in range(ROWS):
        tokens[row, :row % 4] = 0
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def begin(make):
    torch.manual_seed(5)
    model = make().train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_((parameter * 256).round() / 256)
    return model


def losses(name, dtype, inputs, labels):
    make, loss_of, optimizer_of = MODELS[name]
    model = begin(make).to(dtype)
    optimizer = optimizer_of(model.parameters())
    found = []
    for step in range(STEPS):
        rows = slice(step * BATCH % ROWS, step * BATCH % ROWS + BATCH)
        given = inputs[rows].to(dtype) if inputs.is_floating_point() else inputs[rows]
        loss = loss_of(model(given), labels[rows])
        found.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return found


def main():
    with open(HERE / "losses.txt", "w", encoding="ascii") as file:
        for name, (make, _, _) in MODELS.items():
            inputs, labels = data(name)
            numpy.save(HERE / f"{name}_inputs.npy", inputs)
            numpy.save(HERE / f"{name}_labels.npy", labels)
            inputs, labels = torch.from_numpy(inputs), torch.from_numpy(labels)
            exported = torch.export.export(begin(make), (inputs[:BATCH],),
                                           dynamic_shapes=({0: torch.export.Dim("batch")},))
            shorten(exported.graph_module, keep=False)
            torch.export.save(exported, HERE / f"{name}.pt2")
            numbers = [losses(name, dtype, inputs, labels)
                       for dtype in (torch.float64, torch.float32)]
            file.write(" ".join([name] + [f"{x:.12g}" for row in numbers for x in row]) + "\n")


if __name__ == "__main__":
    main()
