#!/usr/bin/python3
"""Writes char_gpt.onnx: a small GPT over bytes, freshly initialised, exported for training.

  export_model.py [--width 192] [--layers 4] [--heads 4] [--sequence 128] [-o char_gpt.onnx]

Needs Debian's python3-torch and python3-onnx.
"""
import argparse
import math

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 256  # bytes


class Attention(nn.Module):
    def __init__(self, width, heads, sequence):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        mask = torch.tril(torch.ones(sequence, sequence, dtype=torch.bool))
        self.register_buffer("mask", mask[None, None])

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(~self.mask[:, :, :length, :length], -1e9)
        mixed = torch.softmax(scores, -1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, sequence):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, sequence)
        self.norm2 = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))


class CharGpt(nn.Module):
    def __init__(self, width, layers, heads, sequence):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Parameter(0.02 * torch.randn(sequence, width))
        self.blocks = nn.ModuleList(Block(width, heads, sequence) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        for name, parameter in self.named_parameters():
            if name.endswith(("out.weight", "narrow.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers))

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", default="char_gpt.onnx")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = CharGpt(options.width, options.layers, options.heads, options.sequence).train()
    torch.onnx.export(model, torch.zeros(2, options.sequence, dtype=torch.long), options.output,
                      opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["tokens"], output_names=["scores"],
                      dynamic_axes={"tokens": {0: "batch"}, "scores": {0: "batch"}})


if __name__ == "__main__":
    main()
