"""Rows of build/bench.json: made, kept beside those of other benchmarks, shown."""
import json
import os
import statistics


def row(name, threads, ours, theirs, peer, unit):
    """One figure beside another; `ours` and `theirs` are lists of runs, their medians count."""
    mine, other = statistics.median(ours), statistics.median(theirs)
    return {"name": name, "threads": threads, "ours": round(mine, 6), "other": round(other, 6),
            "other_name": peer, "unit": unit, "ratio": round(mine / other, 4) if other else 0.0,
            "runs": len(ours)}


def save(path, rows):
    """Puts rows into the file: those there with the same name and threads are replaced."""
    kept = []
    if os.path.exists(path):
        with open(path, encoding="ascii") as file:
            kept = json.load(file)
    new = {(entry["name"], entry["threads"]) for entry in rows}
    kept = [entry for entry in kept if (entry["name"], entry["threads"]) not in new]
    with open(path, "w", encoding="ascii") as file:
        json.dump(kept + rows, file, indent=1)
        file.write("\n")


def show_table(heads, lines):
    """Prints lines of texts under their heads: the first column to the left, others right."""
    widths = [max(len(line[i]) for line in [heads] + lines) for i in range(len(heads))]
    for line in [heads] + lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("  ".join(cells).rstrip())
    print(flush=True)
