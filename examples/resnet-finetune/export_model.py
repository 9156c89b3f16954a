#!/usr/bin/python3
"""Writes resnet.onnx: torchvision's ResNet-18 cut for small pictures, freshly initialised.

  export_model.py [--classes 5] [-o resnet.onnx]

Needs Debian's python3-torch, python3-torchvision and python3-onnx.
"""
import argparse

import torch
from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet


class SmallResNet(ResNet):
    """The first two of the four stages, and a stem that keeps the picture's size."""

    def __init__(self, classes):
        super().__init__(BasicBlock, [1, 1, 1, 1], num_classes=classes)
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.maxpool = nn.MaxPool2d(2)
        self.layer3 = nn.Identity()
        self.layer4 = nn.Identity()
        self.fc = nn.Linear(128, classes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", default="resnet.onnx")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.onnx.export(SmallResNet(options.classes).train(), torch.zeros(2, 3, 28, 28),
                      options.output, opset_version=15,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["image"], output_names=["logits"],
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})


if __name__ == "__main__":
    main()
