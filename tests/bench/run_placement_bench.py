#!/usr/bin/python3
"""The tables of placement in `make bench`.

  run_placement_bench.py --penstock P --giant G [--workloads DIR] [--seconds S] [TABLE...]

Tables: workloads (each strategy on each workload of DIR, or on graphs made here), steps (what is
saved against random placement and one device), giants (very large graphs, and the speed of small
ones). Rows go into build/bench.json beside those of the other benchmarks.
"""
import argparse

import bench_rows
import giant_table
import placement_graphs
import placement_table
import step_time_table

TABLES = ["workloads", "steps", "giants"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--giant", required=True, help="the program giant_bench")
    parser.add_argument("--workloads", default="", help="a folder of workloads, JSON")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each placement")
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--json", default="build/bench.json")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    options = parser.parse_args()
    for name in options.tables:
        if name not in TABLES:
            parser.error(f"no table '{name}'; there are {', '.join(TABLES)}")
    folder = options.workloads
    chosen = options.tables or TABLES
    if not folder and set(chosen) & {"workloads", "steps"}:
        folder = placement_graphs.export(f"{options.out}/placement")
    if "workloads" in chosen:
        bench_rows.save(options.json, placement_table.table(options, folder))
    if "steps" in chosen:
        bench_rows.save(options.json, step_time_table.table(options, folder))
    if "giants" in chosen:
        bench_rows.save(options.json, giant_table.table(options))


if __name__ == "__main__":
    main()
