"""Random rates: what a model with the rates that it comes with drops, and that it drops nothing in evaluation.

Each kind of dropout in the model's file, with its rate, is exported alone, and drops from DRAWS numbers that are
parameters. What it does is seen by the gradient of their mean: 0 where it drops, another number where it does not.
Penstock and PyTorch must drop shares that are within four standard deviations of the rate, and what is left must have
the same gradient in both, for each number the same one. The mean itself tells what stands for what is dropped.
"""
import functools
import json
import os
import shutil
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as operators

import pt2_files
import pt2_home
import pt2_models

SIDE = 128
DRAWS = SIDE * SIDE
DROPOUTS = {"aten.dropout.default": "plain", "aten.dropout_.default": "in_place",
            "aten.feature_dropout.default": "feature", "aten.alpha_dropout.default": "alpha",
            "aten.feature_alpha_dropout.default": "feature_alpha"}
CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn_tanh": nn.RNN, "rnn_relu": nn.RNN}
BEGIN = 0.75
TOLERANCE = 1e-5
STEPS = "12"  # at small rates one step may well drop nothing
SUM = 1e-4  # of so many numbers that are added in single precision


def cell_layers(kind, rate):
    """Two layers of a recurrent network whose states do not mix: each number of the first goes to its own of the
    second, and what is dropped between them is seen by it alone."""
    options = {"nonlinearity": kind.split("_")[1]} if kind.startswith("rnn") else {}
    layers = CELLS[kind](SIDE, SIDE, num_layers=2, dropout=rate, **options)
    gates = layers.weight_hh_l0.shape[0] // SIDE
    with torch.no_grad():
        for name, value in layers.named_parameters():
            value.copy_(torch.eye(SIDE).repeat(gates, 1) * 0.5 if "weight" in name else torch.full_like(value, 0.1))
    return layers.requires_grad_(False)


def attention(ones, rate):
    """Every key has the same share of one query, and the numbers are the values."""
    value = ones.reshape(1, 1, DRAWS, 1)
    return operators.scaled_dot_product_attention(torch.zeros(1, 1, 1, 1), torch.zeros_like(value), value,
                                                   dropout_p=rate)


def floor(ones, rate):
    """As transformers and others drop paths: a rate of 0 leaves all."""
    kept = 1 - rate
    return ones.div(kept) * (kept + torch.rand(DRAWS)).floor_() if rate else ones


def channels(ones):
    """A channel of four numbers for each: one is dropped with the others."""
    return ones.reshape(1, DRAWS, 1, 1).expand(-1, -1, 2, 2)


KINDS = {
    "plain": operators.dropout,
    "in_place": lambda ones, rate: operators.dropout(ones * 1.0, rate, inplace=True),
    "feature": lambda ones, rate: operators.dropout2d(channels(ones), rate),
    "alpha": lambda ones, rate: operators.alpha_dropout(ones, rate, training=True),
    "feature_alpha": lambda ones, rate: operators.feature_alpha_dropout(channels(ones), rate, training=True),
    "attention": attention,
    "bernoulli": lambda ones, rate: ones * torch.empty(DRAWS).bernoulli_(1 - rate).div_(1 - rate),
    "floor": floor,
}


class Probe(nn.Module):
    """The mean of what a dropout makes of equal numbers that are parameters."""

    def __init__(self, kind, rate):
        super().__init__()
        self.weight = nn.Parameter(torch.full((DRAWS,), BEGIN))
        self.kind, self.rate = kind, rate
        self.layers = cell_layers(kind, rate) if kind in CELLS else None

    def elements(self, x):
        """What each number becomes; of attention, their mean."""
        numbers = self.weight + 0.0 * x.mean()
        if self.layers is None:
            return KINDS[self.kind](numbers, self.rate)
        states = torch.stack([numbers.reshape(SIDE, SIDE), torch.zeros(SIDE, SIDE)])
        begin = (states, torch.zeros_like(states)) if self.kind == "lstm" else states
        return self.layers(torch.zeros(1, SIDE, SIDE), begin)[0]

    def forward(self, x):
        return self.elements(x).mean().reshape(1)


