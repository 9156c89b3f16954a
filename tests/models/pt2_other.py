"""Recurrent networks, diffusion, experts and other models by hand, as PyTorch's users write them."""
import math

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, BATCH, LENGTH = 40, 4, 12


class Recurrent(nn.Module):
    def __init__(self, kind, width=24, head=VOCABULARY, **options):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width, padding_idx=0)
        self.cells = kind(width, width, batch_first=True, **options)
        self.head = nn.Linear(width * (2 if options.get("bidirectional") else 1), head)

    def forward(self, tokens):
        return self.head(self.cells(self.table(tokens))[0])


class LastState(nn.Module):
    """Classifies by the last states of both directions, from a state that is learnt."""

    def __init__(self, width=24, classes=3):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        self.first = nn.Parameter(torch.randn(2, 1, width) * 0.1)
        self.cells = nn.LSTM(width, width, bidirectional=True)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, tokens):
        words = self.table(tokens).transpose(0, 1)
        first = self.first.expand(-1, tokens.shape[0], -1).contiguous()
        _, (state, _) = self.cells(words, (first, torch.zeros_like(first)))
        return self.head(torch.cat((state[0], state[1]), dim=1))


class Cells(nn.Module):
    """LSTMCell and GRUCell, a step at a time."""

    def __init__(self, width=16):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        self.lstm = nn.LSTMCell(width, width)
        self.gru = nn.GRUCell(width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens):
        words = self.table(tokens)
        hidden = words.new_zeros(words.shape[0], words.shape[2])
        cell, other = hidden, hidden
        for step in range(4):
            hidden, cell = self.lstm(words[:, step], (hidden, cell))
            other = self.gru(hidden, other)
        return self.head(other)


class Tied(nn.Module):
    """nn.TransformerEncoder with a causal mask; the head is the table."""

    def __init__(self, width=32):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width, padding_idx=0)
        self.places = nn.Parameter(torch.randn(LENGTH, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, 4, 64, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        nn.init.normal_(self.table.weight, std=0.05)
        self.head.weight = self.table.weight
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, tokens):
        words = self.table(tokens) * math.sqrt(self.table.embedding_dim) + self.places
        return self.head(self.layers(words, mask=self.mask, is_causal=True))


class Translator(nn.Module):
    """nn.Transformer, both halves of it."""

    def __init__(self, width=32):
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, width), nn.Embedding(VOCABULARY, width)
        self.layers = nn.Transformer(width, 4, 1, 1, 64, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.float32)
        return self.head(self.layers(self.source(source), self.target(target), tgt_mask=mask,
                                     tgt_is_causal=True))


class Experts(nn.Module):
    """Each token goes to two of four experts, by index_put into a table of weights."""

    def __init__(self, width=24, experts=4):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        self.gate = nn.Linear(width, experts, bias=False)
        self.first = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.2)
        self.second = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.2)
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        words = self.table(tokens)
        flat = self.norm(words).reshape(-1, words.shape[-1])
        best, chosen = torch.topk(self.gate(flat).softmax(-1), 2, dim=-1)
        best = best / best.sum(-1, keepdim=True)
        rows = torch.arange(flat.shape[0], device=flat.device)[:, None]
        weights = torch.zeros(flat.shape[0], self.gate.out_features, dtype=flat.dtype).index_put((rows, chosen), best)
        made = torch.einsum("teh,ehd->ted", functional.silu(torch.einsum("td,edh->teh", flat, self.first)), self.second)
        return self.head(words + torch.einsum("ted,te->td", made, weights).reshape(words.shape))


class TimeBlock(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()
        self.drop = nn.Dropout(0.1)

    def forward(self, x, time):
        y = self.conv1(functional.silu(self.norm1(x))) + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(self.drop(functional.silu(self.norm2(y))))


class Diffusion(nn.Module):
    """A UNet that reads the time as sines, with attention at the bottom: it predicts the noise."""

    def __init__(self, width=16, time=32):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = TimeBlock(width, 2 * width, time)
        self.shrink = nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.middle = TimeBlock(2 * width, 2 * width, time)
        self.norm = nn.GroupNorm(4, 2 * width)
        self.attend = nn.MultiheadAttention(2 * width, 4, batch_first=True)
        self.up = TimeBlock(4 * width, width, time)
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, sample, timestep):
        half = self.width // 2
        rates = torch.exp(-math.log(10000.0) * torch.arange(half, dtype=torch.float32, device=sample.device) / half)
        angles = timestep[:, None].float() * rates[None]
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        kept = self.down(self.enter(sample), time)
        x = self.middle(self.shrink(kept), time)
        flat = self.norm(x).flatten(2).transpose(1, 2)
        x = x + self.attend(flat, flat, flat, need_weights=False)[0].transpose(1, 2).unflatten(2, x.shape[2:])
        x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return self.leave(self.up(torch.cat([x, kept], dim=1), time))


class Autoencoder(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, width, 3, stride=2, padding=1), nn.InstanceNorm2d(width, affine=True),
                                     nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(width, width, 3, padding=1), nn.ELU())
        self.decoder = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.ReflectionPad2d(1),
                                     nn.Conv2d(width, 12, 3), nn.PixelShuffle(2), nn.AvgPool2d(2), nn.Hardtanh())

    def forward(self, image):
        return self.decoder(self.encoder(image))


