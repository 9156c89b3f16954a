#!/usr/bin/python3
"""Writes bert.onnx: a small BERT that classifies, freshly initialised, exported for training.

  export_model.py [-o bert.onnx]

Needs Debian's python3-torch and python3-onnx.
"""
import argparse
import math

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS, CLASSES = 4000, 80, 64, 4, 2, 6
DROPOUT = 0.3


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(DROPOUT)

    @staticmethod
    def split(x):
        return x.view(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = (self.split(part(x)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask
        mixed = (torch.softmax(scores, -1) @ value).transpose(1, 2).reshape(x.shape)
        x = self.norm1(x + self.dropout(self.out(mixed)))
        return self.norm2(x + self.dropout(self.narrow(functional.gelu(self.wide(x)))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.classifier = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens, attention_mask):
        positions = torch.arange(tokens.shape[1]).unsqueeze(0)
        x = self.dropout(self.norm(self.words(tokens) + self.positions(positions)))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", default="bert.onnx")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    tokens = torch.zeros(2, LENGTH, dtype=torch.long)
    names = ["tokens", "attention_mask"]
    torch.onnx.export(Bert().train(), (tokens, torch.ones_like(tokens)), options.output,
                      opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=names, output_names=["parts"],
                      dynamic_axes={name: {0: "batch"} for name in [*names, "parts"]})


if __name__ == "__main__":
    main()
