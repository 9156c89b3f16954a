#!/usr/bin/python3
"""Exports models from PyTorch, trains each for one step here and there, and compares.

  check_models.py --penstock build/gcc/penstock [--keep FOLDER] [NAME...]

For each model: the outputs of inference, the loss, and every parameter after one step of SGD
(pictures) or AdamW (text), beside PyTorch in double precision; then the same step over three devices,
whose parameters must be equal bit for bit. Each parameter may be off by 1e-4, or by twice what
PyTorch gets wrong in it in single precision. Elements whose gradient is noise, below 1e-5 of the
largest of the model, are left out where AdamW makes a whole step of them, and counted. What models
with dropout learn is compared over devices alone, for PyTorch drops others. Needs python3-torch,
-torchvision, -onnx.
"""
import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnx.numpy_helper
import torch
from torch import nn

import text_models
import vision_models

TOLERANCE = 1e-4
NOISE = 1e-5
SLIP = 2e-3  # of a gradient, as the difference of two parameters shows it
DRAWS = 6  # of inputs, at most
ROUNDINGS = 2  # of PyTorch in single precision, that tell whether to draw again
RATE = {"sgd": 0.05, "adamw": 1e-3}
DECAY = 0.01
DEVICES = {1: "devices: [{name: a, threads: 2}]",
           3: "devices: [{name: a, threads: 2}, {name: b, threads: 2}, {name: c, threads: 2}]"}


class Failed(Exception):
    pass


def export(model, inputs, path, opset):
    state = copy.deepcopy(model.state_dict())  # the exporter's own pass moves running statistics
    torch.onnx.export(model, tuple(inputs.values()), path, opset_version=opset,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=list(inputs), output_names=["logits"],
                      dynamic_axes={name: {0: "batch"} for name in [*inputs, "logits"]})
    model.load_state_dict(state)
    exported = onnx.load(path)
    for initializer in exported.graph.initializer:
        if "running_" in initializer.name:
            value = state[initializer.name].numpy()
            initializer.CopyFrom(onnx.numpy_helper.from_array(value, initializer.name))
    onnx.save(exported, path)


def infer(model, inputs):
    model.eval()
    with torch.no_grad():
        return model(*inputs.values()).double().numpy()


def step(model, inputs, labels, optimizer):
    """Loss, parameters before, their gradients, parameters after."""
    model.train()
    before = {name: p.detach().double().clone().numpy() for name, p in model.named_parameters()}
    if optimizer == "sgd":
        rule = torch.optim.SGD(model.parameters(), lr=RATE["sgd"])
    else:
        rule = torch.optim.AdamW(model.parameters(), lr=RATE["adamw"], weight_decay=DECAY)
    logits = model(*inputs.values())
    loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
    loss.backward()
    gradients = {name: p.grad.detach().double().clone().numpy()
                 for name, p in model.named_parameters()}
    rule.step()
    after = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
    return loss.item(), before, gradients, after


def read_safetensors(path):
    kinds = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "F16": "<f2", "I32": "<i4"}
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(data[8 + length + begin:8 + length + end],
                                         kinds[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def penstock(command, *arguments):
    done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=900,
                          check=False)
    if done.returncode != 0:
        raise Failed(f"penstock {arguments[0]}: {done.stderr.strip()[-600:]}")
    return done.stdout


def write_job(folder, name, inputs, batch, optimizer, devices, out=None):
    arrays = ", ".join(f"{key}: {key}.npy" for key in inputs)
    data = f"{{format: npy, inputs: {{{arrays}}}, labels: labels.npy}}"
    rule = f"{{sgd: {{lr: {RATE['sgd']}}}}}"
    if optimizer == "adamw":
        rule = f"{{adamw: {{lr: {RATE['adamw']}, weight_decay: {DECAY}}}}}"
    lines = ["version: 1", "model: {file: model.onnx}", "data:", f"  train: {data}",
             f"  eval: {data}", "train:", "  loss: softmax_cross_entropy", f"  optimizer: {rule}",
             f"  batch: {batch}", "  steps: 1", DEVICES[devices]]
    if devices > 1:
        lines.append("placement: {strategy: round_robin}")
    if out:
        lines.append(f"outputs: {{dir: {out}}}")
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def relative(found, expected):
    return float(numpy.abs(found - expected).max() / max(numpy.abs(expected).max(), 1e-30))


def nudged(model, seed):
    """The same model, its weights rounded otherwise: each by up to half a unit of its last place."""
    generator = torch.Generator().manual_seed(seed)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1 + (torch.rand(parameter.shape, generator=generator) - 0.5) * 2.0 ** -23)
    return other


