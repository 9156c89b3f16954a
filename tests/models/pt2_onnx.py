"""Exports models from PyTorch as ONNX, trains each for some steps here and there, and compares the losses.

  pt2_onnx.py --penstock build/gcc/penstock [--folder FOLDER] [--reuse] [NAME...]

Each model of pt2_models.py is written by the exporter that torch.onnx.export uses by default, with its optimizer
(NAME.onnx) and without (NAME.plain.onnx). What the file of a model says is one of:

  right   the losses of three steps, by SGD with momentum and by AdamW, are PyTorch's: as in check_pt2.py. What the
          model has frozen is named in the job, as a note of every training of such a file asks for
  told    the training is refused, or warns that the file has lost something
  WRONG   losses differ, and nothing was said
"""
import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
import warnings

import torch

import pt2_compare
import pt2_files
import pt2_models
import pt2_oracle

ENDINGS = {".plain.onnx": False, ".onnx": True}
RECIPE = "torch.export.save"  # stands in what is said of a file that has lost something


class Told(Exception):
    pass


class Wrong(Exception):
    pass


def write(name, folder):
    """What the exporter says against each of the files of a model; None where it has written it."""
    said = {}
    for ending, optimize in ENDINGS.items():
        path = os.path.join(folder, name + ending)
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                program = pt2_models.export(pt2_models.build(name))
                torch.onnx.export(program, (), path, dynamo=True, optimize=optimize, external_data=False, verbose=False)
            said[ending] = None
        except Exception as reason:  # whatever the exporter says
            lines = str(reason).strip().splitlines() or [""]
            said[ending] = f"{type(reason).__name__}: {lines[0]}"
    return said


def losses_of(command, job):
    """The losses of a job's steps, and all that was said on the way."""
    done = subprocess.run([command, "train", "--json", "--no-eval", job], capture_output=True, text=True, timeout=600,
                          check=False)
    said = done.stderr.strip()
    if done.returncode != 0:
        raise Told("refused: " + " ".join(said.split())[:400])
    return [step["loss"] for step in json.loads(done.stdout)["steps"]], said


def check(name, ending, command, folder, facts):
    """A part of the line about a file that is right."""
    judge, parts = pt2_compare.Judge(name, folder, facts, {}), []
    frozen = [key for key, value in pt2_models.build(name).model.named_parameters() if not value.requires_grad]
    for optimizer in pt2_oracle.OPTIMIZERS:
        job = os.path.join(folder, f"{name}{ending}.{optimizer}.yaml")
        with open(job, "w", encoding="utf-8") as file:
            text = pt2_files.job_text(name, {**facts, "file": name + ending}, optimizer, 3)
            pattern = "|".join(key.replace(".", "[.]") for key in frozen)
            file.write(text.replace("  shuffle:", f'  freeze: "^({pattern})$"\n  shuffle:') if frozen else text)
        losses, said = losses_of(command, job)
        figure = pt2_compare.worst(pt2_compare.compare_losses(losses, judge, optimizer))
        if not figure.passes:
            raise Told("warned: " + " ".join(said.split())[:400]) if RECIPE in said else Wrong(str(figure))
        parts.append(f"{optimizer} {figure.error:.0e} ({figure.other:.0e})")
    return ", ".join(parts)


def one_model(name, command, folder, reuse):
    """[(ending, verdict, reason)] of a model's files."""
    facts_path, said_path = (os.path.join(folder, name + end) for end in (".json", ".written.json"))
    if not (reuse and os.path.exists(facts_path)):
        pt2_files.write(name, folder)
    if not (reuse and os.path.exists(said_path)):
        said = write(name, folder)
        with open(said_path, "w", encoding="utf-8") as file:
            json.dump(said, file)
    with open(facts_path, encoding="utf-8") as file:
        facts = json.load(file)
    with open(said_path, encoding="utf-8") as file:
        said = json.load(file)
    found = []
    for ending in ENDINGS:
        try:
            if said[ending] is not None:
                found.append((ending, "not written", said[ending]))
                continue
            found.append((ending, "right", check(name, ending, command, folder, facts)))
        except Told as reason:
            found.append((ending, "told", str(reason)))
        except (Wrong, subprocess.TimeoutExpired) as reason:
            found.append((ending, "WRONG", str(reason)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", default="build/gcc/penstock")
    parser.add_argument("--folder", help="where models and jobs stay")
    parser.add_argument("--reuse", action="store_true", help="models that are there are not exported again")
    parser.add_argument("names", nargs="*", metavar="NAME", help="as check_pt2.py's")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts = {"right": 0, "told": 0, "WRONG": 0, "not written": 0, "not tried": 0}
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(options.folder or scratch)
        os.makedirs(folder, exist_ok=True)
        for name in options.names or pt2_models.ZOOS:
            try:
                found = one_model(name, os.path.abspath(options.penstock), folder, options.reuse)
            except Exception:  # torch.export's, or a fault of the check: the next models are tried all the same
                found = [("", "not tried", traceback.format_exc().strip().splitlines()[-1])]
            for ending, verdict, reason in found:
                counts[verdict] += 1
                print(f"{name + ending:30} {verdict}: {reason}", flush=True)
    print("files: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
