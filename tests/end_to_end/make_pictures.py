#!/usr/bin/env python3
"""Writes small files of pictures and labels with Fashion-MNIST's names: make_pictures.py FOLDER"""
import gzip
import os
import struct
import sys

for name, count in (("train", 256), ("t10k", 64)):
    labels = bytes(i % 10 for i in range(count))
    pixels = bytes((i * 7 + p * (label + 1)) % 256 for i, label in enumerate(labels) for p in range(784))
    with gzip.open(os.path.join(sys.argv[1], name + "-images-idx3-ubyte.gz"), "wb", 1) as file:
        file.write(struct.pack(">IIII", 2051, count, 28, 28) + pixels)
    with gzip.open(os.path.join(sys.argv[1], name + "-labels-idx1-ubyte.gz"), "wb", 1) as file:
        file.write(struct.pack(">II", 2049, count) + labels)
