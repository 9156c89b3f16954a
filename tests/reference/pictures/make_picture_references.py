#!/usr/bin/env python3
"""Writes pictures as BMP and WebP, and what Pillow decodes them to. Needs Pillow (made with 13.0, libwebp 1.6) and NumPy.
Run in this folder. The pictures lie where the fuzzers begin, tests/fuzz/corpus/bmp and webp; bmp.npy and webp.npy beside
this script have their pixels in red, green and blue, one picture after another in the order of their names. Transparency
is dropped. animated.webp is a film of two pictures and has no pixels here."""
import pathlib
import struct

import numpy as np
from PIL import Image

CORPUS = pathlib.Path("../../fuzz/corpus")
WIDTH, HEIGHT = 21, 13
y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
COLOURS = np.stack([12 * x, 19 * y, (x * y * 7) % 256], 2).astype(np.uint8)
BLUE_FIRST = COLOURS[:, :, ::-1]


def bmp(name, bits, rows, header=40, packing=0, height=HEIGHT, palette=b"", masks=b"", behind=b"", used=0):
    """A file: rows as they lie in it. Masks are a part of the header, or lie behind one of 40 bytes."""
    if header == 12:
        fields = struct.pack("<IHHHH", 12, WIDTH, height, 1, bits)
    else:
        fields = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, packing, len(rows), 2835, 2835, used, 0)
        fields = (fields + masks).ljust(header, b"\0")
    head = fields + palette + behind
    data = b"BM" + struct.pack("<IHHI", 14 + len(head) + len(rows), 0, 0, 14 + len(head)) + head + rows
    (CORPUS / "bmp" / f"{name}.bmp").write_bytes(data)


