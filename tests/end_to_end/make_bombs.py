#!/usr/bin/env python3
"""Small files that would be very large unpacked, and runs of a program that read them.

  make_bombs.py make            writes them into this folder
  make_bombs.py run MIB COMMAND...
      runs the command; fails unless it, with its children, held at most so many MiB at any time.
      Its exit code is that of the command.
"""
import resource
import struct
import subprocess
import sys
import zlib

MIB = 1 << 20
PIECE = 16 * MIB


def npy(shape, descr="<f4"):
    """The header of an array."""
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, tuple(shape))
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def pack(start, byte, mib):
    """`start` and then so many MiB of a byte, by deflate. The pieces are equal, so one is packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(byte * PIECE) + packer.flush(zlib.Z_FULL_FLUSH)
    count = mib * MIB // PIECE
    check = zlib.crc32(start)
    for _ in range(count):
        check = zlib.crc32(byte * PIECE, check)
    return head + piece * count + packer.flush(), len(start) + count * PIECE, check


def archive(path, members):
    """A zip archive of packed members: name, packed bytes, length, checksum."""
    out, entries = b"", b""
    for name, packed, length, check in members:
        facts = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, check, len(packed), length, len(name), 0)
        entries += struct.pack("<IH", 0x02014B50, 20) + facts + \
            struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + name.encode()
        out += struct.pack("<I", 0x04034B50) + facts + name.encode() + packed
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(entries), len(out), 0)
    with open(path, "wb") as file:
        file.write(out + entries + end)


def gzip(path, start, byte, mib):
    packed, length, check = pack(start, byte, mib)
    with open(path, "wb") as file:
        file.write(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + packed + struct.pack("<II", check, length & 0xFFFFFFFF))


def plain(name, data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return name, packer.compress(data) + packer.flush(), len(data), zlib.crc32(data)


def picture(path, side):
    """A PNG of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + 3 * side)) for _ in range(side)) + packer.flush()
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def make():
    weights = [plain("fc/kernel.npy", npy((4, 3)) + struct.pack("<12f", *range(12))),
               plain("fc/bias.npy", npy((3,)) + bytes(12))]
    large = npy((MIB * 256,))
    archive("beside.npz", weights + [("other.npy", *pack(large, b"\0", 1024))])
    archive("instead.npz", [weights[1], ("fc/kernel.npy", *pack(large, b"\0", 1024))])
    archive("weights.keras", [plain("config.json", b"{}"), ("model.weights.h5", *pack(b"\x89HDF", b"\0", 1024))])
    archive("config.keras", [("config.json", *pack(b"", b" ", 1024)), plain("model.weights.h5", b"")])
    gzip("text.gz", b"", b"a", 2048)
    gzip("images.gz", struct.pack(">BBBBIII", 0, 0, 8, 3, 2048, 1024, 1024), b"\0", 2048)
    with open("labels.idx", "wb") as file:
        file.write(struct.pack(">BBBBI", 0, 0, 8, 1, 2048) + bytes(2048))
    # masks: a few pixels are set, which packs to a 240th
    masks = bytearray(96 * MIB)
    for i in range(0, len(masks), 331):
        masks[i] = i * 2654435761 >> 13 & 1
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    data = struct.pack(">BBBBIII", 0, 0, 8, 3, 2048, 48, 1024) + bytes(masks)
    packed = packer.compress(data) + packer.flush()
    assert 200 < len(data) / len(packed) < 400, len(data) / len(packed)
    with open("masks.gz", "wb") as file:
        file.write(packed)
    picture("one.png", 8192)
    with open("sparse.csv", "wb") as file:
        file.write(b"a,b,label\n1,2,0\n")
        file.truncate(1 << 40)
    with open("holes.csv", "wb") as file:
        file.truncate(1 << 40)
    with open("sparse.jpg", "wb") as file:
        file.write(b"\xff\xd8\xff\xe0")
        file.truncate(1 << 40)


def main():
    if sys.argv[1] == "make":
        make()
        return 0
    code = subprocess.call(sys.argv[3:])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    if peak > float(sys.argv[2]):
        print(f"held {peak:.0f} MiB, expected at most {sys.argv[2]}", file=sys.stderr)
        return 99
    return code


if __name__ == "__main__":
    sys.exit(main())
