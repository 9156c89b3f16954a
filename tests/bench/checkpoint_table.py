#!/usr/bin/python3
"""Checkpoints beside the raw disk and a plain copy: how fast they persist, how long training stalls.

  checkpoint_table.py --bench build/gcc/tests/bench/checkpoint_bench [--out build/bench] [--mib N]

Both ways take turns in one process; a figure is the median of its rounds. Prints a table, puts the
rows into build/bench.json, and fails when a figure is not as good as TARGETS asks.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

import bench_rows

# name of a row -> (least or most, ratio)
TARGETS = {
    "checkpoint persist": ("least", 0.70),
    "checkpoint stall": ("most", 1.1),
}


def measure(options, what):
    folder = f"{options.out}/checkpoint"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    output = subprocess.run([options.bench, what, folder, str(options.mib << 20)], check=True,
                            stdout=subprocess.PIPE).stdout
    shutil.rmtree(folder)
    return json.loads(output)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--mib", type=int, default=256)
    options = parser.parse_args()
    runs = measure(options, "persist")
    rate = [[runs["bytes"] / seconds / 1e9 for seconds in runs[way]] for way in ("ours", "theirs")]
    rows = [bench_rows.row("checkpoint persist", 1, rate[0], rate[1], "raw disk", "GB/s")]
    runs = measure(options, "stall")
    milliseconds = [[seconds * 1e3 for seconds in runs[way]] for way in ("ours", "theirs")]
    rows.append(bench_rows.row("checkpoint stall", 1, *milliseconds, "memcpy", "ms"))
    lines = [[entry["name"], f"{entry['ours']:.3g}", entry["other_name"], f"{entry['other']:.3g}",
              entry["unit"], f"{entry['ratio']:.2f}"] for entry in rows]
    bench_rows.show_table([f"{options.mib} MiB", "ours", "beside", "", "", "ratio"], lines)
    bench_rows.save(f"{options.out}/../bench.json", rows)
    failed = False
    for entry in rows:
        kind, bound = TARGETS[entry["name"]]
        if entry["ratio"] < bound if kind == "least" else entry["ratio"] > bound:
            print(f"NOT MET {entry['name']}: ratio {entry['ratio']:.3g}, at {kind} {bound} was asked")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
