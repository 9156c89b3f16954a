"""Trains a small network from Python twice, on one device of this process and over two processes, and compares every
loss and parameter. It needs the module `penstock` and nothing else.

  train_two.py [HOST:PORT TOKEN_FILE]     the second process is a worker that listens there, else one started for it
"""
import array
import pathlib
import random
import sys
import tempfile

import penstock

COUNT, WIDTH = 64, 8


def make_data():
    """Inputs and classes as memory of the standard library: nobody needs NumPy."""
    draw = random.Random(5)
    rows = [[draw.gauss(0, 1) for _ in range(WIDTH)] for _ in range(COUNT)]
    inputs = memoryview(array.array("f", [x for row in rows for x in row])).cast("B").cast("f", [COUNT, WIDTH])
    return inputs, array.array("q", [int(row[0] * row[1] > 0) for row in rows])


def train(devices, **more):
    """Losses of all steps, and the file of the trained parameters."""
    inputs, labels = make_data()
    job = {"model": {"seed": 1, "inputs": {"x": {"shape": [WIDTH]}},
                     "layers": [{"dense": {"units": 16, "activation": "tanh"}}, {"dense": 2}]},
           "data": {"train": {"inputs": inputs, "labels": labels}},
           "train": {"loss": "softmax_cross_entropy", "optimizer": {"adam": {"lr": 0.01}}, "batch": 16,
                     "microbatches": 2, "epochs": 5, "seed": 1},
           "devices": devices, **more}
    with tempfile.TemporaryDirectory() as folder, penstock.train(job) as training:
        path = pathlib.Path(folder, "parameters.safetensors")
        training.save(path)
        return [step.loss for step in training.steps], path.read_bytes()


def main():
    one = train([{"name": "a", "threads": 1}])
    host, more = ("localhost", {}) if len(sys.argv) < 3 else (sys.argv[1], {"token_file": sys.argv[2]})
    two = train([{"name": "a", "threads": 1}, {"name": "b", "threads": 1, "host": host}],
                placement={"strategy": "round_robin"}, **more)
    if one != two:
        sys.exit("losses or parameters of two processes are not those of one")
    print(f"penstock {penstock.__version__}: {len(one[0])} steps over two processes, the last loss {one[0][-1]:.6f}: "
          "losses and parameters are those of one device")


main()
