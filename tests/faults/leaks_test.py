"""The rule of leaks.py on stored series: those of a soak that had no leak pass; the same with a leak laid on
top do not, nor does one of a soak with a planted leak; what grows and stops passes."""
import copy
import json
import math
import os
import sys

from leaks import judge

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "series")
wrong = []


def load(name):
    with open(f"{FOLDER}/{name}.json", encoding="utf-8") as file:
        return json.load(file)


def found(series):
    """{(what, over what)} that leaks."""
    return {(what, over) for what, over, *_, leaks in judge(series) if leaks}


def laid(series, more):
    """`more(number of the point, point)` blocks of 64 bytes on top of each point."""
    series = copy.deepcopy(series)
    for i, point in enumerate(series["points"]):
        blocks = round(more(i, point))
        point["blocks"] += blocks
        point["bytes"] += 64 * blocks
    return series


def expect(what, series, leaks):
    if bool(found(series)) != leaks:
        wrong.append(f"{what}, {series['name']}: {found(series) or 'no leak'}")


honest = load("honest")
long = [one for one in honest if len(one["points"]) >= 40]
if not long:
    wrong.append("too few lives")
for one in honest:
    count = len(one["points"])
    expect("honest", one, False)
    expect("a step in the middle of what is judged", laid(one, lambda i, p: 500 * (i > count * 3 // 4)), False)
    expect("a step at the end", laid(one, lambda i, p: 500 * (i > count - 3)), False)
    expect("a cache that fills", laid(one, lambda i, p: 2000 * (1 - math.exp(-i / 4))), False)
for one in long:
    expect("a block a fault", laid(one, lambda i, p: i), True)
    expect("a block every second fault", laid(one, lambda i, p: i / 2), True)
    expect("twenty blocks a fault", laid(one, lambda i, p: 20 * i), True)
    expect("a block for each of 1500 steps between faults", laid(one, lambda i, p: 1500 * i), True)
    visited = copy.deepcopy(one)
    for i, point in enumerate(visited["points"]):
        point["strangers"] = 200 * (i // 4)
    expect("a block a stranger", laid(visited, lambda i, p: p["strangers"]), True)
for one in load("planted"):
    expect("planted", one, True)
for text in wrong:
    print(f"FAILED: {text}")
sys.exit(1 if wrong else 0)
