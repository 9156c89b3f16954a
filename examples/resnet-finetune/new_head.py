#!/usr/bin/python3
"""Gives a trained classifier a fresh last layer for other classes.

  new_head.py trained.onnx fresh.onnx [--layer fc] [--classes 5]

Needs Debian's python3-onnx and python3-numpy.
"""
import argparse

import numpy
import onnx
import onnx.numpy_helper


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("trained")
    parser.add_argument("fresh")
    parser.add_argument("--layer", default="fc")
    parser.add_argument("--classes", type=int, default=5)
    options = parser.parse_args()
    model = onnx.load(options.trained)
    random = numpy.random.RandomState(1)
    found = []
    for tensor in model.graph.initializer:
        if tensor.name not in (f"{options.layer}.weight", f"{options.layer}.bias"):
            continue
        shape = [options.classes, *tensor.dims[1:]]
        bound = 1 / numpy.sqrt(shape[-1]) if len(shape) > 1 else 0
        value = random.uniform(-bound, bound, shape).astype(numpy.float32)
        found.append(tensor.name)
        tensor.CopyFrom(onnx.numpy_helper.from_array(value, tensor.name))
    if len(found) != 2:
        parser.error(f"{options.trained} has no {options.layer}.weight and {options.layer}.bias")
    onnx.save(model, options.fresh)


if __name__ == "__main__":
    main()
