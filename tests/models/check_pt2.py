"""Exports models from PyTorch as .pt2, trains each for some steps here and there, and compares.

  check_pt2.py --penstock build/gcc/penstock [--folder FOLDER] [--table FILE] [NAME...]

The judge is PyTorch in double precision (pt2_compare.py says what may be off). For each model: what it predicts before
a training; its gradients; the losses of three steps and the state after one, of SGD with momentum and of AdamW; three
devices, which must have the bits of one. The model is then taken home (pt2_home.py), and exported once more with the
random rates that it comes with (pt2_chance.py).

In a folder that stays, what a model was found to be is kept, and a check that was stopped goes on where it was: with
the same program and the same scripts, nothing is computed twice. --table checks nothing, and writes what is kept.
"""
import argparse
import hashlib
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
import pt2_compare
import pt2_files
import pt2_home
import pt2_models
import pt2_table
from pt2_compare import Figure

WRITERS = ("pt2_files", "pt2_models", "pt2_oracle", "pt2_other", "pt2_text", "pt2_vision", "vision_models")


def digest(*paths):
    """Of the contents of files."""
    made = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            made.update(file.read())
    return made.hexdigest()[:16]


def scripts(names):
    here = os.path.dirname(os.path.abspath(__file__))
    return [os.path.join(here, name + ".py") for name in names]


