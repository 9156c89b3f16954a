#!/usr/bin/env python3
"""Writes the seeds of the fuzzers of safetensors, external data and arrays in archives.

  /usr/bin/python3 tests/fuzz/make_seeds.py
"""
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))


def write(folder, name, data):
    path = os.path.join(HERE, folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as file:
        file.write(data)


def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def make_safetensors():
    sizes = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2,
             "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1}
    seeds = {
        "empty": ({}, b""),
        "one": ({"w": entry("F32", [2, 3], 0, 24)}, bytes(range(24))),
        "two": ({"a.weight": entry("F32", [2], 0, 8), "a.bias": entry("F32", [], 8, 12)}, b"\x01" * 12),
        "metadata": ({"__metadata__": {"format": "pt", "step": "7"}, "w": entry("U8", [3], 0, 3)}, b"abc"),
        "hollow": ({"none": entry("F32", [0, 4], 0, 0), "w": entry("I64", [1], 0, 8)}, b"\x02" * 8),
        "deep": ({"w": entry("F32", [1, 1, 1, 1, 1, 1, 1, 2], 0, 8)}, b"\x03" * 8),
        "unsorted": ({"z": entry("F16", [2], 4, 8), "a": entry("BF16", [2], 0, 4)}, b"\x04" * 8),
    }
    header, at = {}, 0
    for name, size in sizes.items():
        header["t." + name] = entry(name, [1], at, at + size)
        at += size
    seeds["types"] = (header, bytes(at))
    for name, (header, data) in seeds.items():
        write("corpus/safetensors", name, safetensors(header, data))
    write("corpus/safetensors", "escapes", safetensors(
        b'{"\\u00e4\\"\\\\":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}', b"x"))
    write("corpus/safetensors", "gap", safetensors({"w": entry("U8", [1], 1, 2)}, b"ab"))
    write("corpus/safetensors", "long", safetensors({"w": entry("U8", [1 << 40], 0, 1 << 40)}, b"ab"))


def varint(number):
    out = b""
    while True:
        byte = number & 0x7f
        number >>= 7
        out += bytes([byte | (0x80 if number else 0)])
        if not number:
            return out


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(dims, data_type, *rest):
    return b"".join(field(1, d) for d in dims) + field(2, data_type) + field(8, "w") + b"".join(rest)


def external(dims, data_type, **keys):
    entries = [field(13, field(1, key) + field(2, value)) for key, value in keys.items()]
    return tensor(dims, data_type, *entries, field(14, 1))


def make_external():
    write("folder", "weights.bin", bytes(range(256)))
    write("folder/deep", "more.bin", bytes(range(64)))
    seeds = {
        "whole": external([8, 8], 1, location="weights.bin"),
        "piece": external([4], 1, location="weights.bin", offset="16", length="16"),
        "deep": external([4], 7, location="deep/more.bin", offset="8"),
        "checksum": external([2], 11, location="./weights.bin", offset="240", checksum="00"),
        "misaligned": external([4], 1, location="weights.bin", offset="3"),
        "beyond": external([4], 1, location="weights.bin", offset="18446744073709551615"),
        "parent": external([4], 1, location="../make_seeds.py"),
        "absolute": external([4], 1, location="/etc/hostname"),
        "nowhere": external([4], 1, location=""),
        "missing": external([4], 1, location="none.bin"),
        "folder": external([4], 1, location="deep"),
        "large": external([1 << 20, 1 << 20], 1, location="weights.bin"),
        "overflow": external([1 << 40, 1 << 40], 1, location="weights.bin"),
        "raw": tensor([3], 2, field(9, b"abc")),
        "floats": tensor([2], 1, field(4, struct.pack("<2f", 1, 2))),
        "integers": tensor([3], 7, field(7, b"\x01\x80\x01\x00")),
        "bools": tensor([2], 9, field(5, b"\x01\x00")),
        "halves": tensor([1], 10, field(5, b"\x80\x78")),
    }
    for name, data in seeds.items():
        write("corpus/external", name, data)


def npy(descr, shape, data):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def make_npz():
    """Two arrays that the fuzzer puts into an archive."""
    first = npy("<f4", "(3,)", struct.pack("<3f", 0, 1, 2))
    write("corpus/npz", "members", bytes([len(first)]) + first + npy("<i8", "(1, 2)", bytes(16)))


make_safetensors()
make_external()
make_npz()
