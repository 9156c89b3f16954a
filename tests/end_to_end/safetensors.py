"""Reads safetensors files with nothing but Python: for tests that look into them."""
import array
import json
import struct


def read(path):
    """NAME: (shape, numbers) of a file of float32."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", (name, entry)
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["shape"], array.array("f", data[begin:end]))
    return tensors
