#!/usr/bin/python3
"""Writes one small data set in every format that Penstock reads, with nothing but Python.

  make_data.py FOLDER [COUNT]

COUNT (40) pictures of 28 x 28 gray pixels in 10 classes, ordered by class, so that a folder of
pictures has the order of the other files:
  images.idx labels.idx (and .gz) · inputs.npy (float32, pixel / 255) labels.npy · table.csv (pixels,
  then the label, with names) · pictures/CLASS/NUMBER.png · bitmaps/CLASS/NUMBER.bmp
"""
import gzip
import os
import struct
import sys
import zlib

SIDE = 28
CLASSES = 10


def picture(index, count):
    """Pixels of example `index`: a bar whose place is the class, and noise from a small generator."""
    label = index * CLASSES // count
    state = index * 2654435761 % 2**32 or 1
    pixels = bytearray()
    for row in range(SIDE):
        for _ in range(SIDE):
            state = (state * 1664525 + 1013904223) % 2**32
            bar = 150 if row // 2 == label + 2 else 0
            pixels.append(bar + (state >> 24) * 100 // 255)
    return bytes(pixels), label


def idx(shape, data):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data


def npy(kind, shape, data):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def png(pixels):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + pixels[r * SIDE:(r + 1) * SIDE] for r in range(SIDE))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def bmp(pixels):
    """Eight bits a pixel, from the bottom up. SIDE is a multiple of four, so rows need no filling."""
    rows = b"".join(pixels[r * SIDE:(r + 1) * SIDE] for r in reversed(range(SIDE)))
    grays = b"".join(bytes([i, i, i, 0]) for i in range(256))
    head = struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 8, 0, len(rows), 0, 0, 256, 0) + grays
    return b"BM" + struct.pack("<III", 14 + len(head) + len(rows), 0, 14 + len(head)) + head + rows


def main():
    folder, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    examples = [picture(i, count) for i in range(count)]
    pixels = b"".join(p for p, _ in examples)
    labels = [label for _, label in examples]

    def write(name, data):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)

    images_idx = idx((count, SIDE, SIDE), pixels)
    labels_idx = idx((count,), bytes(labels))
    write("images.idx", images_idx)
    write("labels.idx", labels_idx)
    write("images.idx.gz", gzip.compress(images_idx))
    write("labels.idx.gz", gzip.compress(labels_idx))
    scaled = struct.pack(f"<{len(pixels)}f", *(p / 255 for p in pixels))
    write("inputs.npy", npy("<f4", (count, 1, SIDE, SIDE), scaled))
    write("labels.npy", npy("<i8", (count,), struct.pack(f"<{count}q", *labels)))
    lines = [",".join([f"p{i}" for i in range(SIDE * SIDE)] + ["label"])]
    lines += [",".join(str(v) for v in (*p, label)) for p, label in examples]
    write("table.csv", ("\n".join(lines) + "\n").encode())
    for i, (p, label) in enumerate(examples):
        write(f"pictures/class{label}/{i:04}.png", png(p))
        write(f"bitmaps/class{label}/{i:04}.bmp", bmp(p))


if __name__ == "__main__":
    main()
