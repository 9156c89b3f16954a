"""The way home: the archive that Penstock writes is loaded by PyTorch, which goes on where Penstock would.

Outputs may be off by 1e-6 from PyTorch's in double precision, or by twice what PyTorch is in single precision.
"""
import json
import os
import shutil
import subprocess

import numpy
import torch

import pt2_files
import pt2_models
import pt2_oracle

OUTPUTS = 1e-6
LOSS = 1e-5


class Differs(Exception):
    pass


def read_safetensors(path):
    kinds = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "F16": "<f2", "I32": "<i4", "BOOL": "?", "U8": "u1"}
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


def run(command, *arguments):
    done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise Differs(f"penstock {arguments[0]}: {done.stderr.strip()[-600:]}")
    return done.stdout


def train_and_export(name, command, folder, facts):
    """A step of SGD with momentum of 0, from which PyTorch can go on without the optimizer's state; the archive, the
    loss of Penstock's next step, and what it predicts between them."""
    job = os.path.join(folder, name + ".home.yaml")
    losses = []
    for steps in (2, 1):
        text = pt2_files.job_text(name, facts, "sgd", steps, 1, f"{name}/home")
        with open(job, "w", encoding="utf-8") as file:
            file.write(text.replace(f"momentum: {pt2_oracle.SGD['momentum']:g}", "momentum: 0"))
        shutil.rmtree(os.path.join(folder, name, "home"), ignore_errors=True)
        report = json.loads(run(command, "train", "--json", "--no-eval", job))
        losses = losses or [step["loss"] for step in report["steps"]]
    path = os.path.join(folder, name + ".trained.pt2")
    run(command, "export", job, "-o", path)
    outputs = os.path.join(folder, name, "predicted.npy")
    run(command, "predict", "-q", job, "-o", outputs)
    return path, losses[1], numpy.load(outputs)


def check(name, command, folder, facts):
    """There and back, as a part of the line of the model."""
    path, loss, predicted = train_and_export(name, command, folder, facts)
    pose = pt2_models.build(name)
    program = torch.export.load(path)
    module = program.module(check_guards=False)
    found = pt2_oracle.loss_of(module(**pose.inputs), pose.labels, pose.loss, pose.class_axis).item()
    off = abs(found / loss - 1)
    if not off <= LOSS:
        raise Differs(f"taken home, the next loss is {found:.8g}, Penstock's {loss:.8g}")
    pose.model.load_state_dict(torch.export.load(path).state_dict, strict=False)
    expected, truth = pt2_oracle.evaluate(pose.model, pose).numpy(), pt2_files.evaluate_wide(pose)
    scale = numpy.abs(expected).max()
    error = float(numpy.abs(predicted.reshape(truth.shape) - truth).max() / scale)
    rounding = float(numpy.abs(expected - truth).max() / scale)
    if not error <= max(OUTPUTS, 2 * rounding):
        raise Differs(f"taken home, outputs are off by {error:.1e}, PyTorch's own by {rounding:.1e}")
    return f"home loss {off:.0e} outputs {error:.0e}"
