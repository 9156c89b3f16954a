#!/usr/bin/python3
"""Transports beside raw TCP: throughput, CPU time and round trips.

  transport_table.py --bench build/gcc/tests/bench/transport_bench [--out build/bench] [--rounds R]
                     [--sizes BYTES...] [--lines loopback,veth]

Over loopback, and between two hosts of this machine (bench_hosts.py), which takes root. All ways take turns, round after round; a figure is the median of its rounds, and a ratio that of
two such medians. Prints a table, puts the rows into build/bench.json, and fails when a figure is
not as good as TARGETS asks.
"""
import argparse
import json
import os
import subprocess
import sys

import bench_hosts
import bench_rows

HERE = os.path.dirname(os.path.abspath(__file__))
KIB, MIB = 1 << 10, 1 << 20
SIZES = [64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
TOTAL = 1024 * MIB
TOTAL_TLS = 256 * MIB
ROUND_TRIPS = 10000
# name of a row -> (field, least or most)
TARGETS = {
    "transport grpc veth 1 MiB": ("ratio", "least", 0.80),
    "transport grpc veth 1 MiB cpu": ("ours", "most", 0.7),
    "transport grpc 16 MiB": ("ratio", "least", 0.65),
    "transport grpc tls 1 MiB": ("ratio", "least", 0.22),
    "transport grpc tls 16 MiB": ("ratio", "least", 0.22),
    "transport grpc 4 MiB cpu": ("ours", "most", 0.6),
    "transport grpc 16 MiB cpu": ("ours", "most", 0.6),
    "transport grpc 64 MiB cpu": ("ours", "most", 0.6),
    "transport grpc round trip": ("ratio", "most", 1.7),
    "transport ring round trip": ("ours", "most", 20),
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
    subprocess.run([f"{HERE}/../support/make_certificates.sh", folder,
                    f"IP:{bench_hosts.ADDRESS}"], check=True)
    return folder


def field(runs, name):
    return [run[name] for run in runs]


def rows_of(ways, name, line, peer):
    """Two rows of each way beside raw TCP: throughput, and processor time of both ends."""
    rows, tcp = [], ways["tcp"]
    for way, runs in ways.items():
        if way == "tcp":
            continue
        rows.append(bench_rows.row(f"transport {way}{line} {name}", 1, field(runs, "gb_per_s"),
                                   field(tcp, "gb_per_s"), peer, "GB/s"))
        rows.append(bench_rows.row(f"transport {way}{line} {name} cpu", 1,
                                   field(runs, "cpu_s_per_gb"), field(tcp, "cpu_s_per_gb"), peer,
                                   "s/GB"))
    return rows


def check_copies(name, ways):
    for way, most in (("grpc", [0, 1]), ("grpc tls", [0, 1]), ("ring", [1, 1])):
        for run in ways.get(way, []):
            if run["copies_sender"] > most[0] or run["copies_receiver"] > most[1]:
                sys.exit(f"transport_table.py: {name}: bytes were copied too often: {run}")
            if way == "ring" and run["copies_sender"] != 1:
                sys.exit(f"transport_table.py: {name}: memory was not shared: {run}")


def throughput_rows(options, size, certificates):
    ways = {"tcp": [], "grpc": [], "grpc tls": [], "ring": []}
    for _ in range(options.rounds):
        ways["tcp"].append(measure(options, "throughput", "tcp", size, TOTAL))
        ways["grpc"].append(measure(options, "throughput", "grpc", size, TOTAL))
        ways["grpc tls"].append(measure(options, "throughput", "grpc", size, TOTAL_TLS, "--tls",
                                        certificates))
        ways["ring"].append(measure(options, "throughput", "grpc+ring", size, TOTAL))
    check_copies(size_name(size), ways)
    return rows_of(ways, size_name(size), "", "raw TCP")


def host_rows(options, size, certificates, hosts):
    """Between two hosts. Raw TCP makes no checksums; beside it stands one that does, and the least
    program that sends over gRPC with checksums: what the transport could reach at most."""
    ways = {"tcp": [], "grpc": [], "grpc tls": [], "tcp+sums": [], "bare+sums": []}
    for _ in range(options.rounds):
        for way, runs in ways.items():
            tls = ["--tls", certificates] if way == "grpc tls" else []
            runs.append(measure(options, "throughput", way.split()[0], size,
                                TOTAL_TLS if tls else TOTAL, *tls, *hosts.options()))
    check_copies(size_name(size), ways)
    peer = f"raw TCP without checksums: {ways['tcp'][0]['line']}"
    return rows_of(ways, size_name(size), " veth", peer)


def host_round_trip_rows(options, certificates, hosts):
    ways = {"tcp": [], "grpc": [], "grpc tls": []}
    for _ in range(options.rounds):
        for way, runs in ways.items():
            tls = ["--tls", certificates] if way == "grpc tls" else []
            runs.append(measure(options, "round-trip", way.split()[0], ROUND_TRIPS, *tls,
                                *hosts.options())["median_us"])
    return [bench_rows.row(f"transport {way} veth round trip", 1, ways[way], ways["tcp"], "raw TCP",
                           "us") for way in ("grpc", "grpc tls")]


def round_trip_rows(options, certificates):
    ways = {"tcp": [], "grpc": [], "grpc+thread": [], "tls": [], "grpc+ring": [], "tcp+spin": [],
            "grpc+ring+spin": [], "tcp+pause": [], "grpc+pause": [], "grpc+ring+pause": []}
    for _ in range(options.rounds):
        for way, runs in ways.items():
            more = ["--tls", certificates] if way == "tls" else []
            way = "grpc" if way == "tls" else way
            count = ROUND_TRIPS // 10 if "+pause" in way else ROUND_TRIPS
            runs.append(measure(options, "round-trip", way, count, *more)["median_us"])
    names = {"grpc": ("grpc round trip", "tcp"),
             "grpc+thread": ("grpc round trip from a thread", "tcp"),
             "tls": ("grpc round trip tls", "tcp"),
             "grpc+ring": ("ring round trip", "tcp"),
             "grpc+ring+spin": ("ring round trip spinning", "tcp+spin"),
             "grpc+pause": ("grpc round trip after a pause", "tcp+pause"),
             "grpc+ring+pause": ("ring round trip after a pause", "tcp+pause")}
    others = {"tcp": "raw TCP", "tcp+spin": "raw TCP that spins", "tcp+pause": "raw TCP, likewise"}
    return [bench_rows.row(f"transport {name}", 1, ways[way], ways[peer], others[peer], "us")
            for way, (name, peer) in names.items()]


def all_host_rows(options, certificates):
    why = bench_hosts.why_none()
    if why is not None:
        print(f"NOT MEASURED between hosts: {why}", flush=True)
        return []
    rows = []
    with bench_hosts.HostPair() as hosts:
        for size in options.sizes:
            rows += host_rows(options, size, certificates, hosts)
        rows += host_round_trip_rows(options, certificates, hosts)
    return rows


def all_loopback_rows(options, certificates):
    rows = []
    for size in options.sizes:
        rows += throughput_rows(options, size, certificates)
    return rows + round_trip_rows(options, certificates)


def show(rows):
    lines = [[entry["name"], f"{entry['ours']:.3g}", f"{entry['other']:.3g}", entry["unit"],
              f"{entry['ratio']:.2f}", entry["other_name"]] for entry in rows]
    bench_rows.show_table(["", "ours", "other", "", "ratio", "other is"], lines)


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
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--lines", default="loopback,veth", type=lambda text: text.split(","))
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    certificates = make_certificates(options)
    rows = []
    if "loopback" in options.lines:
        rows += all_loopback_rows(options, certificates)
    if "veth" in options.lines:
        rows += all_host_rows(options, certificates)
    show(rows)
    bench_rows.save(f"{options.out}/../bench.json", rows)
    found = misses(rows)
    for text in found:
        print("NOT MET " + text)
    print(f"medians of {options.rounds} rounds; checksums computed and compared, by other "
          "threads than the transport's")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
