"""Exports models from PyTorch as .pt2, trains each for some steps here and there, and compares.

  check_pt2.py --penstock build/gcc/penstock [--folder FOLDER] [--reuse] [NAME...]

The judge is PyTorch in double precision. For each model and for SGD with momentum and AdamW: the losses of three
steps, and parameters and buffers after one step, each to 1e-5 of its scale. Where PyTorch in single precision is
further off than that, twice its error is allowed, the worst of three runs whose weights are rounded otherwise, and the
line of the model says how far it was. Elements whose gradient is noise are left out where AdamW makes a whole step of
them, and counted. Three devices must have the bits of one. The model is then taken home (export): what
torch.export.load reads must give what predict gives, and its next step must have the loss of Penstock's.
Each model is exported once more with the random rates that it comes with (pt2_chance.py).
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

import numpy
import torch

import pt2_chance
import pt2_files
import pt2_home
import pt2_models
import pt2_oracle

TOLERANCE = 1e-5
NOISE = 1e-5  # of the largest gradient of a parameter
ALL_NOISE = 1e-6  # of the largest gradient of the model: a gradient that is 0 but for rounding
EPSILON = 1e-8  # of AdamW
OTHER = 2  # times what PyTorch in single precision is off


class Failed(Exception):
    pass


def penstock(command, *arguments):
    done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise Failed(f"penstock {arguments[0]}: {done.stderr.strip()[-900:] or done.returncode}")
    return done.stdout


def train(command, folder, name, facts, optimizer, steps, devices):
    """Losses of the steps, and the parameters after them."""
    out = os.path.join(folder, name, f"run_{optimizer}_{steps}_{devices}")
    shutil.rmtree(out, ignore_errors=True)
    path = os.path.join(folder, f"{name}.{optimizer}.{steps}.{devices}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(pt2_files.job_text(name, facts, optimizer, steps, devices, os.path.relpath(out, folder)))
    report = json.loads(penstock(command, "train", "--json", "--no-eval", path))
    found = pt2_home.read_safetensors(os.path.join(out, "parameters.safetensors"))
    return path, [step["loss"] for step in report["steps"]], found


def relative(found, expected):
    return float(numpy.abs(found - expected).max(initial=0) / max(numpy.abs(expected).max(initial=0), 1e-30))


class Judge:
    """What PyTorch makes of a model: in double precision (`truth`), and its errors in single precision."""

    def __init__(self, name, folder, facts, arrays):
        self.name, self.folder, self.facts, self.arrays, self.others = name, folder, facts, arrays, None

    def roundings(self):
        """[(losses, arrays)] of PyTorch in single precision. Those with weights rounded otherwise are computed when an
        error is asked for that the first does not allow."""
        runs = [({key: value for key, value in self.facts["losses"].items() if key.endswith("single")}, self.arrays)]
        return runs + (self.others or [])

    def widened(self):
        """Whether there are more roundings than before."""
        if self.others is not None:
            return False
        self.others = pt2_files.roundings(self.name, self.folder)
        return True

    def loss_error(self, optimizer, step):
        right = self.facts["losses"][f"{optimizer}.double"][step]
        return max(abs(losses[f"{optimizer}.single"][step] / right - 1) for losses, _ in self.roundings())

    def state_error(self, optimizer, name, keep, scale):
        right = self.arrays[f"{optimizer}.double.{name}"]
        return max(error_of(arrays[f"{optimizer}.single.{name}"], right, keep, scale) for _, arrays in self.roundings())

    def allows(self, error, theirs):
        """Whether an error is allowed beside PyTorch's, which a function tells."""
        return error <= max(TOLERANCE, OTHER * theirs()) or (self.widened() and error <= OTHER * theirs())


def tells(gradient, single, largest, scale):
    """Which elements of a gradient are more than noise, or exactly 0, as of a word that is not there. AdamW divides by
    their size and EPSILON: noise in what is about as small as that moves a parameter of `scale` by more than it may."""
    size = numpy.abs(gradient)
    noise = max(NOISE / 10 * size.max(initial=0), numpy.abs(single - gradient).max(initial=0))
    moved = pt2_oracle.ADAMW["lr"] * noise * EPSILON / (size + EPSILON) ** 2
    is_told = (size >= 10 * noise) & (size >= ALL_NOISE * largest) & (moved <= TOLERANCE * scale)
    return is_told | ((gradient == 0) & (single == 0))


def error_of(found, right, keep, scale):
    return float(numpy.where(keep, numpy.abs(found - right), 0).max(initial=0) / scale)


def compare_losses(found, judge, optimizer):
    """The worst error of the losses, and PyTorch's."""
    worst, theirs = 0.0, 0.0
    for step, (ours, right) in enumerate(zip(found, judge.facts["losses"][f"{optimizer}.double"], strict=True)):
        error = abs(ours / right - 1)
        if not judge.allows(error, lambda at=step: judge.loss_error(optimizer, at)):
            raise Failed(f"{optimizer}: loss of step {step + 1} is {ours:.8g}, expected {right:.8g}; "
                         f"error {error:.1e}, PyTorch's {judge.loss_error(optimizer, step):.1e}")
        worst, theirs = max(worst, error), max(theirs, judge.loss_error(optimizer, step))
    return worst, theirs


