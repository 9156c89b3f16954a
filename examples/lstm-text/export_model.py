#!/usr/bin/python3
"""Writes lstm.onnx: two layers of LSTM that predict the next letter, exported for training.

  export_model.py [-o lstm.onnx]

Needs Debian's python3-torch and python3-onnx.
"""
import argparse

import torch
from torch import nn

VOCABULARY, SEQUENCE, WIDTH = 27, 64, 128


class TextLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, 32)
        self.cells = nn.LSTM(32, WIDTH, num_layers=2, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.cells(self.table(tokens))[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", default="lstm.onnx")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.onnx.export(TextLstm().train(), torch.zeros(2, SEQUENCE, dtype=torch.long),
                      options.output, opset_version=15,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["tokens"], output_names=["scores"],
                      dynamic_axes={"tokens": {0: "batch"}, "scores": {0: "batch"}})


if __name__ == "__main__":
    main()
