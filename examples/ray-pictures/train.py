"""Trains the network of examples/fashion-cnn on a dataset of Ray Data, and tells how many pictures it gets right.

  python3 train.py --folder /shared/run1 [--workers 2] [--threads 1] [--pictures 60000] [--penstock penstock]

Within a cluster it uses that; elsewhere Ray starts one in this machine.
"""
import argparse
import gzip
import os

import numpy
import ray
import ray.data
from penstock.ray import PenstockTrainer

HERE = os.path.dirname(os.path.abspath(__file__))
PICTURES = "/usr/share/datasets/fashion-mnist"


def read(name):
    """An IDX file: a head of four bytes and one number for each dimension, then bytes."""
    with gzip.open(f"{PICTURES}/{name}-ubyte.gz") as file:
        data = file.read()
    rank = data[3]
    shape = numpy.frombuffer(data[4:4 + 4 * rank], ">i4")
    return numpy.frombuffer(data[4 + 4 * rank:], numpy.uint8).reshape(shape)


def dataset(part, count):
    """Columns `pixels`, bytes of the shape (1, 28, 28), and `label`. They are read where the blocks are."""
    def rows(batch):
        numbers = batch["id"]
        return {"pixels": read(f"{part}-images-idx3")[numbers].reshape(-1, 1, 28, 28),
                "label": read(f"{part}-labels-idx1")[numbers].astype(numpy.int64)}
    return ray.data.range(count, override_num_blocks=8).map_batches(rows, batch_size=None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True, help="of the training: one that all nodes see")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pictures", type=int, default=60000)
    parser.add_argument("--penstock", default="penstock")
    arguments = parser.parse_args()
    ray.init()
    job = {"model": {"file": os.path.join(HERE, "..", "fashion-cnn", "fashion_cnn.onnx")},
           "data": {"normalize": {"mean": 72.93, "std": 90.02}},
           "train": {"loss": "softmax_cross_entropy", "batch": 64, "microbatches": 4, "epochs": 1, "seed": 1,
                     "optimizer": {"sgd": {"lr": 0.05, "momentum": 0.9}}},
           "checkpoint": {"every": "100 steps"}}
    trainer = PenstockTrainer(job, inputs={"image": "pixels"}, label="label", folder=os.path.abspath(arguments.folder),
                              workers=arguments.workers, threads=arguments.threads, command=arguments.penstock)
    model = trainer.fit(dataset("train", arguments.pictures))
    print("trained:", model.parameters_hash)
    scored = model.predict(dataset("t10k", 10000), workers=arguments.workers)
    right = scored.map_batches(lambda rows: {"right": rows["prediction"].argmax(axis=1) == rows["label"]}).sum("right")
    print(f"right: {right / 10000:.3f}")
    model.save(os.path.join(arguments.folder, "trained.safetensors"))


if __name__ == "__main__":
    main()
