"""How a training is compared with PyTorch's: errors against double precision, and what is allowed.

What Penstock computes may be off by TOLERANCE of its scale, or by OTHER times what PyTorch in single precision is off
there: the worst of up to seven runs, of which all but one have weights that are rounded otherwise. Every other one of
these has two threads, as PyTorch has at most users': it then convolves by 1 x 1 with oneDNN, as Penstock does, and
rounds more than with one thread. No element is left out.

AdamW divides a gradient by its own size. Where a gradient is as small as its rounding, the step is chance, in PyTorch
as here. So each element may be off by TOLERANCE, and by as far as AdamW's rule moves it when its gradient moves by
OTHER times the error of PyTorch's. Elements for which that is more than TOLERANCE are called open, and counted. The
rule itself is held to RULE in all elements, from the gradient that Penstock has.
"""
import typing

import numpy

import pt2_files
import pt2_oracle

TOLERANCE = 1e-5
RULE = 1e-6
OTHER = 2
SMALL = 1e-6  # of the largest gradient of the model: one that is smaller is told as a share of this
EPSILON = 1e-8  # of AdamW
ROUNDINGS = (2, 6)  # other roundings of the weights: so many first, then so many in all


class Figure(typing.NamedTuple):
    """An error, what PyTorch in single precision is off, what is allowed, and of what."""
    error: float
    other: float
    allowed: float
    where: str

    @property
    def passes(self):
        return self.error <= self.allowed

    def __str__(self):
        return f"{self.where}: error {self.error:.1e}, allowed {self.allowed:.1e}, PyTorch's {self.other:.1e}"


def worst(figures):
    return max(figures, key=lambda each: each.error / each.allowed if each.error == each.error else float("inf"))


def distance(found, right):
    """The largest difference; infinite where something is not a number."""
    off = float(numpy.abs(found.astype("f8") - right).max(initial=0))
    return off if off == off else float("inf")


class Judge:
    """What PyTorch makes of a model: in double precision, and its errors in single precision."""

    def __init__(self, name, folder, facts, arrays):
        self.name, self.folder, self.facts, self.arrays = name, folder, facts, arrays
        self.runs = [(facts["losses"], arrays)]
        self.gradients = {key.removeprefix("gradient.double."): value for key, value in arrays.items()
                          if key.startswith("gradient.double.")}
        self.largest = max((numpy.abs(value).max(initial=0) for value in self.gradients.values()), default=0)

    def widen(self):
        """Whether there are more roundings than before: they take a while, so they are made when they are wanted."""
        more = [count for count in ROUNDINGS if count >= len(self.runs)]
        if more:
            self.runs += pt2_files.roundings(self.name, self.folder, more[0])[len(self.runs) - 1:]
        return bool(more)

    def figure(self, error, other, where, tolerance=TOLERANCE):
        """`other` gives PyTorch's error of a run, (losses, arrays)."""
        theirs = max(other(run) for run in self.runs)
        while error > max(tolerance, OTHER * theirs) and self.widen():
            theirs = max(other(run) for run in self.runs)
        return Figure(error, theirs, max(tolerance, OTHER * theirs), where)

    def noise(self, name):
        """What the elements of a gradient are off in PyTorch's single precision: as much as the worst of them, but
        nothing where it is 0 in all runs, as of a word that is not there."""
        right, runs = self.gradients[name], [arrays[f"gradient.single.{name}"] for _, arrays in self.runs]
        is_zero = numpy.logical_and.reduce([run == 0 for run in (right, *runs)])
        return numpy.where(is_zero, 0.0, max(distance(run, right) for run in runs))


def compare_losses(found, judge, optimizer):
    return [judge.figure(abs(ours / right - 1),
                         lambda run, at=step, right=right: abs(run[0][f"{optimizer}.single"][at] / right - 1),
                         f"{optimizer}: loss of step {step + 1}")
            for step, (ours, right) in enumerate(zip(found, judge.facts["losses"][f"{optimizer}.double"], strict=True))]


def gradients_of(after, judge):
    """Gradients, from what a step of GRADIENT_RATE leaves."""
    return {name: (judge.arrays[f"initial.{name}"].astype("f8") - after[name]) / pt2_files.GRADIENT_RATE
            for name in judge.gradients if name in after}


def compare_gradients(found, judge):
    figures = []
    for name, right in judge.gradients.items():
        if name not in found:
            figures.append(Figure(float("inf"), 0, TOLERANCE, f"the gradient of '{name}', which is missing"))
            continue
        scale = float(max(numpy.abs(right).max(initial=0), SMALL * judge.largest, 1e-30))
        figures.append(judge.figure(
            distance(found[name], right) / scale,
            lambda run, key=f"gradient.single.{name}", right=right, scale=scale: distance(run[1][key], right) / scale,
            f"the gradient of '{name}'"))
    return figures


