"""Each strategy on each workload of a folder: value, lower bound, gap, seconds, and the ratio to the
best value known where a best_known.csv lies in the folder or beside it. Values are worked out anew
from the placement (workload_judge.py), so a wrong one shows.
"""
import csv
import glob
import json
import math
import os
import subprocess

import bench_rows
import workload_judge

STRATEGIES = ["auto", "local_search", "dynamic_programming", "metis", "greedy", "round_robin",
              "random"]
BETTER = 0.9999    # ratio to the best known below which a value is a new best
TOLERANCE = 1e-6  # between our value and the program's, relative


def best_known(folder):
    """{(set, name): row} of the file of best values, {} if there is none."""
    for path in (f"{folder}/best_known.csv", f"{folder}/../best_known.csv"):
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return {(entry["set"], entry["name"]): entry for entry in csv.DictReader(file)}
    return {}


def workloads(folder):
    paths = sorted(glob.glob(f"{folder}/**/*.json", recursive=True))
    return [(os.path.basename(os.path.dirname(path)), os.path.basename(path)[:-5], path)
            for path in paths]


def place(options, path, strategy, objective, is_contiguous, seconds):
    """The report of `penstock place`, or None when the strategy found nothing."""
    command = [options.penstock, "place", path, "--strategy", strategy, "--objective", objective,
               "--time-limit", f"{seconds:g}s", "--json", "--quiet"]
    if is_contiguous:
        command.append("--contiguous")
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    return json.loads(run.stdout) if run.returncode == 0 else None


def known_value(known, entry, objective, is_contiguous):
    column = "latency" if objective == "latency" else "contig" if is_contiguous else "free"
    text = known.get(entry, {}).get(column, "")
    return float(text) if text else None


class Summary:
    """Ratios of one strategy to the best values known."""

    def __init__(self):
        self.ratios, self.gaps, self.seconds, self.failures = [], [], [], 0

    def line(self, name, kind):
        mean = lambda values: math.exp(sum(map(math.log, values)) / len(values)) if values else None
        text = lambda value: "-" if value is None else f"{value:.4f}"
        return [f"{name}, {kind}", text(mean(self.ratios)), text(max(self.ratios, default=None)),
                text(mean([1 + gap for gap in self.gaps])),
                f"{max(self.seconds, default=0):.2f}", str(self.failures)]


def measure(options, workload, entry, run, known, summary):
    """One run: a line of the table and a row of the file."""
    strategy, objective, is_contiguous, seconds = run
    kind = objective if objective == "latency" else "contiguous" if is_contiguous else "free"
    report = place(options, entry[2], strategy, objective, is_contiguous, seconds)
    if report is None:
        summary.failures += 1
        return [f"{entry[1]} {kind}", strategy, "-", "-", "-", "-", "-", "no placement"], []
    placement = {int(node): device for node, device in report["placement"].items()}
    value, faults = workload_judge.judge(workload, placement, objective, is_contiguous)
    if not faults and abs(value - report["value"]) > TOLERANCE * value:
        faults = [f"the program says {report['value']:.6f}"]
    best = known_value(known, entry[:2], objective, is_contiguous)
    bound = report["lower_bound"]
    gap = value / bound - 1 if bound > 0 else 0.0
    summary.failures += bool(faults)
    if not faults:
        summary.gaps.append(gap)
        summary.seconds.append(report["seconds"])
        if best is not None:
            summary.ratios.append(value / best)
    line = [f"{entry[1]} {kind}", strategy, f"{value:.4f}", f"{bound:.4f}", f"{100 * gap:.2f}",
            "-" if best is None else f"{value / best:.4f}", f"{report['seconds']:.3f}",
            "; ".join(faults[:2]) or "valid"]
    other, name = (bound, "lower bound") if best is None else (best, "best known")
    row = bench_rows.row(f"place {entry[0]}/{entry[1]}, {kind}, {strategy}", 0, [value], [other],
                         name, "ms", ) if not faults else None
    return line, [row] if row else []


def table(options, folder):
    """Prints the table and its summary; returns rows."""
    known, rows, lines, summaries, news = best_known(folder), [], [], {}, {}
    for entry in workloads(folder):
        workload = workload_judge.load(entry[2])
        is_latency = entry[0] == "latency"
        for is_contiguous in ([False] if is_latency else [True, False]):
            for strategy in STRATEGIES:
                objective = "latency" if is_latency else "throughput"
                seconds = options.seconds * (2 if is_latency else 1)
                kind = "latency" if is_latency else "contiguous" if is_contiguous else "free"
                summary = summaries.setdefault((strategy, kind), Summary())
                run = (strategy, objective, is_contiguous, seconds)
                line, made = measure(options, workload, entry, run, known, summary)
                lines.append(line)
                if line[5] != "-" and float(line[5]) < BETTER:
                    news[line[0]] = min(news.get(line[0], math.inf), float(line[2]))
                rows += made
    print(f"placement of the workloads in {folder}, {options.seconds:g} s (latency twice that), "
          "ms")
    bench_rows.show_table(["workload", "strategy", "value", "bound", "gap %", "to best", "seconds",
                           "judged"], lines)
    bench_rows.show_table(["all of them", "mean to best", "worst to best", "mean to bound",
                           "seconds at most", "failures"],
                          [summary.line(*key) for key, summary in sorted(summaries.items())])
    for name, value in sorted(news.items()):
        print(f"better than the best known: {name}, {value:.4f}")
    return rows
