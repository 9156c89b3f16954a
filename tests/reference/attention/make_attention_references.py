#!/usr/bin/python3
"""What PyTorch makes of attentions whose masks are filled in: `filled.txt`, float64 throughout.

A line is a case: the fill, the causal mask beside the one of the data (none, the same fill before
it, -inf behind it), then y, dq, dk and dv, row-major. The second sequence is padded in front, as
keys and as queries, so that whole rows are hidden. Operand n (q, k, v, dy) holds sin(0.37 i + n)
times 1.5 at element i.
"""

import os

import torch

SHAPE = (2, 2, 4, 2)  # sequences, heads, rows, numbers
PADDED = 2  # rows in front of the second sequence


def operand(n):
    i = torch.arange(torch.tensor(SHAPE).prod().item(), dtype=torch.float64)
    return (1.5 * torch.sin(0.37 * i + n)).reshape(SHAPE)


def case(fill, causal):
    q, k, v = (operand(n).requires_grad_() for n in range(3))
    rows = torch.arange(SHAPE[2])
    real = torch.stack([rows >= 0, rows >= PADDED])
    hidden = ~(real[:, None, :, None] & real[:, None, None, :])
    behind = rows[None, :] > rows[:, None]
    scores = q @ k.transpose(-1, -2) * 0.7
    if causal == "same":
        scores = scores.masked_fill(behind, fill)
    scores = scores.masked_fill(hidden, fill)
    if causal == "hard":
        scores = scores.masked_fill(behind, -float("inf"))
    y = torch.softmax(scores, -1) @ v
    y.backward(operand(3))
    return [x.detach().flatten() for x in (y, q.grad, k.grad, v.grad)]


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "filled.txt")
    with open(path, "w", encoding="ascii") as file:
        for fill in (-1e4, -1e9, torch.finfo(torch.float32).min, -float("inf")):
            for causal in ("none", "same", "hard"):
                numbers = torch.cat(case(fill, causal)).tolist()
                text = " ".join(f"{x:.13g}" for x in numbers)
                file.write(f"{fill:.17g} {causal} {text}\n")


main()