def unknown(found, judge, optimizer):
    """Figures of names that only one of both has. What PyTorch does not change need not be among the parameters, nor
    the other names of tied ones: pt2_home.py asks for these."""
    beginning = f"{optimizer}.double."
    names = {key.removeprefix(beginning): value.tobytes() for key, value in judge.arrays.items()
             if key.startswith(beginning)}
    known = {names[name] for name in found if name in names}
    changed = {name for name in set(names) - set(found)
               if names[name] not in known and names[name] != judge.arrays[f"initial.{name}"].tobytes()}
    return [Figure(float("inf"), 0, TOLERANCE, f"{optimizer}: '{name}', which only one of both has")
            for name in sorted(changed | (set(found) - set(names)))]


def states(found, judge, optimizer):
    """(name, ours, PyTorch's, scale) of each parameter and buffer after a step."""
    for name, ours in found.items():
        right = judge.arrays.get(f"{optimizer}.double.{name}")
        if right is not None and ours.shape == right.shape:
            yield name, ours, right, float(max(numpy.abs(right).max(initial=0), 1e-5))
        elif right is not None:
            raise ValueError(f"'{name}' is {ours.shape}, expected {right.shape}")


def compare_state(found, judge, optimizer):
    """Parameters and buffers after a step; of AdamW, those that have a gradient are compare_adamw's."""
    return unknown(found, judge, optimizer) + [
        judge.figure(distance(ours, right) / scale,
                     lambda run, key=f"{optimizer}.single.{name}", right=right, scale=scale:
                     distance(run[1][key], right) / scale, f"{optimizer}: '{name}' after a step")
        for name, ours, right, scale in states(found, judge, optimizer)
        if optimizer != "adamw" or name not in judge.gradients]


def adamw_moves(gradient):
    return pt2_oracle.ADAMW["lr"] * gradient / (numpy.abs(gradient) + EPSILON)


def adamw_reach(gradient, noise):
    """How far the first step of AdamW moves when its gradient moves by noise."""
    gradient, moves = gradient.astype("f8"), adamw_moves(gradient.astype("f8"))
    return numpy.maximum(adamw_moves(gradient + noise) - moves, moves - adamw_moves(gradient - noise))


def adamw_figures(name, off, allowed, is_open, scale, judge):
    """The element that is nearest to what it may be off, and of the open ones, the one that is."""
    figures = []
    for chosen, kind in ((~is_open, ""), (is_open, ", open")):
        if not chosen.any():
            continue
        at = numpy.unravel_index(numpy.where(chosen, numpy.nan_to_num(off / allowed, nan=numpy.inf), -1).argmax(),
                                 off.shape)
        right = judge.arrays[f"adamw.double.{name}"][at]
        other = max(abs(float(arrays[f"adamw.single.{name}"][at]) - float(right)) for _, arrays in judge.runs)
        figures.append(Figure(float(off[at] / scale), float(other / scale), float(allowed[at] / scale),
                              f"adamw: '{name}' at {[int(i) for i in at]} after a step{kind}"))
    return figures


def compare_adamw(found, judge):
    """(figures, those of open elements, how many are open, how many there are) of parameters after a step of AdamW."""
    figures, open_count, total = [], 0, 0
    for name, ours, right, scale in states(found, judge, "adamw"):
        if name not in judge.gradients:
            continue
        off = numpy.abs(ours.astype("f8") - right)
        while True:
            reach = adamw_reach(judge.gradients[name], OTHER * judge.noise(name))
            if (off <= TOLERANCE * scale + reach).all() or not judge.widen():
                break
        is_open = reach > TOLERANCE * scale
        open_count, total = open_count + int(is_open.sum()), total + is_open.size
        figures += adamw_figures(name, off, TOLERANCE * scale + reach, is_open, scale, judge)
    return ([each for each in figures if not each.where.endswith("open")],
            [each for each in figures if each.where.endswith("open")], open_count, total)


def compare_rule(found, gradients, judge):
    """AdamW's rule in all elements: what it makes of Penstock's own gradients."""
    figures = []
    for name, gradient in gradients.items():
        before = judge.arrays[f"initial.{name}"].astype("f8")
        right = before * (1 - pt2_oracle.ADAMW["lr"] * pt2_oracle.ADAMW["weight_decay"]) - adamw_moves(gradient)
        scale = float(max(numpy.abs(right).max(initial=0), 1e-5))
        figures.append(Figure(distance(found[name], right) / scale, 0, RULE, f"adamw: the rule for '{name}'"))
    return figures
