#!/usr/bin/python3
"""Draws pictures of five kinds of shapes, and puts them into a table of a database.

  fill.py FILE [COUNT]     an SQLite file
  fill.py - [COUNT]        SQL for psql, to standard output

COUNT (1500) pictures of 32 x 32 pixels, PNG: a disc, ring, square, triangle or cross, of any colour, size and place, on a
ground of any colour that grows lighter to one side, with noise. Table shapes: id, split (train, test), picture, kind
(0 to 4). Nothing but Python is needed.
"""
import math
import random
import sqlite3
import struct
import sys
import zlib

SIDE = 32
KINDS = ["disc", "ring", "square", "triangle", "cross"]


def is_inside(kind, x, y):
    """Whether a point is in the shape of size 1 around 0."""
    distance = math.hypot(x, y)
    return [distance < 1, 0.6 < distance < 1, abs(x) < 0.85 and abs(y) < 0.85,
            -0.8 < y < 0.8 and abs(x) < (y + 0.8) * 0.6,
            (abs(x) < 0.3 and abs(y) < 1) or (abs(y) < 0.3 and abs(x) < 1)][kind]


def draw(kind, dice):
    size, angle = dice.uniform(6, 11), dice.uniform(-0.4, 0.4)
    left, top = dice.uniform(12, 20), dice.uniform(12, 20)
    ground = [dice.uniform(20, 120) for _ in range(3)]
    paint = [dice.uniform(130, 250) for _ in range(3)]
    if dice.random() < 0.5:
        ground, paint = paint, ground
    slope = dice.uniform(-1.5, 1.5)
    rows = b""
    for row in range(SIDE):
        line = bytearray()
        for column in range(SIDE):
            x, y = (column - left) / size, (row - top) / size
            x, y = x * math.cos(angle) - y * math.sin(angle), x * math.sin(angle) + y * math.cos(angle)
            base = paint if is_inside(kind, x, y) else ground
            for channel in base:
                line.append(min(255, max(0, int(channel + slope * (column - 16) + dice.gauss(0, 12)))))
        rows += b"\0" + bytes(line)
    return rows


def png(rows):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1500
    dice = random.Random(1)
    rows = []
    for number in range(count):
        kind = dice.randrange(len(KINDS))
        rows.append((number, "test" if number % 6 == 5 else "train", png(draw(kind, dice)), kind))
    if sys.argv[1] == "-":
        print("create table shapes (id int primary key, split text, picture bytea, kind int2);\ncopy shapes from stdin;")
        for number, split, picture, kind in rows:
            print(f"{number}\t{split}\t\\\\x{picture.hex()}\t{kind}")
        print("\\.")
        return
    base = sqlite3.connect(sys.argv[1])
    base.execute("create table shapes (id integer primary key, split text, picture blob, kind integer)")
    base.executemany("insert into shapes values (?, ?, ?, ?)", rows)
    base.commit()


main()
