#!/usr/bin/python3
"""Puts the data set that make_data.py wrote into FOLDER into tables.

  make_database.py FOLDER FILE     an SQLite file
  make_database.py FOLDER          SQL for PostgreSQL, to standard output

Table `examples`, in another order than that of the ids: id, label, png (a file), raw (float32 as
bytes), pixels (float32 array; PostgreSQL), p0 to p783 (numbers).
Table `broken`: id, and columns that have, in the row of id 4: NULL (n), another length (l), another
type (t; SQLite), text (w), and numbers elsewhere.
"""
import glob
import os
import sqlite3
import struct
import sys

folder = sys.argv[1]
PIXELS = 28 * 28


def npy_data(name):
    data = open(os.path.join(folder, name), "rb").read()
    return data[10 + struct.unpack("<H", data[8:10])[0]:]


raw = npy_data("inputs.npy")
labels = [int(line.rsplit(",", 1)[1]) for line in open(os.path.join(folder, "table.csv")).readlines()[1:]]
names = sorted(glob.glob(os.path.join(folder, "pictures", "*", "*.png")))
rows = []
for i, label in enumerate(labels):
    blob = raw[i * PIXELS * 4:(i + 1) * PIXELS * 4]
    rows.append((i, label, open(names[i], "rb").read(), blob, struct.unpack(f"<{PIXELS}f", blob)))
rows = rows[1::2] + rows[::2]
columns = ", ".join(f"p{i} real" for i in range(PIXELS))

if len(sys.argv) > 2:
    base = sqlite3.connect(sys.argv[2])
    base.execute(f"create table examples (id integer, label integer, png blob, raw blob, {columns})")
    for number, label, png, blob, values in rows:
        marks = ", ".join("?" * (4 + PIXELS))
        base.execute(f"insert into examples values ({marks})", (number, label, png, blob, *values))
    base.execute("create table broken (id integer, n, l, t, w)")
    for i in range(8):
        odd = i == 4
        base.execute("insert into broken values (?, ?, ?, ?, ?)", (
            i, None if odd else 1.5, b"12345678" if odd else b"1234", 2.5 if odd else 1, "word" if odd else 1))
    base.commit()
else:
    print("begin;")
    # 800 columns of float4 fit a page, and no more
    print(f"create table examples (id int, label int2, png bytea, raw bytea, pixels float4[], {columns});")
    for number, label, png, blob, values in rows:
        texts = [repr(value) for value in values]
        print(f"insert into examples values ({number}, {label}, '\\x{png.hex()}', '\\x{blob.hex()}',"
              f" '{{{','.join(texts)}}}', {', '.join(texts)});")
    print("create table broken (id int, n float8, l float4[], h float4[], w text);")
    for i in range(8):
        odd = i == 4
        print(f"insert into broken values ({i}, {'null' if odd else 1.5}, '{{1,2{',3' if odd else ''}}}',"
              f" '{{1,{'null' if odd else 2}}}', 'word');")
    print("commit;")
