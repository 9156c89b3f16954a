#!/usr/bin/env python3
"""Writes cases.h5: datasets in every storage, and what a reader must refuse; and pieces.h5: a dataset that is read in
pieces, and groups in circles. Needs h5py."""
import os

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBERS = (np.arange(12, dtype="<f4") / 4).reshape(3, 4)


def compact(file, name):
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(NUMBERS.shape)
    dataset = h5py.h5d.create(file.id, name, h5py.h5t.IEEE_F32LE, space, creation)
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, NUMBERS)


def main():
    with h5py.File(os.path.join(HERE, "cases.h5"), "w") as file:
        file["contiguous"] = NUMBERS
        file.create_dataset("chunked", data=NUMBERS, chunks=(2, 3))
        file.create_dataset("packed", data=NUMBERS, compression="gzip", shuffle=True,
                            fletcher32=True)
        file["big_endian"] = NUMBERS.astype(">f4")
        compact(file, b"compact")
        file["elsewhere"] = h5py.ExternalLink("nested.h5", "/model_weights")
        file["soft"] = h5py.SoftLink("/contiguous")
        file.create_dataset("outside", (3, 4), "<f4", external=[("/etc/passwd", 0, 48)])
        layout = h5py.VirtualLayout((3, 4), "<f4")
        layout[:] = h5py.VirtualSource("nested.h5", "x", (3, 4))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("filtered", data=NUMBERS, compression="lzf")
        file["pairs"] = np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")])
        file.create_dataset("endless", (1 << 38,), "<f4", chunks=(1024,))
        file["deep"] = np.zeros((1,) * 9, "<f4")
    with h5py.File(os.path.join(HERE, "pieces.h5"), "w") as file:
        rows = np.repeat(np.arange(3001, dtype="<i4"), 1000).reshape(3001, 1000)
        file.create_dataset("rows", data=rows, chunks=(700, 400), compression="gzip")
        group = file.create_group("group")
        group["again"] = group
        group.create_group("within")
        file["same"] = group


if __name__ == "__main__":
    main()
