#!/usr/bin/env python3
"""Writes the seeds of the fuzzers of PostgreSQL's values, of what is kept on disk, and of tar files.

  /usr/bin/python3 tests/fuzz/make_data_seeds.py
"""
import io
import json
import os
import struct
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))


def write(folder, name, data):
    path = os.path.join(HERE, "corpus", folder)
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "wb") as file:
        file.write(data)


def array(choice, oid, kind, shape, values, has_null=0):
    data = struct.pack(">iiI", len(shape), has_null, oid)
    for side in shape:
        data += struct.pack(">ii", side, 1)
    for value in values:
        item = struct.pack(kind, value)
        data += struct.pack(">i", len(item)) + item
    return bytes([choice]) + data


def make_postgres():
    scalars = [("bool", 0, b"\1"), ("bytes", 1, b"any bytes"), ("int8", 2, struct.pack(">q", -5)),
               ("int2", 3, struct.pack(">h", 7)), ("int4", 4, struct.pack(">i", 1 << 30)),
               ("float4", 5, struct.pack(">f", 1.5)), ("float8", 6, struct.pack(">d", -2.25))]
    for name, choice, data in scalars:
        write("postgres", name, bytes([choice]) + data)
    write("postgres", "flat", array(11, 700, ">f", [3], [1, 2, 3]))
    write("postgres", "table", array(12, 701, ">d", [2, 2], [1, 2, 3, 4]))
    write("postgres", "deep", array(9, 23, ">i", [1, 2, 1, 1, 2, 1], range(4)))
    write("postgres", "empty", array(10, 20, ">q", [], []))
    write("postgres", "null", array(8, 21, ">h", [1], [1], 1))
    write("postgres", "flags", array(7, 16, ">?", [4], [True, False, True, True]))


def make_array_cache():
    numbers = {"name": "x", "is_label": False, "is_pictures": False, "element": "float32", "shape": [3, 32, 32],
               "data": 4294967295}
    pictures = {"name": "y", "is_label": False, "is_pictures": True, "data": 17, "ends": 4}
    label = {"name": "labels", "is_label": True, "is_pictures": False, "element": "int64", "shape": [], "data": 0}
    for name, fields in [("numbers", [numbers, label]), ("pictures", [pictures]), ("all", [numbers, pictures, label])]:
        root = {"schema": "penstock/array-cache/1", "request": "request", "rows": 7, "fields": fields}
        write("array_cache", name, json.dumps(root, indent=2).encode())


make_postgres()
make_array_cache()


def make_tar():
    for name, kind, key in [("ustar", tarfile.USTAR_FORMAT, "a"), ("pax", tarfile.PAX_FORMAT, "ä" * 110),
                            ("gnu", tarfile.GNU_FORMAT, "b" * 120)]:
        bytes_made = io.BytesIO()
        with tarfile.open(fileobj=bytes_made, mode="w", format=kind) as tar:
            for number in range(2):
                for part, data in [("jpg", b"picture"), ("npy", b"array"), ("cls", b"7\n")]:
                    member = tarfile.TarInfo(f"{key}/{number}.{part}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
        write("tar", name, bytes_made.getvalue())


make_tar()
