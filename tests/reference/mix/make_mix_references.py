#!/usr/bin/python3
"""Batches that torchvision's MixUp and CutMix make, of numbers of chance as augment_mix.h has them.

    make_mix_references.py FILE.npy

Needs torchvision. mixed.npy has float32 [case][5][3 * 6 * 7 + 4]: of each case of `cases`, the five
pictures of a batch, then the probabilities of their four classes.
"""
import math
import pathlib
import sys

import numpy as np
import torch
from torchvision.transforms import v2

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from counted import philox, stream  # noqa: E402

SEED, N, C, H, W, CLASSES = 11, 5, 3, 6, 7, 4
# mixup's alpha, cutmix's, epoch, batch
cases = [(0.2, 0, 0, 0), (0.4, 0, 3, 2), (1, 0, 0, 1), (8, 0, 1, 0), (0, 1, 0, 0), (0, 1, 2, 5),
         (0, 1, 1, 1), (0, 0.3, 4, 4), (1, 1, 0, 2), (1, 1, 0, 3), (1, 1, 0, 4), (1, 1, 0, 5)]


def numbers(epoch, batch):
    key = stream("mix", epoch, batch)

    def uniform(k):
        high, low = philox(SEED, key, k // 2)[2 * (k % 2):][:2]
        return ((high << 32 | low) >> 11) / 2.0**53
    return uniform


def power(base, exponent):
    whole = math.floor(exponent)
    bits, root, result = int((exponent - whole) * 2**24), base, 1.0
    for bit in reversed(range(24)):
        root = math.sqrt(root)
        if bits >> bit & 1:
            result *= root
    square = base
    while whole:
        if whole & 1:
            result *= square
        square, whole = square * square, whole >> 1
    return result


def beta(uniform, alpha):
    k = 6
    while True:
        x, y = 2 * uniform(k) - 1, 2 * uniform(k + 1) - 1
        if 0 < x * x + y * y <= 1:
            break
        k += 2
    t = (power(1 / (1 - uniform(3)), 1 / alpha) - 1) * (x * x / (x * x + y * y))
    half = 0.5 * math.sqrt(t / (1 + t))
    return 0.5 - half if uniform(2) < 0.5 else 0.5 + half


class Chosen:
    """In place of torchvision's own chance."""

    def __init__(self, values):
        self.values = values

    def sample(self, _):
        return self.values.pop(0)


def mix(mixup, cutmix, epoch, batch):
    uniform = numbers(epoch, batch)
    is_cut = cutmix > 0 and (mixup == 0 or uniform(1) < 0.5)
    share = beta(uniform, cutmix if is_cut else mixup)
    transform = (v2.CutMix if is_cut else v2.MixUp)(num_classes=CLASSES)
    transform._dist = Chosen([share])
    places = [uniform(4), uniform(5)]
    original = torch.randint
    torch.randint = lambda limit, size: torch.tensor([int(places.pop(0) * limit)])
    k = np.arange(C * H * W)
    pictures = np.float32([(k * 37 + i * 101) % 256 / 255 for i in range(N)]).reshape(N, C, H, W)
    labels = torch.tensor([i * 3 % CLASSES for i in range(N)])
    images, labels = transform(torch.from_numpy(pictures), labels)
    torch.randint = original
    return np.concatenate([images.numpy().reshape(N, -1), labels.numpy()], 1)


if __name__ == "__main__":
    np.save(sys.argv[1], np.float32([mix(*case) for case in cases]))
