#!/usr/bin/python3
"""Data with a value that an embedding of 20 rows cannot take, with nothing but Python.

  make_tokens.py FOLDER

48 examples, 6 batches of 8: good.npy and bad.npy (int64, 6 tokens below 20 each; in the last batch of
bad.npy one is 20), facts.npy (float32, 6 numbers each) and labels.npy (int64, 5 classes).
"""
import array
import os
import random
import sys

from make_data import npy

COUNT, LENGTH = 48, 6
WRONG = 275  # the place of the token that is 20


def main():
    folder = sys.argv[1]
    random.seed(3)

    def write(name, kind, shape, values):
        with open(os.path.join(folder, name), "wb") as out:
            out.write(npy(kind, shape, values.tobytes()))

    tokens = [random.randrange(20) for _ in range(COUNT * LENGTH)]
    wrong = tokens[:WRONG] + [20] + tokens[WRONG + 1:]
    write("good.npy", "<i8", (COUNT, LENGTH), array.array("q", tokens))
    write("bad.npy", "<i8", (COUNT, LENGTH), array.array("q", wrong))
    write("facts.npy", "<f4", (COUNT, LENGTH), array.array("f", (random.random() for _ in tokens)))
    write("labels.npy", "<i8", (COUNT,), array.array("q", (random.randrange(5) for _ in range(COUNT))))


main()
