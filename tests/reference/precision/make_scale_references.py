#!/usr/bin/env python3
"""What trainings lose whose products are of float16, and with which scales of the loss.

    make_scale_references.py

Writes scales.txt beside itself, a line a model: its name, the losses of STEPS steps in float64 and in
float32, the scale with which the gradients of each step are made, and 1 for each step that is skipped.
Products are rounded as in make_precision_references.py, whose models and data these are. Scales are those
of torch.amp.GradScaler, which begins so high that the first steps are skipped, and comes there again.
Made with PyTorch 2.15.
"""
import torch
from torch import nn
from torch.nn import functional as f

import make_precision_references as precision
import reference_models

STEPS = 24
SCALES = {"mlp": 2.0 ** 20, "lenet": 2.0 ** 20, "gpt": 2.0 ** 22, "lstm": 2.0 ** 22}
EVERY = 4


def train(training, initial, dtype):
    start, inputs, labels, batch = training
    model, optimizer, clip = start(dtype)
    scaler = torch.amp.GradScaler("cpu", init_scale=initial, growth_interval=EVERY)
    losses, scales, skipped = [], [], []
    for step in range(STEPS):
        rows = slice(step * batch % len(inputs), step * batch % len(inputs) + batch)
        x = inputs[rows].to(dtype) if inputs.is_floating_point() else inputs[rows]
        loss = f.cross_entropy(model(x).flatten(0, -2), labels[rows].flatten())
        losses.append(loss.item())
        scales.append(scaler.get_scale())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()
        skipped.append(int(scaler.get_scale() < scales[-1]))
    return losses, scales, skipped


def main():
    torch.set_num_threads(1)
    precision.rounded = lambda x: x.float().half().to(x.dtype)
    precision.sequences.f.scaled_dot_product_attention = precision.causal
    trainings = {"mlp": precision.pictures("mlp", lambda: reference_models.Mlp([784, 32, 24, 10])),
                 "lenet": precision.pictures("lenet", reference_models.Lenet),
                 "gpt": precision.words("gpt"), "lstm": precision.words("lstm")}
    with open(precision.HERE / "scales.txt", "w", encoding="ascii") as file:
        for name, training in trainings.items():
            wide, scales, skipped = train(training, SCALES[name], torch.float64)
            single, again, also = train(training, SCALES[name], torch.float32)
            assert (scales, skipped) == (again, also), (name, scales, again)
            assert 0 < sum(skipped) < STEPS / 2, (name, skipped)
            row = [f"{x:.9g}" for x in wide + single + scales + skipped]
            file.write(" ".join([name] + row) + "\n")


if __name__ == "__main__":
    main()
