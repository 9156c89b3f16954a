#!/usr/bin/python3
"""What chance does to pictures, in numpy: the reference of scheduler/data/augment.

    make_augment_references.py FILE.npy

Written from the description in augment_draw.h and torchvision's manual. The file has float32
[case][pair][3][6][7]: each case of `cases` for the pairs (epoch, example) of `pairs`.
"""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from counted import philox, stream  # noqa: E402

F = np.float32
SEED, C, H, W = 11, 3, 6, 7
MEAN, STD = F([0.4, 0.5, 0.6]), F([0.25, 0.5, 0.2])
pairs = [(0, 0), (0, 4), (3, 4), (7, 1)]


def picture(example):
    """Element k of example i is ((k * 37 + i * 101) mod 256) / 255."""
    k = np.arange(C * H * W)
    return F((k * 37 + example * 101) % 256 / 255).reshape(C, H, W)


class Dice:
    def __init__(self, epoch, step, example):
        self.stream, self.first = stream("augment", epoch, step), example * 64

    def uniform(self, k):
        high, low = philox(SEED, self.stream, self.first + k // 2)[2 * (k % 2):][:2]
        return ((high << 32 | low) >> 11) / 2.0**53

    def below(self, k, limit):
        return int(self.uniform(k) * limit)


def attempt(dice, k, scale, ratio, width, height, margin):
    area = width * height * (scale[0] + dice.uniform(k) * (scale[1] - scale[0]))
    root, power, bits = ratio[1] / ratio[0], 1.0, int(dice.uniform(k + 1) * 2**24)
    for bit in reversed(range(24)):
        root = np.sqrt(root)
        if bits >> bit & 1:
            power = power * root
    shape = ratio[0] * power
    w, h = (int(np.floor(np.sqrt(x) + 0.5)) for x in (area * shape, area / shape))
    if not (1 <= w <= width - margin and 1 <= h <= height - margin):
        return None
    return dice.below(k + 2, width - w + 1), dice.below(k + 3, height - h + 1), w, h


def weights(size, out):
    """[out][size]: triangles, as wide as a pixel of the larger side."""
    scale = size / out
    support = max(scale, 1.0)
    rows = np.zeros((out, size), F)
    for i in range(out):
        centre = (i + 0.5) * scale
        first, last = int(max(centre - support + 0.5, 0)), int(min(centre + support + 0.5, size))
        row = [max(0.0, 1 - abs(x + 0.5 - centre) / support) for x in range(first, last)]
        total = 0.0
        for value in row:
            total += value
        rows[i, first:last] = F(np.array(row) / total)
    return rows


def resize(x, height, width):
    across, down = weights(x.shape[2], width), weights(x.shape[1], height)
    rows = np.zeros((x.shape[0], x.shape[1], width), F)
    for i in range(width):
        for k in range(x.shape[2]):
            rows[:, :, i] += across[i, k] * x[:, :, k]
    out = np.zeros((x.shape[0], height, width), F)
    for y in range(x.shape[1]):
        for i in range(height):
            out[:, i, :] += down[i, y] * rows[:, y, :]
    return out


def random_crop(x, dice, normal, padding=2, fill=0.0):
    value = (F(fill) - normal[0]) / normal[1]
    wide = np.broadcast_to(value[:, None, None], (C, H + 2 * padding, W + 2 * padding)).copy()
    wide[:, padding:padding + H, padding:padding + W] = x
    top, left = dice.below(0, 2 * padding + 1), dice.below(1, 2 * padding + 1)
    return wide[:, top:top + H, left:left + W]


def random_resized_crop(x, dice, normal, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)):
    for i in range(10):
        box = attempt(dice, 4 * i, scale, ratio, W, H, 0)
        if box:
            break
    else:
        w, h = W, H
        if W / H < ratio[0]:
            h = int(np.floor(W / ratio[0] + 0.5))
        elif W / H > ratio[1]:
            w = int(np.floor(H * ratio[1] + 0.5))
        box = (W - w) // 2, (H - h) // 2, w, h
    left, top, w, h = box
    return resize(x[:, top:top + h, left:left + w], H, W)


def horizontal_flip(x, dice, normal, probability=0.5):
    return x[:, :, ::-1] if dice.uniform(0) < probability else x


def vertical_flip(x, dice, normal, probability=0.5):
    return x[:, ::-1] if dice.uniform(0) < probability else x


def color_jitter(x, dice, normal, brightness=0.0, contrast=0.0, saturation=0.0):
    order = [0, 1, 2]
    for k, i in ((3, 2), (4, 1)):
        j = dice.below(k, i + 1)
        order[i], order[j] = order[j], order[i]
    mean, std = (v[:, None, None] for v in normal)
    x = x * std + mean
    for which in order:
        strength = (brightness, contrast, saturation)[which]
        if strength == 0:
            continue
        low = max(0.0, 1 - strength)
        factor = F(low + dice.uniform(which) * (1 + strength - low))
        gray = F(0.2989) * x[0] + F(0.587) * x[1] + F(0.114) * x[2]
        total = 0.0
        for value in gray.reshape(-1):
            total += float(value)
        other = (F(0), F(total / gray.size), gray)[which]
        x = np.clip(factor * x + (F(1) - factor) * other, F(0), F(1))
    return (x - mean) / std


def random_erasing(x, dice, normal, probability=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), fill=0.0):
    x = x.copy()
    for i in range(10 if dice.uniform(0) < probability else 0):
        box = attempt(dice, 1 + 4 * i, scale, ratio, W, H, 1)
        if box:
            left, top, w, h = box
            x[:, top:top + h, left:left + w] = F(fill)
            break
    return x


crop = (random_crop, dict(padding=2, fill=0.25))
resized = (random_resized_crop, {})
flip = (horizontal_flip, {})
jitter = (color_jitter, dict(brightness=0.4, contrast=0.3, saturation=1.5))
erasing = (random_erasing, dict(probability=0.9, fill=0.5))
cases = [[crop], [resized], [flip], [(vertical_flip, {})], [jitter], [erasing],
         [(random_resized_crop, dict(scale=(0.9, 1.0), ratio=(0.2, 0.3)))],
         [resized, crop, flip, jitter, erasing]]

results = np.zeros((len(cases), len(pairs), C, H, W), F)
for n, case in enumerate(cases):
    # the last case is normalized, the others are as they are
    normal = (MEAN, STD) if n == len(cases) - 1 else (np.zeros(C, F), np.ones(C, F))
    for p, (epoch, example) in enumerate(pairs):
        x = picture(example)
        if n == len(cases) - 1:
            x = (x - MEAN[:, None, None]) / STD[:, None, None]
        for step, (change, words) in enumerate(case):
            x = change(x, Dice(epoch, step, example), normal, **words)
            assert x.dtype == F, change
        results[n, p] = x
np.save(sys.argv[1], results)