def packed(values, bits):
    """Rows from the bottom up, filled up to four bytes: VALUES [height][width], of bits a pixel."""
    rows = b""
    for row in values[::-1]:
        if bits < 8:
            text = "".join(format(value, f"0{bits}b") for value in row)
            line = int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8), "big")
        else:
            line = b"".join(int(value).to_bytes(bits // 8, "little") for value in row)
        rows += line.ljust(-(-len(line) // 4) * 4, b"\0")
    return rows


def palette_of(count, size):
    return b"".join(bytes([(37 * i + 11) % 256, (91 * i + 5) % 256, (53 * i + 200) % 256] + [0] * (size - 3))
                    for i in range(count))


def masked(widths, shifts):
    """Pixels with red, green and blue of so many bits at these places."""
    total = np.zeros((HEIGHT, WIDTH), np.uint64)
    for c in range(3):
        total |= (COLOURS[:, :, c].astype(np.uint64) >> np.uint64(8 - widths[c])) << np.uint64(shifts[c])
    return total


def mask_bytes(widths, shifts, alpha=None):
    masks = [((1 << w) - 1) << s for w, s in zip(widths, shifts)]
    return struct.pack(f"<{len(masks) + (alpha is not None)}I", *masks, *([] if alpha is None else [alpha]))


def rle8(values, jump):
    """Runs, rows of single pixels and, with JUMP, steps over pixels that then have the first colour."""
    out = b""
    for k, row in enumerate(values[::-1]):
        row = [int(value) for value in row]
        if jump and k in (4, 7):  # 3 pixels, 5 left out, 2 pixels; what follows is the row above
            out += bytes([0, 3] + row[:3] + [0, 0, 2, 5, 0, 2, row[8]])
        elif k % 2:
            out += bytes([7, row[0], 5, row[7], 0, 9] + row[12:21] + [0])
        else:
            out += bytes([0, 21] + row + [0])
        out += b"\0\0"
    return out[:-2] + b"\0\1"


def rle4(values):
    out = b""
    for k, row in enumerate(values[::-1]):
        row = [int(value) for value in row]
        if k % 2:
            out += bytes([8, row[0] << 4 | row[1], 13, row[8] << 4 | row[9]])
        else:
            out += bytes([0, 21]) + packed([row], 4)[:11] + b"\0"
        out += b"\0\0"
    return out[:-2] + b"\0\1"


def make_bmp():
    for bits in (1, 4, 8):
        values = (x * 3 + y * 5) % (1 << bits)
        count = 1 << bits
        bmp(f"places_{bits}", bits, packed(values, bits), palette=palette_of(count, 4))
        bmp(f"os2_{bits}", bits, packed(values, bits), header=12, palette=palette_of(count, 3))
        bmp(f"down_{bits}", bits, packed(values[::-1], bits), height=-HEIGHT, palette=palette_of(count, 4))
    bmp("few", 8, packed((x + y) % 19, 8), header=124, palette=palette_of(19, 4), used=19)
    bmp("gap", 4, packed((x + y) % 11, 4), header=64, palette=palette_of(11, 4), used=11, behind=b"between")
    bmp("rle8", 8, rle8((x * 3 + y * 5) % 256, False), packing=1, palette=palette_of(256, 4))
    bmp("rle8_jumps", 8, rle8((x + 2 * y) % 40, True), packing=1, palette=palette_of(40, 4), used=40)
    bmp("rle4", 4, rle4((x * 3 + y * 5) % 16), packing=2, palette=palette_of(16, 4))
    five = masked((5, 5, 5), (10, 5, 0))
    bmp("plain_16", 16, packed(five, 16))
    bmp("plain_24", 24, packed(masked((8, 8, 8), (16, 8, 0)), 24))
    bmp("plain_32", 32, packed(masked((8, 8, 8), (16, 8, 0)) | np.uint64(0x40000000), 32))
    bmp("down_24", 24, packed(masked((8, 8, 8), (16, 8, 0))[::-1], 24), height=-HEIGHT, header=108)
    bmp("os2_24", 24, packed(masked((8, 8, 8), (16, 8, 0)), 24), header=12)
    six, places = (5, 6, 5), (11, 5, 0)
    bmp("masks_565", 16, packed(masked(six, places), 16), packing=3, behind=mask_bytes(six, places))
    bmp("masks_555", 16, packed(five, 16), packing=3, masks=mask_bytes((5, 5, 5), (10, 5, 0)), header=52)
    for name, header, places, alpha in (("v3", 56, (24, 16, 8), 0xff), ("v4", 108, (0, 8, 16), 0xff000000),
                                        ("v5", 124, (16, 8, 0), 0xff000000), ("v1", 40, (16, 8, 0), None)):
        values = masked((8, 8, 8), places) | np.uint64(alpha or 0) // np.uint64(3)
        values = (values & ~np.uint64(alpha or 0)) | (np.uint64(alpha or 0) & np.uint64(0x7f7f7f7f))
        masks = mask_bytes((8, 8, 8), places, alpha)
        bmp(f"masks_{name}", 32, packed(values, 32), packing=3, header=header,
            **({"masks": masks} if header > 40 else {"behind": masks}))


def make_webp():
    """Of odd sizes, so that the halved colours of the lossy form end within a pair of pixels."""
    rows, columns = np.mgrid[0:29, 0:37]
    picture = np.stack([7 * columns, 255 - 8 * rows, (rows * columns * 3) % 256,
                        np.minimum(255, rows * 12 + columns * 3)], 2).astype(np.uint8)
    colour, transparent = Image.fromarray(picture[:, :, :3]), Image.fromarray(picture)
    folder = CORPUS / "webp"
    colour.save(folder / "lossy.webp", quality=75)
    colour.save(folder / "lossy_fine.webp", quality=100, method=6)
    colour.save(folder / "lossless.webp", lossless=True)
    Image.fromarray((picture[:, :, :3] // 64) * 64).save(folder / "few_colours.webp", lossless=True)
    transparent.save(folder / "alpha.webp", quality=60)
    transparent.save(folder / "alpha_lossless.webp", lossless=True, exact=True)
    colour.save(folder / "described.webp", quality=50, exif=b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0", icc_profile=b"p" * 40)
    colour.save(folder / "animated.webp", save_all=True, append_images=[Image.fromarray(255 - picture[:, :, :3])])


def keep(kind):
    paths = sorted(path for path in (CORPUS / kind).glob(f"*.{kind}") if path.stem != "animated")
    np.save(f"{kind}.npy", np.stack([np.asarray(Image.open(path).convert("RGBA"))[:, :, :3] for path in paths]))
    print(kind, len(paths), *[path.stem for path in paths])


make_bmp()
make_webp()
keep("bmp")
keep("webp")