def step_errors(after, truth, optimizer):
    """The error of each parameter after a step, and of what the step changed in it, relative to the
    largest element; elements left out, and all elements."""
    _, before, gradients, expected = truth
    largest = max(numpy.abs(g).max() for g in gradients.values())
    errors, slips, left_out, total = {}, {}, 0, 0
    for name, value in expected.items():
        keep = numpy.ones(value.shape, bool)
        if optimizer == "adamw":
            keep = numpy.abs(gradients[name]) >= NOISE * largest
        total += keep.size
        left_out += int((~keep).sum())
        scale = max(numpy.abs(value).max(), 1e-2 * RATE[optimizer])
        errors[name] = float(numpy.where(keep, numpy.abs(after[name] - value), 0).max() / scale)
        if optimizer == "sgd":  # for parameters much larger than their gradients
            size = max(numpy.abs(gradients[name]).max(), 1e-6 * largest)
            rounding = 2.4e-7 * numpy.abs(before[name]).max() / RATE["sgd"] / size
            change = (before[name] - after[name]) / RATE["sgd"]
            slips[name] = max(0.0, float(numpy.abs(change - gradients[name]).max() / size - rounding))
    return errors, slips, left_out, total


def first_beyond(found, own, floor, factor):
    """A parameter whose error is beyond what PyTorch's allows, or None."""
    for name, error in found.items():
        if not error <= max(floor, factor * own[name]):
            return name
    return None


def compare_parameters(found, truth, single, optimizer):
    """The worst relative error and that of PyTorch in single precision there; elements left out,
    and all elements. `single` is PyTorch's step in single precision."""
    for name, value in truth[3].items():
        if found[name].shape != value.shape:
            raise Failed(f"'{name}' is {found[name].shape}, expected {value.shape}")
    errors, slips, left_out, total = step_errors(found, truth, optimizer)
    own, own_slips, _, _ = step_errors(single[3], truth, optimizer)
    for what, ours, theirs, floor, factor in (
            ("after a step, parameter", errors, own, TOLERANCE, 2),
            ("gradient of", slips, own_slips, SLIP, 10)):
        name = first_beyond(ours, theirs, floor, factor)
        if name is not None:
            raise Failed(f"{what} '{name}': error {ours[name]:.2e}, PyTorch's {theirs[name]:.2e}")
    worst = max(errors, key=errors.get)
    return errors[worst], own[worst], left_out, total


def map_renamed(found, model_path, truth):
    """Weights that the exporter transposed or renamed, told by their initial values."""
    initial = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(model_path).graph.initializer}
    mapped = dict(found)
    for name, before in truth[1].items():
        if name in found:
            continue
        for other, value in initial.items():
            if other not in found:
                continue
            if value.shape == before.shape and numpy.array_equal(value, before.astype("f4")):
                mapped[name] = found[other]
                break
            if value.ndim == 2 and value.T.shape == before.shape and numpy.array_equal(
                    value.T, before.astype("f4")):
                mapped[name] = found[other].T
                break
    return mapped