def floor_rate(node):
    """1 - p where uniform numbers are added to p and rounded down, as pt2_dropout.c knows it."""
    for user in node.users:
        numbers = [a for a in user.args if isinstance(a, float)]
        if str(user.target).startswith("aten.add") and numbers:
            return round(1 - numbers[0], 9)
    return None


def kind_of(node):
    """(kind, rate) of what a node drops; (target, None) of one that is random in another way; None of all others."""
    target = str(node.target)
    operator = target.split(".")[1] if target.startswith("aten.") else ""
    numbers = [a for a in [*node.args[1:], *node.kwargs.values()] if isinstance(a, float)]
    if target in DROPOUTS:
        return DROPOUTS[target], float(node.args[1] if len(node.args) > 1 else numbers[0])
    if operator == "scaled_dot_product_attention":
        return "attention", float(node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0))
    if operator in CELLS:
        return operator, float(numbers[0])
    if target == "aten.bernoulli_.float":
        return "bernoulli", round(1 - numbers[0], 9)
    if operator in ("rand", "rand_like") and floor_rate(node) is not None:
        return "floor", floor_rate(node)
    is_random = any(word in operator for word in ("dropout", "rand", "bernoulli", "multinomial", "normal", "uniform"))
    return (target, None) if is_random else None


def kinds_of(program):
    """{(kind, rate)} of what a program drops."""
    kinds = set()
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            kinds.add(kind_of(node))
    return {kind for kind in kinds - {None} if kind[1] != 0}


def factors_of(moved):
    """(share that is dropped, what is left is multiplied with, how far that varies) of gradients."""
    kept = moved[numpy.abs(moved) > 1e-6]
    return 1 - len(kept) / DRAWS, float(kept.mean()), float(numpy.abs(kept - kept.mean()).max())


def probe_theirs(kind, rate):
    """What PyTorch does: (share, factor, spread), what is left and what is dropped, and the mean without dropping."""
    torch.manual_seed(11)
    model = Probe(kind, rate).train()
    elements = model.elements(torch.ones(1, 4))
    elements.mean().backward()
    moved = model.weight.grad.numpy() * DRAWS
    found, is_kept = factors_of(moved), numpy.abs(moved) > 1e-6
    values = elements.detach().numpy().reshape(DRAWS, -1)[:, 0] if kind != "attention" else found[1] * BEGIN * is_kept
    with torch.no_grad():
        quiet = Probe(kind, 0.0)(torch.ones(1, 4)).item()
    left, dropped = float(values[is_kept].mean(dtype="f8")), float(values[~is_kept].mean(dtype="f8"))
    return found, (left, dropped), quiet


def probe_ours(kind, rate, command, folder):
    """What Penstock does in a step: (share, factor, spread), the loss; and what it predicts."""
    name = f"probe_{kind}_{rate:g}"
    file = os.path.join(folder, name)
    torch.export.save(torch.export.export(Probe(kind, rate).train(), (torch.ones(1, 4),)), file + ".pt2")
    os.makedirs(file, exist_ok=True)
    numpy.save(os.path.join(file, "x.npy"), numpy.ones((1, 4), "f4"))
    numpy.save(os.path.join(file, "labels.npy"), numpy.zeros((1,), "f4"))
    facts = {"inputs": ["x"], "loss": "output", "class_axis": -1, "batch": 1}
    text = pt2_files.job_text(name, facts, "gradient", 1, 1, name + "/run")
    with open(file + ".yaml", "w", encoding="utf-8") as job:
        job.write(text.replace(f", labels: {name}/labels.npy", ""))
    shutil.rmtree(file + "/run", ignore_errors=True)
    pt2_home.run(command, "predict", "-q", file + ".yaml", "-o", file + "/quiet.npy")
    report = json.loads(pt2_home.run(command, "train", "--json", "--no-eval", file + ".yaml"))
    after = pt2_home.read_safetensors(os.path.join(file, "run", "parameters.safetensors"))["weight"]
    moved = (BEGIN - after.astype("f8")) / pt2_files.GRADIENT_RATE * DRAWS
    return factors_of(moved), report["steps"][0]["loss"], float(numpy.load(file + "/quiet.npy").ravel()[0])


