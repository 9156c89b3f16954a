"""The way home: the archive that Penstock writes is loaded by PyTorch, which goes on where Penstock would.

What PyTorch makes of the trained weights in evaluation and what `predict` gives may differ by 1e-6. Where they differ
by more, PyTorch in double precision decides: `predict` may be off by twice what PyTorch in single precision is, the
worst of three runs, of which two have weights that are rounded otherwise.
"""
import collections
import json
import os
import shutil
import subprocess

import numpy
import safetensors.torch
import torch

import pt2_compare
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
    """A step of SGD with momentum of 0, from which PyTorch can go on without the optimizer's state; what is exported
    then, without its end, the loss of Penstock's next step, and what it predicts between them."""
    job = os.path.join(folder, name + ".home.yaml")
    losses = []
    for steps in (2, 1):
        text = pt2_files.job_text(name, facts, "sgd", steps, 1, f"{name}/home")
        with open(job, "w", encoding="utf-8") as file:
            file.write(text.replace(f"momentum: {pt2_oracle.SGD['momentum']:g}", "momentum: 0"))
        shutil.rmtree(os.path.join(folder, name, "home"), ignore_errors=True)
        report = json.loads(run(command, "train", "--json", "--no-eval", job))
        losses = losses or [step["loss"] for step in report["steps"]]
    path = os.path.join(folder, name + ".trained")
    for end in (".pt2", ".safetensors"):
        run(command, "export", job, "-o", path + end)
    outputs = os.path.join(folder, name, "predicted.npy")
    run(command, "predict", "-q", job, "-o", outputs)
    return path, losses[1], numpy.load(outputs)


def compare_states(pose, archive, tensors):
    """Both exports go whole into the model that was exported, and hold the same."""
    figures = []
    for where, state in (("the archive", archive), ("the safetensors", tensors)):
        state = collections.OrderedDict(state)
        state._metadata = pose.model.state_dict()._metadata  # versions of modules, which MNASNet asks for
        try:
            pose.model.load_state_dict(state, strict=True)
        except (RuntimeError, ValueError) as reason:
            figures.append(pt2_compare.Figure(1, 0, 0.5, f"home loss: {where} as a state_dict(): {reason}"))
    differ = [key for key in sorted({*archive, *tensors})
              if key not in archive or key not in tensors or not torch.equal(archive[key], tensors[key])]
    if differ:
        figures.append(pt2_compare.Figure(len(differ), 0, 0.5, f"home loss: the archive and the safetensors differ in "
                                          f"'{differ[0]}' and others, their number"))
    return figures


def compare_outputs(pose, predicted):
    """What is predicted, beside PyTorch in evaluation with the trained weights, which the model has."""
    theirs = pt2_oracle.evaluate(pose.model, pose).numpy()
    scale = float(max(numpy.abs(theirs).max(initial=0), 1e-30))
    predicted = predicted.reshape(theirs.shape)
    where, apart = "home outputs", pt2_compare.distance(predicted, theirs) / scale
    if apart <= OUTPUTS:
        return pt2_compare.Figure(apart, 0, OUTPUTS, where)
    right = pt2_oracle.evaluate_wide(pose).numpy()
    other = max(pt2_compare.distance(pt2_oracle.evaluate(model, pose).numpy(), right) / scale
                for model in (pose.model, *(pt2_oracle.nudge(pose.model, seed) for seed in range(2))))
    return pt2_compare.Figure(pt2_compare.distance(predicted, right) / scale, other,
                              max(OUTPUTS, pt2_compare.OTHER * other), where)


def compare(name, command, folder, facts):
    """Figures of the way there and back, by column of the table."""
    path, loss, predicted = train_and_export(name, command, folder, facts)
    pose = pt2_models.build(name)
    program = torch.export.load(path + ".pt2")
    figures = compare_states(pose, program.state_dict, safetensors.torch.load_file(path + ".safetensors"))
    module = program.module(check_guards=False)  # whose running statistics move, and with them the program's
    next_loss = pt2_oracle.loss_of(module(**pose.inputs), pose.labels, pose.loss, pose.class_axis).item()
    figures.append(pt2_compare.Figure(abs(next_loss / loss - 1), 0, LOSS, "home loss"))
    return {"home loss": figures, "home outputs": [compare_outputs(pose, predicted)]}
