#!/usr/bin/python3
"""Writes pictures of Fashion-MNIST as folders of PNG files, a folder a class.

  prepare.py [FOLDER]

The first five classes go to FOLDER/source, for the trunk to learn from (2000 of each); the others to
FOLDER/target/train (60 of each) and FOLDER/target/eval (200 of each).
"""
import gzip
import os
import struct
import sys
import zlib

DATASET = "/usr/share/datasets/fashion-mnist"
NAMES = ["t_shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"]
SIDE = 28


def read(part):
    with gzip.open(f"{DATASET}/{part}-images-idx3-ubyte.gz") as file:
        images = file.read()[16:]
    with gzip.open(f"{DATASET}/{part}-labels-idx1-ubyte.gz") as file:
        labels = file.read()[8:]
    return images, labels


def png(pixels):
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + pixels[i:i + SIDE] for i in range(0, len(pixels), SIDE))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b""))


def write(data, folder, classes, count):
    images, labels = data
    left = {label: count for label in classes}
    for i, label in enumerate(labels):
        if left.get(label, 0) == 0:
            continue
        left[label] -= 1
        os.makedirs(f"{folder}/{NAMES[label]}", exist_ok=True)
        with open(f"{folder}/{NAMES[label]}/{i:05}.png", "wb") as file:
            file.write(png(images[i * SIDE * SIDE:(i + 1) * SIDE * SIDE]))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    train, test = read("train"), read("t10k")
    write(train, f"{folder}/source", range(5), 2000)
    write(train, f"{folder}/target/train", range(5, 10), 60)
    write(test, f"{folder}/target/eval", range(5, 10), 200)


if __name__ == "__main__":
    main()