@functools.cache
def probe(kind, rate, command, folder):
    """(how a kind of dropout is in both, as text; what is wrong)."""
    theirs, (left, dropped), quiet = probe_theirs(kind, rate)
    ours, loss, predicted = probe_ours(kind, rate, command, folder)
    spread = 4 * (rate * (1 - rate) / DRAWS) ** 0.5
    mean = (1 - ours[0]) * left + ours[0] * dropped
    checks = {"the share that is dropped": abs(ours[0] - rate) <= spread,
              "the share that PyTorch drops": abs(theirs[0] - rate) <= spread,
              "the factor of what is left": abs(ours[1] / theirs[1] - 1) <= TOLERANCE,
              "how far that factor varies": ours[2] <= TOLERANCE * abs(theirs[1]),
              "what stands for what is dropped": abs(loss - mean) <= SUM * abs(left),
              "what is predicted": abs(predicted / quiet - 1) <= TOLERANCE}
    text = (f"{kind} {rate:g} (share {ours[0]:.4f}, PyTorch's {theirs[0]:.4f}; factor {ours[1]:.6f}, PyTorch's "
            f"{theirs[1]:.6f})")
    return text, [f"{text}: {key}" for key, is_right in checks.items() if not is_right]


def check(name, command, folder):
    """(what the model drops at the rates that it comes with, what is wrong)."""
    pose = pt2_models.build(name, rates=True)
    try:
        program = pt2_models.export(pose)
    except Exception as reason:  # whatever the exporter says
        return f"PyTorch does not export them ({type(reason).__name__})", []
    kinds = kinds_of(program)
    file = os.path.join(folder, name + ".rates")
    torch.export.save(program, file + ".pt2")
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as text:
        facts = json.load(text)
    with open(file + ".yaml", "w", encoding="utf-8") as job:
        job.write(pt2_files.job_text(name, {**facts, "file": name + ".rates.pt2"}, "sgd", 1))
    wrong = compare_runs(name, command, folder, bool(kinds))
    for kind, rate in sorted(kinds, key=str):
        wrong += [f"{kind} is random, and not known"] if rate is None else probe(kind, rate, command, folder)[1]
    return ", ".join(f"{kind} {rate:g}" for kind, rate in sorted(kinds, key=str) if rate) or "none", wrong


def compare_runs(name, command, folder, drops):
    """What is wrong: at its rates the model trains, to other losses than without where it drops, and evaluates as
    without."""
    losses, outputs = [], []
    for each in (name, name + ".rates"):
        job = os.path.join(folder, each + ".yaml")
        losses.append(json.loads(pt2_home.run(command, "train", "--json", "--no-eval", "--steps", STEPS, job)))
        made = os.path.join(folder, name, "rates.npy")
        pt2_home.run(command, "predict", "-q", job, "-o", made)
        outputs.append(numpy.load(made))
    quiet, loud = ([step["loss"] for step in report["steps"]] for report in losses)
    wrong = []
    if drops == (quiet == loud):
        wrong.append(f"at its own rates the last loss is {loud[-1]:.8g}, without {quiet[-1]:.8g}")
    if not numpy.array_equal(*outputs):
        wrong.append(f"at its own rates, evaluation differs by {numpy.abs(outputs[0] - outputs[1]).max():.1e}")
    return wrong


def main():
    """Each kind at three rates:  pt2_chance.py PENSTOCK FOLDER"""
    command, folder, failed = os.path.abspath(sys.argv[1]), sys.argv[2], 0
    for kind in (*KINDS, *CELLS):
        for rate in (0.1, 0.3, 0.5):
            text, wrong = probe(kind, rate, command, folder)
            print(text, *wrong, sep="\n    FAILED: ", flush=True)
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
