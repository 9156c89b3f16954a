"""The files of a model: its .pt2, inputs and labels as NPY, a job, and what PyTorch makes of it.

  FOLDER/NAME.pt2, FOLDER/NAME.yaml, FOLDER/NAME/INPUT.npy, FOLDER/NAME/labels.npy,
  FOLDER/NAME.json (losses of some steps, by optimizer and precision),
  FOLDER/NAME.npz (initial state; gradient, and state after a step, by optimizer and precision)
"""
import contextlib
import json
import os
import warnings

import numpy
import torch

import pt2_models
import pt2_oracle

GRADIENT_RATE = 2 ** 40  # a step of this rate is the gradient: what the parameter was is less than its last place
RULES = {"sgd": "{sgd: {lr: %(lr)g, momentum: %(momentum)g}}" % pt2_oracle.SGD,
         "adamw": "{adamw: {lr: %(lr)g, weight_decay: %(weight_decay)g}}" % pt2_oracle.ADAMW,
         "gradient": "{sgd: {lr: %d}}" % GRADIENT_RATE}
DEVICES = {1: "devices: [{name: a, threads: 2}]",
           3: "devices: [{name: a, threads: 2}, {name: b, threads: 2}, {name: c, threads: 2}]"}


def job_text(name, facts, optimizer, steps=2, devices=1, out=None):
    arrays = ", ".join(f"{key}: {name}/{key}.npy" for key in facts["inputs"])
    data = f"{{format: npy, inputs: {{{arrays}}}, labels: {name}/labels.npy}}"
    axis = ["  class_axis: 1"] if facts["class_axis"] == 1 else []
    lines = ["version: 1", f"model: {{file: {facts.get('file', name + '.pt2')}}}", "data:", f"  train: {data}",
             f"  eval: {data}", "train:", f"  loss: {facts['loss']}", *axis, f"  optimizer: {RULES[optimizer]}",
             f"  batch: {facts['batch']}", "  shuffle: false", f"  steps: {steps}", DEVICES[devices]]
    if devices > 1:
        lines.append("placement: {strategy: round_robin}")
    if out:
        lines.append(f"outputs: {{dir: {out}}}")
    return "\n".join(lines) + "\n"


def judge(module, pose):
    """Losses by optimizer and precision; gradients and states as arrays of single precision."""
    losses, arrays = {}, {}
    for optimizer in pt2_oracle.OPTIMIZERS:
        for kind, each in (("double", pt2_oracle.widen(module)), ("single", module)):
            losses[f"{optimizer}.{kind}"], gradients, state = pt2_oracle.train(each, pose, optimizer)
            for key, value in state.items():
                arrays[f"{optimizer}.{kind}.{key}"] = narrow(value)
            if optimizer == "sgd":
                arrays |= {f"gradient.{kind}.{key}": narrow(value) for key, value in gradients.items()
                           if value is not None}
    return losses, arrays


@contextlib.contextmanager
def threads(count):
    """Has PyTorch compute with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def roundings(name, folder, count=2):
    """[(losses, states)] of PyTorch in single precision, each with weights that are rounded otherwise; the first,
    third and so on with two threads, for which it has other kernels of some convolutions."""
    pose, runs = pt2_models.build(name), []
    module = torch.export.load(os.path.join(folder, name + ".pt2")).module(check_guards=False)
    for seed in range(count):
        losses, arrays = {}, {}
        for optimizer in pt2_oracle.OPTIMIZERS:
            nudged = pt2_oracle.nudge(module, seed)
            with threads(2 - seed % 2):
                losses[f"{optimizer}.single"], gradients, state = pt2_oracle.train(nudged, pose, optimizer)
            arrays |= {f"{optimizer}.single.{key}": narrow(value) for key, value in state.items()}
            arrays |= {f"gradient.single.{key}": narrow(value) for key, value in gradients.items()
                       if value is not None}
        runs.append((losses, arrays))
    return runs


def narrow(value):
    value = value.detach().numpy()
    return value.astype("f4") if value.dtype == numpy.float64 else value


def write(name, folder, made_by=None):
    """Writes the files of a model, and who made them. What PyTorch cannot export raises its own error."""
    pose = pt2_models.build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = pt2_models.export(pose)
        torch.export.save(program, os.path.join(folder, name + ".pt2"))
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    for key, value in {**pose.inputs, "labels": pose.labels}.items():
        numpy.save(os.path.join(folder, name, key + ".npy"), value.numpy())
    facts = {"made_by": made_by, "inputs": list(pose.inputs), "loss": pose.loss, "class_axis": pose.class_axis,
             "batch": len(pose.labels), "parameters": sum(p.numel() for p in pose.model.parameters())}
    with open(os.path.join(folder, name + ".yaml"), "w", encoding="utf-8") as file:
        file.write(job_text(name, facts, "sgd"))
    module = program.module(check_guards=False)
    facts["losses"], arrays = judge(module, pose)
    arrays |= {f"initial.{key}": narrow(value) for key, value in module.state_dict().items()}
    arrays["evaluated"] = pt2_oracle.evaluate(pose.model, pose).numpy()
    arrays["evaluated.double"] = pt2_oracle.evaluate_wide(pose).numpy()
    numpy.savez(os.path.join(folder, name + ".npz"), **arrays)
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
