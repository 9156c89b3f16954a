"""Writes a .pt2 file like another one, with one size of its tensors made large.

    make_sparse_pt2.py FROM TO OLD NEW [bfloat16]

Every size and stride that is OLD becomes NEW, and weights are as long as their sizes say, without contents: the file
system stores nothing of them. With "bfloat16" all that is float32 becomes that.
"""
import binascii
import json
import math
import struct
import sys
import zipfile

CONFIG = "/data/weights/model_weights_config.json"
IS_HALF = sys.argv[5:] == ["bfloat16"]


def enlarge(text, old, new):
    text = text.replace(f'"as_int": {old}}}', f'"as_int": {new}}}')
    return text.replace('"dtype": 7,', '"dtype": 13,') if IS_HALF else text


def weight_lengths(config):
    """In bytes, by the name of the file."""
    width = 2 if IS_HALF else 4
    return {weight["path_name"]: width * math.prod(size["as_int"] for size in weight["tensor_meta"]["sizes"])
            for weight in json.loads(config)["config"].values()}


def entries_of(path, old, new):
    """Name, contents and length; no contents are a hole."""
    with zipfile.ZipFile(path) as source:
        folder = source.namelist()[0].split("/")[0]
        lengths = weight_lengths(enlarge(source.read(folder + CONFIG).decode(), old, new))
        for name in source.namelist():
            length = lengths.get(name.rsplit("/", 1)[1])
            data = b"" if length else source.read(name)
            if name.endswith(".json"):
                data = enlarge(data.decode(), old, new).encode()
            yield name.encode(), data, length or len(data)


def main(path, out, old, new):
    central = b""
    count = 0
    with open(out, "wb") as file:
        for name, data, length in entries_of(path, old, new):
            offset = file.tell()
            about = struct.pack("<HHHHIIIH", 0, 0, 0, 0, binascii.crc32(data), length, length, len(name))
            gap = -(offset + 30 + len(name)) % 64
            file.write(b"PK\3\4\0\0" + about + struct.pack("<H", gap) + name + bytes(gap) + data)
            file.seek(length - len(data), 1)
            central += b"PK\1\2\0\0\0\0" + about + struct.pack("<HHHHII", 0, 0, 0, 0, 0, offset) + name
            count += 1
        at = file.tell()
        file.write(central + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, count, count, len(central), at, 0))


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
