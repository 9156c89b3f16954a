#!/usr/bin/python3
"""Pictures a second from a folder of JPEG files, beside PyTorch's DataLoader with Pillow.

  loading_table.py --bench build/gcc/tests/bench/loading_bench
                   [--peer-python DIR/bin/python] [--out build/bench] [--rounds N]

512 photos of 500 x 375 become 3 x 224 x 224, normalized, in batches of 32: the same pixels but for
Pillow's rounding to bytes between. Both programs stay and
take turns: an epoch each, of which the batches that were loaded ahead do not count. Rates are by the
clock; processor time of a picture stands beside, which others on the machine disturb less. Fails
when a figure is not as good as TARGETS asks.
"""
import argparse
import json
import os
import subprocess
import sys

import bench_rows

PICTURES, BATCH = 512, 32
# name of a row -> (least or most, ratio)
TARGETS = {
    "pictures": ("least", 1.0),
    "processor time of a picture": ("most", 1.0),
}


class Program:
    """One that does an epoch for each line it is given."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.rates, self.costs = [], []

    def run(self, counts):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())
        if not counts:
            return
        self.rates.append(result["pictures"] / result["seconds"])
        self.costs.append(result["processor"] / result["pictures"] * 1e3)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(options, folder, threads):
    programs = [Program([options.bench, folder, str(BATCH), str(threads)]),
                Program([options.peer_python, f"{sys.path[0]}/torch_loading_peer.py", folder,
                         str(BATCH), str(threads)])]
    for number in range(options.rounds + 1):
        for program in programs:
            program.run(number > 0)
    for program in programs:
        program.end()
    ours, theirs = programs
    return [bench_rows.row("pictures", threads, ours.rates, theirs.rates, "DataLoader", "1/s"),
            bench_rows.row("processor time of a picture", threads, ours.costs, theirs.costs,
                           "DataLoader", "ms")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--peer-python", default="/usr/bin/python3")
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    folder = f"{options.out}/loading/pictures-{PICTURES}"
    if not os.path.exists(folder):
        subprocess.run([options.peer_python, f"{sys.path[0]}/torch_loading_peer.py", "--make",
                        f"{folder}.new", str(PICTURES)], check=True)
        os.rename(f"{folder}.new", folder)
    rows = measure(options, folder, 1) + measure(options, folder, 2)
    lines = [[f"{entry['name']}, {entry['threads']} threads", f"{entry['ours']:.4g}",
              f"{entry['other']:.4g}", entry["unit"], f"{entry['ratio']:.2f}"] for entry in rows]
    bench_rows.show_table(["", "ours", "DataLoader", "", "ratio"], lines)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} cores")
    bench_rows.save(f"{options.out}/../bench.json", rows)
    failed = False
    for entry in rows:
        kind, bound = TARGETS[entry["name"]]
        if entry["ratio"] < bound if kind == "least" else entry["ratio"] > bound:
            print(f"NOT MET {entry['name']}, {entry['threads']} threads: ratio "
                  f"{entry['ratio']:.3g}, at {kind} {bound} was asked")
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
