#!/usr/bin/python3
"""Transports beside raw TCP over loopback: throughput, CPU time and round trips.

  transport_table.py --bench build/gcc/tests/bench/transport_bench [--out build/bench] [--rounds R]

All ways take turns, round after round; a figure is the median of its rounds, and a ratio that of
two such medians. Prints a table, puts the rows into build/bench.json, and fails when a figure is
not as good as TARGETS asks.
"""
import argparse
import json
import os
import subprocess
import sys

import bench_rows

HERE = os.path.dirname(os.path.abspath(__file__))
KIB, MIB = 1 << 10, 1 << 20
SIZES = [64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
TOTAL = 1024 * MIB
TOTAL_TLS = 256 * MIB
ROUND_TRIPS = 10000
# name of a row -> (field, least or most)
TARGETS = {
    "transport grpc 1 MiB": ("ratio", "least", 0.80),
    "transport grpc 16 MiB": ("ratio", "least", 0.65),
    "transport grpc tls 1 MiB": ("ratio", "least", 0.22),
    "transport grpc tls 16 MiB": ("ratio", "least", 0.22),
    "transport grpc 1 MiB cpu": ("ours", "most", 0.6),
    "transport grpc 4 MiB cpu": ("ours", "most", 0.6),
    "transport grpc 16 MiB cpu": ("ours", "most", 0.6),
    "transport grpc 64 MiB cpu": ("ours", "most", 0.6),
    "transport grpc round trip": ("ratio", "most", 1.7),
    "transport ring round trip spinning": ("ours", "most", 20),
}
for size_text in ("64 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB"):
    TARGETS[f"transport ring {size_text}"] = ("ours", "least", 3.0)
    TARGETS[f"transport ring {size_text} cpu"] = ("ours", "most", 0.4)


def size_name(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def measure(options, *arguments):
    output = subprocess.run([options.bench, *map(str, arguments)], check=True,
                            stdout=subprocess.PIPE).stdout
    return json.loads(output)


def make_certificates(options):
    folder = f"{options.out}/certificates"
    subprocess.run([f"{HERE}/../support/make_certificates.sh", folder], check=True)
    return folder


def field(runs, name):
    return [run[name] for run in runs]


def throughput_rows(options, size, certificates):
    tcp, plain, tls, ring = [], [], [], []
    for _ in range(options.rounds):
        tcp.append(measure(options, "throughput", "tcp", size, TOTAL))
        plain.append(measure(options, "throughput", "grpc", size, TOTAL))
        tls.append(measure(options, "throughput", "grpc", size, TOTAL_TLS, certificates))
        ring.append(measure(options, "throughput", "grpc+ring", size, TOTAL))
    name = size_name(size)
    for run in plain + tls:
        if run["copies_sender"] != 0 or run["copies_receiver"] > 1:
            sys.exit(f"transport_table.py: {name}: bytes were copied more than once: {run}")
    for run in ring:  # once into shared memory, once out of it
        if run["copies_sender"] != 1 or run["copies_receiver"] != 1:
            sys.exit(f"transport_table.py: {name}: memory was not shared: {run}")
    rows = []
    for way, runs in (("grpc", plain), ("grpc tls", tls), ("ring", ring)):
        rows.append(bench_rows.row(f"transport {way} {name}", 1, field(runs, "gb_per_s"),
                                   field(tcp, "gb_per_s"), "raw TCP", "GB/s"))
        rows.append(bench_rows.row(f"transport {way} {name} cpu", 1, field(runs, "cpu_s_per_gb"),
                                   field(tcp, "cpu_s_per_gb"), "raw TCP", "s/GB"))
    return rows


def round_trip_rows(options, certificates):
    ways = {"tcp": [], "grpc": [], "grpc+thread": [], "tls": [], "grpc+ring": [], "tcp+spin": [],
            "grpc+ring+spin": []}
    for _ in range(options.rounds):
        for way, runs in ways.items():
            more = [certificates] if way == "tls" else []
            way = "grpc" if way == "tls" else way
            runs.append(measure(options, "round-trip", way, ROUND_TRIPS, *more)["median_us"])
    names = {"grpc": ("grpc round trip", "tcp"),
             "grpc+thread": ("grpc round trip from a thread", "tcp"),
             "tls": ("grpc round trip tls", "tcp"),
             "grpc+ring": ("ring round trip", "tcp"),
             "grpc+ring+spin": ("ring round trip spinning", "tcp+spin")}
    return [bench_rows.row(f"transport {name}", 1, ways[way], ways[peer],
                           "raw TCP" if peer == "tcp" else "raw TCP that spins", "us")
            for way, (name, peer) in names.items()]


def misses(rows):
    """What is not as good as asked, as texts."""
    found = []
    for entry in rows:
        if entry["name"] not in TARGETS:
            continue
        key, kind, bound = TARGETS[entry["name"]]
        value = entry[key]
        if value < bound if kind == "least" else value > bound:
            found.append(f"{entry['name']}: {key} {value:.3g}, at {kind} {bound} was asked")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    certificates = make_certificates(options)
    rows = []
    for size in SIZES:
        rows += throughput_rows(options, size, certificates)
    rows += round_trip_rows(options, certificates)
    lines = [[entry["name"], f"{entry['ours']:.3g}", f"{entry['other']:.3g}", entry["unit"],
              f"{entry['ratio']:.2f}"] for entry in rows]
    bench_rows.show_table(["over loopback", "ours", "raw TCP", "", "ratio"], lines)
    bench_rows.save(f"{options.out}/../bench.json", rows)
    found = misses(rows)
    for text in found:
        print("NOT MET " + text)
    print(f"medians of {options.rounds} rounds; checksums computed and compared, by other "
          "threads than the transport's")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