class Perceptron(nn.Module):
    """Dense layers, a frozen one, many activations. A momentum of None averages over all batches."""

    def __init__(self, momentum=0.1, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, width), nn.BatchNorm1d(width, momentum=momentum), nn.Mish(),
                                    nn.Linear(width, width), nn.PReLU(), nn.AlphaDropout(0.1), nn.Linear(width, width),
                                    nn.Softplus(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width),
                                    nn.GELU(approximate="tanh"), nn.Linear(width, width), nn.LogSigmoid())
        self.layers[3].requires_grad_(False)
        self.head = nn.Linear(width, 1)

    def forward(self, table):
        return self.head(self.layers(table))


class Waves(nn.Module):
    """Convolutions along time, weights normalized, dilated and causal, gated."""

    def __init__(self, width=16):
        super().__init__()
        self.enter = nn.utils.parametrizations.weight_norm(nn.Conv1d(1, width, 1))
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2 ** i) for i in range(3))
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Conv1d(width, 8, 1)

    def forward(self, wave):
        x = self.enter(wave)
        for gate in self.gates:
            x = x + functional.glu(gate(functional.pad(x, (gate.dilation[0], 0))), dim=1)
        return self.head(functional.adaptive_avg_pool1d(functional.relu_(self.norm(x)), 8)).transpose(1, 2)


class InPlace(nn.Module):
    """Writes into parts of a tensor, and into views of parts."""

    def __init__(self, width=16):
        super().__init__()
        self.enter, self.head = nn.Linear(10, width), nn.Linear(width, 3)
        self.register_buffer("seen", torch.zeros(()))
        self.scale = nn.Parameter(torch.rand(width // 2) + 0.5)

    def forward(self, table):
        x = self.enter(table)
        y = x.clone()
        y[:, ::2] *= self.scale
        y[:, 1::2].add_(1.0).mul_(0.5)
        view = y.view(-1, 4, 4).transpose(1, 2)
        view[:, 0] = x[:, :4]
        y.clamp_(min=-2.0)
        y.masked_fill_(y > 1.5, 0.25)
        self.seen.add_(1.0)
        return self.head(functional.relu_(y))


def text(generator, classes=VOCABULARY, whole=False):
    shape = (BATCH,) if whole else (BATCH, LENGTH)
    ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=generator)
    return {"tokens": ids}, torch.randint(0, classes, shape, generator=generator)


def sentences(generator):
    return text(generator, 3, True)


def pairs(generator):
    inputs, labels = text(generator)
    return {"source": inputs["tokens"], "target": labels.flip(0)}, labels


def noisy(generator):
    return ({"sample": torch.randn(BATCH, 3, 16, 16, generator=generator),
             "timestep": torch.randint(0, 1000, (BATCH,), generator=generator)},
            torch.randn(BATCH, 3, 16, 16, generator=generator))


def pictures(generator):
    image = torch.randn(BATCH, 3, 16, 16, generator=generator)
    return {"image": image}, image.clamp(-0.9, 0.9)


def rows(generator):
    return {"table": torch.randn(16, 10, generator=generator)}, torch.randn(16, 1, generator=generator)


def kinds(generator):
    return {"table": torch.randn(16, 10, generator=generator)}, torch.randint(0, 3, (16,), generator=generator)


def waves(generator):
    return ({"wave": torch.randn(BATCH, 1, 64, generator=generator)},
            torch.randint(0, 8, (BATCH, 8), generator=generator))


CLASSES, NUMBERS = "softmax_cross_entropy", "mean_squared_error"

# name: (constructor, inputs and labels, loss)
MODELS = {
    "lstm": (lambda: Recurrent(nn.LSTM, num_layers=2, dropout=0.1), text, CLASSES),
    "gru": (lambda: Recurrent(nn.GRU, num_layers=2, dropout=0.2), text, CLASSES),
    "rnn": (lambda: Recurrent(nn.RNN, nonlinearity="relu", bidirectional=True), text, CLASSES),
    "rnn_tanh": (lambda: Recurrent(nn.RNN, num_layers=2, dropout=0.3), text, CLASSES),
    "lstm_both_ways": (lambda: Recurrent(nn.LSTM, bidirectional=True, bias=False), text, CLASSES),
    "last_state": (LastState, sentences, CLASSES),
    "cells": (Cells, sentences, CLASSES),
    "tied": (Tied, text, CLASSES),
    "translator": (Translator, pairs, CLASSES),
    "experts": (Experts, text, CLASSES),
    "diffusion": (Diffusion, noisy, NUMBERS),
    "autoencoder": (Autoencoder, pictures, NUMBERS),
    "perceptron": (Perceptron, rows, NUMBERS),
    "perceptron_average": (lambda: Perceptron(None), rows, NUMBERS),
    "waves": (Waves, waves, CLASSES),
    "in_place": (InPlace, kinds, CLASSES),
}


def build(name):
    """(model, inputs, labels, loss, dimension of the classes)"""
    constructor, draw, loss = MODELS[name]
    torch.manual_seed(5)
    model = constructor()
    generator = torch.Generator().manual_seed(6)
    inputs, labels = draw(generator)
    return model, inputs, labels, loss, -1