def compare_state(found, judge, optimizer):
    """The worst error of parameters and buffers after a step, PyTorch's, elements left out, and all."""
    gradients = {key[len("gradient.double."):]: value for key, value in judge.arrays.items()
                 if key.startswith("gradient.double.")}
    largest = max(numpy.abs(g).max(initial=0) for g in gradients.values())
    beginning, worst, theirs, left_out, total = f"{optimizer}.double.", 0.0, 0.0, 0, 0
    for key, right in judge.arrays.items():
        name = key.removeprefix(beginning)
        if name == key:
            continue
        if name not in found:
            if name in gradients or "running_" in name or name.endswith("num_batches_tracked"):
                raise Failed(f"{optimizer}: '{name}' is not among the parameters after a step")
            continue
        if found[name].shape != right.shape:
            raise Failed(f"'{name}' is {found[name].shape}, expected {right.shape}")
        keep = numpy.ones(right.shape, bool)
        scale = max(numpy.abs(right).max(initial=0), 1e-2 * 1e-3)
        if optimizer == "adamw" and name in gradients:
            keep = tells(gradients[name], judge.arrays[f"gradient.single.{name}"], largest, scale)
        total, left_out = total + keep.size, left_out + int((~keep).sum())
        error = error_of(found[name], right, keep, scale)

        def other(*of):
            return judge.state_error(optimizer, *of)
        if not judge.allows(error, lambda of=(name, keep, scale): other(*of)):
            raise Failed(f"{optimizer}: '{name}' after a step: error {error:.1e}, "
                         f"PyTorch's {other(name, keep, scale):.1e}")
        worst, theirs = max(worst, error), max(theirs, other(name, keep, scale))
    return worst, theirs, left_out, total


def compare_evaluation(command, folder, name, job, arrays):
    """The worst error of what the untrained model predicts, and PyTorch's."""
    path = os.path.join(folder, name, "evaluated.npy")
    penstock(command, "predict", "-q", job, "-o", path)
    right = arrays["evaluated.double"]
    error = relative(numpy.load(path).reshape(right.shape), right)
    other = relative(arrays["evaluated"], right)
    if not error <= max(TOLERANCE, OTHER * other):
        raise Failed(f"outputs in evaluation: error {error:.1e}, PyTorch's {other:.1e}")
    return error, other


def check_training(command, folder, judge):
    """Errors of losses and states, Penstock's and PyTorch's, over both optimizers, as a part of the line."""
    parts, name, facts = [], judge.name, judge.facts
    for optimizer in pt2_files.RULES:
        _, losses, after = train(command, folder, name, facts, optimizer, 1, 1)
        state = compare_state(after, judge, optimizer)
        _, losses, one = train(command, folder, name, facts, optimizer, 3, 1)
        loss = compare_losses(losses, judge, optimizer)
        _, _, three = train(command, folder, name, facts, optimizer, 3, 3)
        for key, value in one.items():
            if value.tobytes() != three[key].tobytes():
                raise Failed(f"{optimizer}: '{key}' differs between one device and three")
        parts.append(f"{optimizer} loss {loss[0]:.0e} ({loss[1]:.0e}) state {state[0]:.0e} ({state[1]:.0e})")
        if state[2]:
            parts[-1] += f" left out {state[2]} of {state[3]}"
    return parts


def check(name, command, folder, options):
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        facts = json.load(file)
    arrays = dict(numpy.load(os.path.join(folder, name + ".npz")))
    parts = ["outputs %.0e (%.0e)" % compare_evaluation(command, folder, name,
                                                        os.path.join(folder, name + ".yaml"), arrays)]
    parts += check_training(command, folder, Judge(name, folder, facts, arrays))
    if not options.no_home:
        parts.append(pt2_home.check(name, command, folder, facts))
    if not options.no_chance:
        parts.append(pt2_chance.check(name, command, folder))
    return "; ".join(parts)


def one_model(name, command, folder, options):
    """(whether it is as PyTorch's, its line); None when PyTorch cannot export it."""
    try:
        if not (options.reuse and os.path.exists(os.path.join(folder, name + ".json"))):
            pt2_files.write(name, folder)
    except Exception as reason:  # whatever the exporter says
        return None, f"PyTorch does not export it: {type(reason).__name__}: {str(reason).strip().splitlines()[0]}"
    if options.files_only:
        return True, "written"
    try:
        return True, check(name, command, folder, options)
    except (Failed, pt2_home.Differs, pt2_chance.Differs, subprocess.TimeoutExpired) as reason:
        return False, f"FAILED: {reason}"
    except Exception:  # a fault of the check: the next models are tried all the same
        return False, f"FAILED: {traceback.format_exc()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", default="build/gcc/penstock")
    parser.add_argument("--folder", help="where models and jobs stay")
    parser.add_argument("--reuse", action="store_true", help="models that are there are not exported again")
    parser.add_argument("--files-only", action="store_true", help="exports, and does not train")
    parser.add_argument("--no-home", action="store_true", help="does not take the model back to PyTorch")
    parser.add_argument("--no-chance", action="store_true", help="does not try random rates")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(pt2_models.ZOOS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.names:
        if name not in pt2_models.ZOOS:
            parser.error(f"no model '{name}'; there are {', '.join(pt2_models.ZOOS)}")
    counts = {True: 0, False: 0, None: 0}
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(options.folder or scratch)
        os.makedirs(folder, exist_ok=True)
        for name in options.names or pt2_models.ZOOS:
            right, line = one_model(name, os.path.abspath(options.penstock), folder, options)
            counts[right] += 1
            print(f"{name:18} {line}", flush=True)
    print(f"models: {counts[True]} as PyTorch, {counts[False]} not, {counts[None]} that PyTorch does not export")
    return 1 if counts[False] else 0


if __name__ == "__main__":
    sys.exit(main())
