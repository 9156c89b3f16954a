#!/usr/bin/env python3
"""What trainings lose whose products have operands of a lower precision.

    make_precision_references.py

Writes losses.txt beside itself, a line a model and precision: both names, then the losses of STEPS
steps in float64 and in float32. Operands of matrix products, convolutions, attention and recurrent
layers, forward and for all gradients, are rounded to the precision; all else is as wide as said.
Lines with precision float32 round nothing: how far others are from them is what rounding does.

Models, parameters and data are those of ../mlp, ../lenet (SGD, momentum 0.9) and ../sequences (AdamW,
gradients clipped); each step takes the next batch, over and over. Made with PyTorch 2.15.
"""
import pathlib
import sys

import numpy
import onnx
import torch
from torch import nn
from torch.autograd import Function
from torch.nn import functional as f

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "sequences")]
import make_sequence_references as sequences  # noqa: E402
import reference_models  # noqa: E402

STEPS = 20


def tf32(x):
    """Ten bits of mantissa; half a step, less one where the last bit that stays is even, is added."""
    bits = x.float().contiguous().view(torch.int32)
    odd = (bits >> 13) & 1
    return ((bits + 0xfff + odd) & ~0x1fff).view(torch.float32)


ROUNDINGS = {
    "float32": lambda x: x,
    "tf32": lambda x: tf32(x).to(x.dtype),
    "bfloat16": lambda x: x.float().bfloat16().to(x.dtype),
}
rounded = ROUNDINGS["float32"]  # of the training at hand


class Product(Function):
    """x times the transpose of a weight."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(rounded(x), rounded(weight))
        return rounded(x) @ rounded(weight).t()

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy = rounded(dy)
        return dy @ weight, dy.flatten(0, -2).t() @ x.flatten(0, -2)


class Convolution(Function):
    @staticmethod
    def forward(ctx, x, weight, padding):
        ctx.save_for_backward(rounded(x), rounded(weight))
        ctx.padding = padding
        return f.conv2d(rounded(x), rounded(weight), padding=padding)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy = rounded(dy)
        return (nn.grad.conv2d_input(x.shape, weight, dy, padding=ctx.padding),
                nn.grad.conv2d_weight(x, weight.shape, dy, padding=ctx.padding), None)


class Attention(Function):
    """Causal. What is multiplied with v is e^(score - largest), the sum divides afterwards."""

    @staticmethod
    def forward(ctx, q, k, v):
        q, k, v = rounded(q), rounded(k), rounded(v)
        scale = q.shape[-1] ** -0.5
        scores = scale * (q @ k.transpose(-1, -2))
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        total = powers.sum(-1, keepdim=True)
        y = rounded(powers) @ v / total
        ctx.save_for_backward(q, k, v, y, powers / total)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx, dy):
        q, k, v, y, p = ctx.saved_tensors
        dy = rounded(dy)
        slopes = rounded(p * (dy @ v.transpose(-1, -2) - (dy * y).sum(-1, keepdim=True)))
        return (ctx.scale * (slopes @ k), ctx.scale * (slopes.transpose(-1, -2) @ q),
                rounded(p).transpose(-1, -2) @ dy)


class Linear(nn.Linear):
    def forward(self, x):
        y = Product.apply(x, self.weight)
        return y if self.bias is None else y + self.bias


class Conv2d(nn.Conv2d):
    def forward(self, x):
        return Convolution.apply(x, self.weight, self.padding) + self.bias[:, None, None]


class Lstm(nn.LSTM):
    """One layer in one direction, batch first."""

    def forward(self, x):
        halves = Product.apply(x, self.weight_ih_l0) + self.bias_ih_l0 + self.bias_hh_l0
        h = c = halves.new_zeros(x.shape[0], self.hidden_size)
        states = []
        for t in range(x.shape[1]):
            i, forget, g, o = (halves[:, t] + Product.apply(h, self.weight_hh_l0)).chunk(4, 1)
            c = forget.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        return torch.stack(states, 1), (h, c)


KINDS = {nn.Linear: Linear, nn.Conv2d: Conv2d, nn.LSTM: Lstm}


def with_products(model):
    for module in model.modules():
        module.__class__ = KINDS.get(type(module), type(module))
    return model


def pictures(name, make):
    """A training of ../NAME, from its own parameters."""
    folder = HERE.parent / name
    initial = {i.name: torch.from_numpy(onnx.numpy_helper.to_array(i).copy())
               for i in onnx.load(str(folder / "model.onnx")).graph.initializer}
    inputs = torch.from_numpy(numpy.load(folder / "inputs.npy"))
    labels = torch.from_numpy(numpy.load(folder / "labels.npy"))

    def start(dtype):
        model = make().train()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter.copy_(initial[key])
        model = with_products(model).to(dtype)
        return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), None

    return start, inputs, labels, 8


def words(name):
    """A training of ../sequences."""
    tokens = torch.from_numpy(numpy.load(HERE.parent / "sequences" / "tokens.npy"))
    labels = torch.from_numpy(numpy.load(HERE.parent / "sequences" / "labels.npy"))

    def start(dtype):
        model = with_products(sequences.begin(sequences.MODELS[name])).to(dtype)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01)
        return model, optimizer, 0.5

    return start, tokens, labels, sequences.BATCH


def losses(training, dtype):
    start, inputs, labels, batch = training
    model, optimizer, clip = start(dtype)
    found = []
    for step in range(STEPS):
        rows = slice(step * batch % len(inputs), step * batch % len(inputs) + batch)
        x = inputs[rows].to(dtype) if inputs.is_floating_point() else inputs[rows]
        loss = f.cross_entropy(model(x).flatten(0, -2), labels[rows].flatten())
        found.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return found


def causal(q, k, v, is_causal, dropout_p):
    assert is_causal and dropout_p == 0
    return Attention.apply(q, k, v)


def main():
    global rounded
    torch.set_num_threads(1)
    sequences.f.scaled_dot_product_attention = causal
    trainings = {"mlp": pictures("mlp", lambda: reference_models.Mlp([784, 32, 24, 10])),
                 "lenet": pictures("lenet", reference_models.Lenet),
                 "gpt": words("gpt"), "lstm": words("lstm")}
    with open(HERE / "losses.txt", "w", encoding="ascii") as file:
        for name, training in trainings.items():
            for precision, rounding in ROUNDINGS.items():
                rounded = rounding
                numbers = [losses(training, dtype) for dtype in (torch.float64, torch.float32)]
                row = [f"{x:.9g}" for line in numbers for x in line]
                file.write(" ".join([name, precision] + row) + "\n")


if __name__ == "__main__":
    main()
