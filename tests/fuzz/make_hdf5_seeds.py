#!/usr/bin/env python3
"""Writes the seeds of the fuzzers of HDF5 streams and of Keras' models with weights. Needs h5py.

  python3 tests/fuzz/make_hdf5_seeds.py
"""
import glob
import io
import json
import os
import shutil
import struct
import zipfile

import h5py

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "reference", "keras")
GROUP, DATASET, OTHER = 1, 2, 3
FLOAT32, FLOAT64, FLOAT16, INT8, INT64 = 1, 2, 3, 5, 8
ON_REQUEST = 2**64 - 1


def name(text):
    data = text.encode()
    return struct.pack("<H", len(data)) + data


def error(code, text):
    return struct.pack("<B", code) + name(text)


def texts(*values):
    data = [v.encode() for v in values]
    return b"T" + struct.pack("<I", len(data)) + b"".join(struct.pack("<I", len(d)) + d for d in data)


def group(entries, attributes=()):
    data = b"G" + struct.pack("<I", len(entries))
    for entry, kind in entries:
        data += struct.pack("<B", kind) + name(entry)
    data += struct.pack("<I", len(attributes))
    return data + b"".join(name(key) + value for key, value in attributes)


def dataset(element, shape, offset):
    return b"D" + struct.pack("<BB", element, len(shape)) + \
        struct.pack("<%dq" % len(shape), *shape) + struct.pack("<Q", offset)


def piece(data):
    return struct.pack("<I", len(data)) + data


def write(folder, file, data):
    with open(os.path.join(HERE, "corpus", folder, file), "wb") as out:
        out.write(data)


def make_streams():
    seeds = {
        "empty": group([]),
        "failure": b"X" + error(7, "the file is damaged"),
        "texts": group([], [("model_config", texts("{}")), ("weight_names", texts("a", "", "bc")),
                            ("x", b"E" + error(1, "no text")), ("y", texts())]),
        "entries": group([("a", GROUP), ("b", DATASET), ("c", OTHER), ("d", DATASET)]) + group([]) +
        dataset(FLOAT32, [2, 3], 4) + b"E" + error(3, "of what is not known"),
        "deep": group([("a", GROUP)]) + group([("b", GROUP)], [("a", texts("t"))]) +
        group([("c", DATASET)]) + dataset(FLOAT64, [], 8),
        "asked": group([("p", DATASET), ("q", DATASET)]) + dataset(INT64, [2], ON_REQUEST) +
        dataset(INT8, [3], ON_REQUEST) + piece(bytes(7)) + piece(bytes(9)) + piece(b"abc"),
        "fails": group([("p", DATASET)]) + dataset(FLOAT16, [4], ON_REQUEST) + piece(b"ab") +
        piece(b"") + error(7, "a damaged chunk"),
        "hollow": group([("p", DATASET)]) + dataset(FLOAT32, [0, 5], ON_REQUEST),
    }
    for key, data in seeds.items():
        write("hdf5", key, data)


def describe(file, attributes_of_root):
    """The stream of a file; contents are at the beginning of whatever the file is."""
    queue, data = [file["/"]], b""
    while queue:
        item = queue.pop(0)
        if isinstance(item, h5py.Dataset):
            element = {"float32": FLOAT32, "int64": INT64, "float64": FLOAT64}.get(str(item.dtype), INT8)
            data += dataset(element, item.shape, 0)
            continue
        names = sorted(item)
        attributes = []
        for key in sorted(item.attrs) if item.name != "/" or attributes_of_root else []:
            value = item.attrs[key]
            if key in ("layer_names", "weight_names"):
                attributes.append((key, texts(*[v.decode() if isinstance(v, bytes) else v for v in value])))
        data += group([(n, DATASET if isinstance(item[n], h5py.Dataset) else GROUP) for n in names], attributes)
        queue += [item[n] for n in names]
    return data


def make_models():
    for path in sorted(glob.glob(os.path.join(MODELS, "*.h5")) + glob.glob(os.path.join(MODELS, "*.keras"))):
        base, form = os.path.basename(path).rsplit(".", 1)
        if form == "keras":
            archive = zipfile.ZipFile(path)
            config = archive.read("config.json")
            file = h5py.File(io.BytesIO(archive.read("model.weights.h5")), "r")
        else:
            file = h5py.File(path, "r")
            config = file.attrs.get("model_config", b"")
            config = config.encode() if isinstance(config, str) else config
        if config:
            write("keras", base + "_" + form, config + b"\0" + bytes([form == "keras"]) + describe(file, False))


def make_small_models():
    """One layer each: quick to read, so that more of them can be tried."""
    layers = {
        "dense": ("Dense", {"units": 2}, [None, 3], [[3, 2], [2]]),
        "conv": ("Conv2D", {"filters": 2, "kernel_size": [2, 2]}, [None, 4, 4, 1], [[2, 2, 1, 2], [2]]),
        "norm": ("BatchNormalization", {}, [None, 3], [[3], [3], [3], [3]]),
        "lstm": ("LSTM", {"units": 2}, [None, 3, 2], [[2, 8], [2, 8], [8]]),
        "gru": ("GRU", {"units": 2}, [None, 3, 2], [[2, 6], [2, 6], [2, 6]]),
        "embedding": ("Embedding", {"input_dim": 4, "output_dim": 2}, [None, 3], [[4, 2]]),
        "attention": ("MultiHeadAttention", {"num_heads": 1, "key_dim": 2}, [None, 2, 2], []),
        "pooling": ("MaxPooling2D", {}, [None, 4, 4, 1], []),
        "bidirectional": ("Bidirectional", {"layer": {"class_name": "GRU", "config": {"units": 1}}}, [None, 2, 1],
                          [[1, 3], [1, 3], [2, 3]] * 2),
        "separable": ("SeparableConv2D", {"filters": 2, "kernel_size": [2, 2]}, [None, 4, 4, 1],
                      [[2, 2, 1, 1], [1, 1, 1, 2], [2]]),
        "layer_norm": ("LayerNormalization", {}, [None, 3], [[3], [3]]),
    }
    for key, (kind, config, shape, weights) in layers.items():
        model = {"class_name": "Sequential", "config": {"name": "m", "layers": [
            {"class_name": "InputLayer", "config": {"batch_input_shape": shape, "name": "i"}},
            {"class_name": kind, "config": dict(config, name="l")}]}}
        count = len(weights)
        names = ["w%d" % i for i in range(count)]
        stream = group([("model_weights", GROUP)]) + group([("l", GROUP)]) + \
            group([(n, DATASET) for n in names], [("weight_names", texts(*names))]) + \
            b"".join(dataset(FLOAT32, w, 0) for w in weights)
        write("keras", "small_" + key, json.dumps(model, separators=(",", ":")).encode() + b"\0\0" + stream)


def make_files():
    folder = os.path.join(HERE, "corpus", "hdf5_file")
    os.makedirs(folder, exist_ok=True)
    with h5py.File(os.path.join(folder, "small.h5"), "w") as file:
        file["a"] = [1.0, 2.0]
        file.create_dataset("b", data=list(range(20)), chunks=(7,), compression="gzip")
        file.create_group("c").attrs["weight_names"] = ["x", "yz"]
    shutil.copyfile(os.path.join(MODELS, "cases.h5"), os.path.join(folder, "cases.h5"))


if __name__ == "__main__":
    make_streams()
    make_models()
    make_small_models()
    make_files()
