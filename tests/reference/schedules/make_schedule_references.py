#!/usr/bin/env python3
"""Makes rates.txt and plateaus.txt: learning rates of PyTorch's schedulers.

  make_schedule_references.py     rewrites rates.txt beside this script

A line is, between tabs: steps in all, lr, learning_rate as a job says it, and the rate of each
step, in float64. Makes plateaus.txt as well: min or max, learning_rate as a job says it, of lr 0.1,
and pairs of an evaluation and the rate after it. Needs PyTorch; made with 2.15.
"""
import os
import warnings

import torch
from torch.optim import lr_scheduler as s

warnings.simplefilter("ignore")



def one_cycle(lr, steps, **options):
    return lambda o: s.OneCycleLR(o, lr, total_steps=steps, cycle_momentum=False, **options)


# steps, lr, what the job says, how PyTorch makes it of an optimizer; an epoch has 4 steps
CASES = [
    (12, 0.1, "one_cycle", one_cycle(0.1, 12)),
    (20, 0.4, "{one_cycle: {pct_start: 0.25, anneal_strategy: linear, div_factor: 10,"
     " final_div_factor: 100}}",
     one_cycle(0.4, 20, pct_start=0.25, anneal_strategy="linear", div_factor=10,
               final_div_factor=100)),
    (21, 0.01, "{one_cycle: {three_phase: true, pct_start: 0.4}}",
     one_cycle(0.01, 21, pct_start=0.4, three_phase=True)),
    (20, 0.3, "{one_cycle: {three_phase: true, anneal_strategy: linear}}",
     one_cycle(0.3, 20, anneal_strategy="linear", three_phase=True)),
    (1, 0.1, "one_cycle", one_cycle(0.1, 1)),
    (9, 0.2, "polynomial", lambda o: s.PolynomialLR(o, 9)),
    (15, 0.2, "{polynomial: {power: 2.5}}", lambda o: s.PolynomialLR(o, 15, 2.5)),
    (14, 0.1, "{chained: [{schedule: polynomial, length: 6 steps},"
     " {schedule: constant, scale: 0.25}]}",
     lambda o: s.SequentialLR(o, [s.PolynomialLR(o, 6), s.ConstantLR(o, 0.25, 100)], [6])),
    (17, 0.5, "{chained: [{schedule: {linear: {final: 0.5}}, scale: 0.2, length: 1 epoch},"
     " {schedule: {step: {every: 2 steps, factor: 0.5}}, length: 5 steps}, {schedule: cosine}]}",
     lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.2, 1.0, 4), s.StepLR(o, 2, 0.5),
                                  s.CosineAnnealingLR(o, 8)], [4, 9])),
    (16, 0.1, "{chained: [{schedule: constant, scale: 0.1, length: 2 steps},"
     " {schedule: one_cycle, length: 10 steps}, {schedule: constant, scale: 0.001}]}",
     None),
]


def rates(lr, make, steps):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=lr)
    scheduler = make(optimizer)
    found = []
    for step in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if step + 1 < steps:
            scheduler.step()
    return found


# job's plateau, PyTorch's, mode, evaluations
PLATEAUS = [
    ("plateau", {}, "min", [1.0, 0.9] + [0.9] * 12 + [0.95] * 12),
    ("{plateau: {factor: 0.5, patience: 1, threshold: 0.05}}", dict(factor=0.5, patience=1, threshold=0.05), "min",
     [2.0, 1.95, 1.92, 1.8, 1.75, 1.72, 1.71, 1.70, 1.6, 1.61, 1.62, 1.63, 1.64, 1.65]),
    ("{plateau: {factor: 0.3, patience: 2, threshold: 0.01, threshold_mode: abs, cooldown: 3, min_lr: 0.004}}",
     dict(factor=0.3, patience=2, threshold=0.01, threshold_mode="abs", cooldown=3, min_lr=0.004), "max",
     [0.1, 0.2, 0.205, 0.209, 0.21, 0.21, 0.3] + [0.3, 0.2, 0.29] * 8),
    ("{plateau: {patience: 0, factor: 0.01}}", dict(patience=0, factor=0.01), "max", [0.5] * 8),
]


def plateau_rates(lr, options, mode, values):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler = s.ReduceLROnPlateau(optimizer, mode=mode, **options)
    found = []
    for value in values:
        optimizer.step()
        scheduler.step(value)
        found.append(optimizer.param_groups[0]["lr"])
    return found


def write(name, lines):
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def main():
    lines = []
    for steps, lr, job, make in CASES:
        if make is None:  # a OneCycleLR in a SequentialLR changes the rates of the others
            cycle = rates(lr, one_cycle(lr, 10), 10)
            found = [lr * 0.1] * 2 + cycle + [lr * 0.001] * 4
        else:
            found = rates(lr, make, steps)
        lines.append("\t".join([str(steps), str(lr), job, " ".join(f"{r:.17g}" for r in found)]))
    write("rates.txt", lines)
    lines = []
    for job, options, mode, values in PLATEAUS:
        pairs = zip(values, plateau_rates(0.1, options, mode, values))
        lines.append("\t".join([mode, job, " ".join(f"{v:.17g} {r:.17g}" for v, r in pairs)]))
    write("plateaus.txt", lines)


if __name__ == "__main__":
    main()