def pose(name):
    """A model with inputs, and what a step of it does in double and in single precision. Where
    rounding decides about a ReLU or a pooling, so that PyTorch's steps with weights rounded otherwise
    are further than rounding from each other, other inputs are drawn: nobody's error is told there."""
    zoo = vision_models if name in vision_models.FAMILIES else text_models
    optimizer = "sgd" if zoo is vision_models else "adamw"
    for draw in range(DRAWS):
        model, inputs, labels, opset = zoo.build(name, draw)
        double = copy.deepcopy(model).double()
        wide = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
        expected = infer(copy.deepcopy(double), wide)
        truth = step(double, wide, labels, optimizer)
        single = step(copy.deepcopy(model), inputs, labels, optimizer)
        others = (step(nudged(model, seed), inputs, labels, optimizer) for seed in range(ROUNDINGS))
        if optimizer != "sgd" or all(max(step_errors(each[3], truth, optimizer)[1].values()) < SLIP
                                     for each in (single, *others)):
            break
    return model, inputs, labels, opset, optimizer, expected, truth, single


def check(name, command, folder):
    model, inputs, labels, opset, optimizer, expected, truth, single = pose(name)
    path = os.path.join(folder, "model.onnx")
    export(model, inputs, path, opset)
    for key, value in inputs.items():
        numpy.save(os.path.join(folder, key + ".npy"), value.numpy())
    numpy.save(os.path.join(folder, "labels.npy"), labels.numpy())
    own = infer(copy.deepcopy(model), inputs)

    batch = len(labels)
    job = write_job(folder, "predict.yaml", inputs, batch, optimizer, 1)
    penstock(command, "predict", "-q", job, "-o", os.path.join(folder, "outputs.npy"))
    forward = relative(numpy.load(os.path.join(folder, "outputs.npy")).reshape(expected.shape),
                       expected)
    if not forward <= max(TOLERANCE, 2 * relative(own, expected)):
        raise Failed(f"outputs: error {forward:.2e}, PyTorch's {relative(own, expected):.2e}")

    runs = {}
    drops = any(isinstance(m, nn.Dropout) and m.p > 0 for m in model.modules())
    for devices in DEVICES:
        job = write_job(folder, f"train{devices}.yaml", inputs, batch, optimizer, devices,
                        f"run{devices}")
        report = json.loads(penstock(command, "train", "--json", "--no-eval", "--overwrite", job))
        loss = report["steps"][0]["loss"]
        runs[devices] = read_safetensors(os.path.join(folder, f"run{devices}",
                                                      "parameters.safetensors"))
        if devices == 1 and not drops and not abs(loss - truth[0]) <= TOLERANCE * abs(truth[0]):
            raise Failed(f"loss {loss:.7g}, expected {truth[0]:.7g}")
    for key, value in runs[1].items():
        if value.tobytes() != runs[3][key].tobytes():
            raise Failed(f"'{key}' differs between one device and three")
    if drops:
        return f"outputs {forward:.1e}, one device and three equal"
    found = map_renamed(runs[1], path, truth)
    missing = [key for key in truth[3] if key not in found]
    if missing:
        raise Failed(f"{len(missing)} parameters were not found, such as '{missing[0]}'")
    error, own_error, left_out, total = compare_parameters(found, truth, single, optimizer)
    return (f"outputs {forward:.1e}, parameters {error:.1e} (PyTorch {own_error:.1e}), "
            f"left out {left_out} of {total}")


def main():
    names = [*vision_models.FAMILIES, *text_models.MODELS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", default="build/gcc/penstock")
    parser.add_argument("--keep", metavar="FOLDER", help="where models and jobs stay")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    command = os.path.abspath(options.penstock)
    failed = 0
    for name in options.names or names:
        if name not in names:
            parser.error(f"no model '{name}'; there are {', '.join(names)}")
        with tempfile.TemporaryDirectory() as scratch:
            folder = os.path.join(options.keep, name) if options.keep else scratch
            os.makedirs(folder, exist_ok=True)
            try:
                print(f"{name:14} {check(name, command, folder)}", flush=True)
            except (Failed, subprocess.TimeoutExpired) as reason:
                failed += 1
                print(f"{name:14} FAILED: {reason}", flush=True)
    print(f"models: {len(options.names or names) - failed} as PyTorch, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
