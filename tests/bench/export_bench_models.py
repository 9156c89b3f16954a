#!/usr/bin/python3
"""Writes the models and data of `make bench` as ONNX exported for training.

  export_bench_models.py [--out build/bench] [--inference] [MODEL...]

For each model: MODEL.onnx (weights inside), MODEL_inputs.npy, MODEL_labels.npy. torch_peer.py runs
the same models on the same data. With --inference also MODEL_inference.onnx, with the same weights: what
PyTorch exports of a model that is not trained any more. Needs python3-torch, python3-torchvision, python3-onnx.
"""
import argparse
import copy
import os

import numpy
import onnx
import onnx.numpy_helper
import torch

import bench_models


def export(name, path):
    model = bench_models.build(name)
    state = copy.deepcopy(model.state_dict())  # the exporter's own pass moves running statistics
    example = torch.zeros((2,) + bench_models.MODELS[name][1], dtype=bench_models.example_type(name))
    torch.onnx.export(model, example, path,
                      opset_version=15, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["input"], output_names=["logits"],
                      dynamic_axes={"input": {0: "batch"}, "logits": {0: "batch"}})
    exported = onnx.load(path)
    for initializer in exported.graph.initializer:
        if "running_" in initializer.name:
            value = state[initializer.name].numpy()
            initializer.CopyFrom(onnx.numpy_helper.from_array(value, initializer.name))
    onnx.checker.check_model(exported)
    onnx.save(exported, path)


def export_inference(name, path):
    example = torch.zeros((2,) + bench_models.MODELS[name][1], dtype=bench_models.example_type(name))
    torch.onnx.export(bench_models.build(name).eval(), example, path, opset_version=15, input_names=["input"],
                      output_names=["logits"], dynamic_axes={"input": {0: "batch"}, "logits": {0: "batch"}})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(bench_models.MODELS))
    options = parser.parse_args()
    for name in options.models:
        if name not in bench_models.MODELS:
            parser.error(f"no model '{name}'; there are {', '.join(bench_models.MODELS)}")
    os.makedirs(options.out, exist_ok=True)
    for name in options.models or bench_models.MODELS:
        export(name, f"{options.out}/{name}.onnx")
        if options.inference:
            export_inference(name, f"{options.out}/{name}_inference.onnx")
        inputs, labels = bench_models.data(name)
        numpy.save(f"{options.out}/{name}_inputs.npy", inputs)
        numpy.save(f"{options.out}/{name}_labels.npy", labels)
        print(f"{options.out}/{name}.onnx")


if __name__ == "__main__":
    main()
