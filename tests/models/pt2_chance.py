"""Random rates: what a model with the rates that it comes with drops, and that it drops nothing in evaluation.

What a dropout does is seen by the gradient of its input: with y = dropout(w) and the loss mean(y), a step of SGD with
the rate -1 times the number of elements moves w by what it was multiplied with. So each kind of dropout in the
model's file, with its rate, is exported alone and trained for one step.
"""
import json
import os
import shutil

import numpy
import torch
from torch import nn

import pt2_files
import pt2_home
import pt2_models

DRAWS = 16384
DROPOUTS = {"aten.dropout.default": "plain", "aten.dropout_.default": "in_place",
            "aten.feature_dropout.default": "feature"}


class Differs(Exception):
    pass


class Probe(nn.Module):
    """The mean of what a dropout makes of ones that are parameters."""

    def __init__(self, target, rate):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(DRAWS))
        self.target, self.rate = target, rate

    def forward(self, x):
        ones = self.weight + 0.0 * x.mean()
        if self.target == "attention":  # every key has the same share of one query, and the weights are values
            value = ones.reshape(1, 1, DRAWS, 1)
            made = nn.functional.scaled_dot_product_attention(torch.zeros(1, 1, 1, 1), torch.zeros_like(value), value,
                                                              dropout_p=self.rate)
            return made.reshape(1)
        if self.target == "bernoulli":
            return (ones * torch.empty(DRAWS).bernoulli_(1 - self.rate).div_(1 - self.rate)).mean().reshape(1)
        if self.target == "feature":
            return nn.functional.dropout2d(ones.reshape(1, DRAWS, 1, 1), self.rate).mean().reshape(1)
        if self.target == "in_place":
            return nn.functional.dropout(ones * 1.0, self.rate, inplace=True).mean().reshape(1)
        return nn.functional.dropout(ones, self.rate).mean().reshape(1)


def kinds_of(program):
    """{(kind, rate)} of what a program drops, and targets that are random and none of these."""
    kinds, others = set(), set()
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            target = str(node.target)
            arguments = [*node.args[1:], *node.kwargs.values()]
            numbers = [a for a in arguments if isinstance(a, float)]
            if target in DROPOUTS:
                kinds.add((DROPOUTS[target], float(arguments[0])))
            elif target == "aten.bernoulli_.float":
                kinds.add(("bernoulli", round(1 - numbers[0], 9)))
            elif target == "aten.scaled_dot_product_attention.default":
                rate = node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)
                kinds.add(("attention", float(rate)))
            elif any(word in target for word in ("alpha_dropout", "rand", "bernoulli", "multinomial")):
                others.add(target)
            elif target.split(".")[1:2] in (["lstm"], ["gru"], ["rnn_tanh"], ["rnn_relu"]) and numbers and numbers[0]:
                others.add(f"{target} with dropout {numbers[0]:g}")
    return {kind for kind in kinds if kind[1] > 0}, others


def probe(kind, rate, command, folder):
    """Trains the probe of a kind of dropout; the share of what was dropped and the scale of what was not."""
    name = f"probe_{kind}_{rate:g}"
    file = os.path.join(folder, name)
    model = Probe(kind, rate).train()
    torch.export.save(torch.export.export(model, (torch.ones(1, 4),)), file + ".pt2")
    os.makedirs(file, exist_ok=True)
    numpy.save(os.path.join(file, "x.npy"), numpy.ones((1, 4), "f4"))
    numpy.save(os.path.join(file, "labels.npy"), numpy.zeros((1,), "f4"))
    facts = {"inputs": ["x"], "loss": "output", "class_axis": -1, "batch": 1}
    text = pt2_files.job_text(name, facts, "sgd", 1, 1, name + "/run")
    text = text.replace(f", labels: {name}/labels.npy", "").replace(pt2_files.RULES["sgd"], f"{{sgd: {{lr: {DRAWS}}}}}")
    with open(file + ".yaml", "w", encoding="utf-8") as job:
        job.write(text)
    shutil.rmtree(file + "/run", ignore_errors=True)
    pt2_home.run(command, "train", "-q", "--no-eval", file + ".yaml")
    after = pt2_home.read_safetensors(os.path.join(file, "run", "parameters.safetensors"))["weight"]
    factors = 1 - after
    kept = factors[numpy.abs(factors) > 1e-4]
    return 1 - len(kept) / DRAWS, kept


def check(name, command, folder):
    """What the model drops at the rates that it comes with, as a part of its line."""
    pose = pt2_models.build(name, rates=True)
    try:
        program = pt2_models.export(pose)
    except Exception as reason:  # whatever the exporter says
        return f"rates: PyTorch does not export them ({type(reason).__name__})"
    kinds, others = kinds_of(program)
    file = os.path.join(folder, name + ".rates")
    torch.export.save(program, file + ".pt2")
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as text:
        facts = json.load(text)
    with open(file + ".yaml", "w", encoding="utf-8") as job:
        job.write(pt2_files.job_text(name, {**facts, "file": name + ".rates.pt2"}, "sgd", 1))
    compare_runs(name, command, folder, bool(kinds or others))
    for kind, rate in sorted(kinds):
        share, kept = probe(kind, rate, command, folder)
        spread = 4 * (rate * (1 - rate) / DRAWS) ** 0.5
        if abs(share - rate) > spread or numpy.abs(kept * (1 - rate) - 1).max() > 1e-3:
            raise Differs(f"{kind} dropout of {rate:g}: {share:.4f} are dropped, the others are multiplied with "
                          f"{kept.min():.4f} to {kept.max():.4f}")
    told = ", ".join(f"{kind} {rate:g}" for kind, rate in sorted(kinds)) or "none"
    return f"rates {told}" + (f" and {', '.join(sorted(others))}" if others else "")


def compare_runs(name, command, folder, drops):
    """At its rates the model trains, to another loss than without where it drops, and evaluates as without."""
    losses, outputs = [], []
    for each in (name, name + ".rates"):
        job = os.path.join(folder, each + ".yaml")
        losses.append(json.loads(pt2_home.run(command, "train", "--json", "--no-eval", "--steps", "1", job)))
        made = os.path.join(folder, name, "rates.npy")
        pt2_home.run(command, "predict", "-q", job, "-o", made)
        outputs.append(numpy.load(made))
    quiet, loud = (report["steps"][0]["loss"] for report in losses)
    if drops == (quiet == loud):
        raise Differs(f"at its own rates the loss is {loud:.8g}, without {quiet:.8g}")
    if not numpy.array_equal(*outputs):
        raise Differs(f"at its own rates, evaluation differs by {numpy.abs(outputs[0] - outputs[1]).max():.1e}")
