#!/usr/bin/python3
"""Writes fashion_cnn.onnx, the model of `make demo`: freshly initialised, exported for training.

  export_model.py            writes fashion_cnn.onnx beside this script
  export_model.py --train N  instead trains the same network in PyTorch for N epochs, as job.yaml
                             does, and prints its test accuracy: the figure to compare with

Needs Debian's python3-torch and python3-onnx; --train also dataset-fashion-mnist. Running the demo
needs no Python.
"""
import argparse
import copy
import gzip
import os
import time

import numpy
import onnx
import onnx.numpy_helper
import torch
from torch import nn
from torch.nn import functional

DATASET = "/usr/share/datasets/fashion-mnist"
MEAN, DEVIATION = 0.2860, 0.3530  # of the training images
BATCH, LEARNING_RATE, MOMENTUM, DECAY = 64, 0.05, 0.9, 5e-4


class FashionCnn(nn.Module):
    """Three convolutions with batch normalisation and pooling, two linear layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 24, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(24)
        self.conv2 = nn.Conv2d(24, 48, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(48)
        self.conv3 = nn.Conv2d(48, 96, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(96)
        self.fc1 = nn.Linear(96 * 3 * 3, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = functional.max_pool2d(torch.relu(self.bn2(self.conv2(x))), 2)
        x = functional.max_pool2d(torch.relu(self.bn3(self.conv3(x))), 2)
        x = torch.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(x)


def export(model, path):
    state = copy.deepcopy(model.state_dict())  # the exporter's own pass moves running statistics
    torch.onnx.export(model, torch.zeros(2, 1, 28, 28), path, opset_version=15,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["image"], output_names=["logits"],
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})
    exported = onnx.load(path)
    for initializer in exported.graph.initializer:
        if "running_" in initializer.name:
            value = state[initializer.name].numpy()
            initializer.CopyFrom(onnx.numpy_helper.from_array(value, initializer.name))
    onnx.checker.check_model(exported, full_check=True)
    onnx.save(exported, path)


def read(part):
    with gzip.open(f"{DATASET}/{part}-images-idx3-ubyte.gz") as file:
        images = numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(f"{DATASET}/{part}-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read(), numpy.uint8, offset=8).astype(numpy.int64)
    images = (images.astype(numpy.float32) / 255 - MEAN) / DEVIATION
    return torch.from_numpy(images), torch.from_numpy(labels)


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item()
                    for x, y in zip(images.split(500), labels.split(500)))
    model.train()
    return right / len(labels)


def train(model, epochs, threads):
    torch.set_num_threads(threads)
    images, labels = read("train")
    test = read("t10k")
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM,
                                weight_decay=DECAY)
    steps = epochs * ((len(labels) + BATCH - 1) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    start = time.monotonic()
    for epoch in range(epochs):
        for rows in torch.randperm(len(labels)).split(BATCH):
            loss = functional.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1}: test accuracy {accuracy(model, *test):.4f} "
              f"after {time.monotonic() - start:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--train", type=int, metavar="EPOCHS")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the initial parameters")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    model = FashionCnn().train()
    if options.train is not None:
        train(model, options.train, options.threads)
    else:
        export(model, os.path.join(os.path.dirname(os.path.abspath(__file__)), "fashion_cnn.onnx"))


if __name__ == "__main__":
    main()