def train(command, folder, name, facts, optimizer, steps, devices):
    """Losses of the steps, and the parameters after them."""
    out = os.path.join(folder, name, f"run_{optimizer}_{steps}_{devices}")
    shutil.rmtree(out, ignore_errors=True)
    path = os.path.join(folder, f"{name}.{optimizer}.{steps}.{devices}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(pt2_files.job_text(name, facts, optimizer, steps, devices, os.path.relpath(out, folder)))
    report = json.loads(pt2_home.run(command, "train", "--json", "--no-eval", path))
    found = pt2_home.read_safetensors(os.path.join(out, "parameters.safetensors"))
    return [step["loss"] for step in report["steps"]], found


def compare_evaluation(command, folder, name, arrays):
    """What the untrained model predicts."""
    path = os.path.join(folder, name, "evaluated.npy")
    pt2_home.run(command, "predict", "-q", os.path.join(folder, name + ".yaml"), "-o", path)
    right = arrays["evaluated.double"]
    scale = float(max(numpy.abs(right).max(initial=0), 1e-30))
    other = pt2_compare.distance(arrays["evaluated"], right) / scale
    return [Figure(pt2_compare.distance(numpy.load(path).reshape(right.shape), right) / scale, other,
                   max(pt2_compare.TOLERANCE, pt2_compare.OTHER * other), "what it predicts")]


def compare_devices(one, three, optimizer):
    """Losses and parameters of one device and of three, whose bits must be equal."""
    differ = [] if one[0] == three[0] else ["losses"]
    differ += [f"'{key}'" for key in sorted({*one[1], *three[1]})
               if key not in one[1] or key not in three[1] or one[1][key].tobytes() != three[1][key].tobytes()]
    return [Figure(float(len(differ)), 0, 0.5, f"{optimizer}: of one device and three, how many of "
                   f"{', '.join(differ)[:60]} differ")]


def compare_training(command, folder, judge):
    """Figures of gradients and trainings by column of the table; how many elements are open, and how many there are."""
    name, facts = judge.name, judge.facts
    _, after = train(command, folder, name, facts, "gradient", 1, 1)
    gradients = pt2_compare.gradients_of(after, judge)
    figures = {"gradient": pt2_compare.compare_gradients(gradients, judge), "devices": []}
    for optimizer in ("sgd", "adamw"):
        _, after = train(command, folder, name, facts, optimizer, 1, 1)
        figures[f"{optimizer} state"] = pt2_compare.compare_state(after, judge, optimizer)
        if optimizer == "adamw":
            closed, opened, open_count, total = pt2_compare.compare_adamw(after, judge)
            figures["adamw state"] += closed
            figures["adamw open"] = opened
            figures["adamw rule"] = pt2_compare.compare_rule(after, gradients, judge)
        one, three = (train(command, folder, name, facts, optimizer, 3, devices) for devices in (1, 3))
        figures[f"{optimizer} loss"] = pt2_compare.compare_losses(one[0], judge, optimizer)
        figures["devices"] += compare_devices(one, three, optimizer)
    return figures, open_count, total


def check(name, command, folder):
    """What is kept of a model: the worst figure of each column, what fails, its random rates."""
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        facts = json.load(file)
    arrays = dict(numpy.load(os.path.join(folder, name + ".npz")))
    judge = pt2_compare.Judge(name, folder, facts, arrays)
    figures, open_count, total = compare_training(command, folder, judge)
    figures["outputs"] = compare_evaluation(command, folder, name, arrays)
    figures |= pt2_home.compare(name, command, folder, facts)
    rates, wrong = pt2_chance.check(name, command, folder)
    wrong += [str(each) for each in sum(figures.values(), []) if not each.passes]
    return {"parameters": facts["parameters"], "roundings": len(judge.runs), "open": open_count, "elements": total,
            "figures": {key: pt2_compare.worst(each)._asdict() for key, each in figures.items() if each},
            "rates": rates, "wrong": wrong}


def keep(path, result):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    os.replace(path + ".new", path)


def kept(path, made_by=None):
    """What was kept, when it was made by the same, or by whatever."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    return result if made_by in (None, result.get("made_by")) else None


def one_model(name, command, folder, options):
    """What a model was found to be, now or before."""
    written_by = digest(*scripts(WRITERS)) + torch.__version__
    try:
        if not kept(os.path.join(folder, name + ".json"), written_by):
            pt2_files.write(name, folder, written_by)
    except Exception as reason:  # whatever the exporter says
        lines = str(reason).strip().splitlines() or [""]
        result = {"name": name, "refused": f"{type(reason).__name__}: {lines[0]}"}
        keep(os.path.join(folder, name + ".result.json"), result)
        return result
    if options.files_only:
        return {"name": name, "written": True}
    checked_by = digest(command, *scripts(("check_pt2", "pt2_compare", "pt2_home", "pt2_chance"))) + written_by
    path = os.path.join(folder, name + ".result.json")
    result = kept(path, checked_by)
    if result:
        return result
    try:
        result = check(name, command, folder)
    except (pt2_home.Differs, subprocess.TimeoutExpired) as reason:
        result = {"wrong": [str(reason)]}
    except Exception:  # a fault of the check: the next models are tried all the same
        result = {"wrong": [traceback.format_exc()]}
    result |= {"name": name, "made_by": checked_by, "program": digest(command), "pytorch": torch.__version__}
    keep(path, result)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", default="build/gcc/penstock")
    parser.add_argument("--folder", help="where models, jobs, and what was found stay")
    parser.add_argument("--table", metavar="FILE", help="writes what is kept in the folder as a table")
    parser.add_argument("--files-only", action="store_true", help="exports, and does not train")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(pt2_models.ZOOS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.names:
        if name not in pt2_models.ZOOS:
            parser.error(f"no model '{name}'; there are {', '.join(pt2_models.ZOOS)}")
    if options.table and not options.folder:
        parser.error("--table needs the folder in which results are kept")
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(options.folder or scratch)
        os.makedirs(folder, exist_ok=True)
        for name in options.names or pt2_models.ZOOS:
            if options.table:
                path = os.path.join(folder, name + ".result.json")
                results.append(kept(path) or {"name": name, "wrong": ["it was not checked"]})
                continue
            results.append(one_model(name, os.path.abspath(options.penstock), folder, options))
            print(pt2_table.line(results[-1]), flush=True)
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write(pt2_table.table(results))
    print(pt2_table.summary(results))
    return 0 if all(pt2_table.is_right(result) for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
