"""Whether a process leaks: the rule of the soak, on what it held at least between two faults.

  leaks.py SERIES.json...     judges stored series

A series is of one life of a process: {"name": ..., "points": [point, ...]}, one point for each time
from a fault to the next. A point has `strangers`, the connections of strangers that the process has
seen by its end, and what the process held at least meanwhile: `blocks` and `bytes` of the heap
(heap_watch.c), `mappings`, `threads` and `files`. The least, since messages come and go.

Of memory that is taken once and used again a process holds more and more for a while, in steps that
become rare. A leak does not stop. So the second half of a life is looked at, over its faults and over
its strangers, and a leak is what holds in it and still does in its last part:

- The slope is the median of those of all pairs of points (Theil and Sen), and its bound the least
  slope at 99.5 % by Kendall's rank statistic: a step, however high, moves neither.
- A process that is between two runs holds less than one that computes. Only points are compared that
  differ by less than a few percent, unless all together show the leak.
- What is below the tolerance is none: an eighth of a block a fault.
"""
import json
import math
import sys

LEAST_POINTS = 10  # of the part that is judged
LEAST_PLACES = 4  # different places of x in it
GAP = 0.02  # between two states of a process
BOUND = 2.58  # deviations of the rank statistic
# what is a leak, for each fault and for each stranger
TOLERANCE = {"blocks": (0.125, 0.02), "bytes": (16, 2), "mappings": (0.05, 0.01), "threads": (0.05, 0.01),
             "files": (0.05, 0.01)}


def ties(values):
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return [count for count in counts.values() if count > 1]


def variance_term(count):
    return count * (count - 1) * (2 * count + 5)


def states(points):
    """Splits [(x, y)] where sorted y have a gap."""
    groups = []
    for point in sorted(points, key=lambda p: p[1]):
        if groups and point[1] - groups[-1][-1][1] <= GAP * abs(point[1]):
            groups[-1].append(point)
        else:
            groups.append([point])
    return groups


def trend(groups):
    """(slope, least and most that it may be) over pairs within each group; None: too few."""
    slopes, variance = [], 0.0
    for group in groups:
        pairs = [(a, b) for i, a in enumerate(group) for b in group[:i] if a[0] != b[0]]
        slopes += [(a[1] - b[1]) / (a[0] - b[0]) for a, b in pairs]
        variance += variance_term(len(group)) / 18
        variance -= sum(variance_term(count) for count in ties([x for x, _ in group])) / 18
    if not slopes:
        return None
    slopes.sort()
    count = len(slopes)
    margin = BOUND * math.sqrt(max(variance, 0))
    low, high = math.floor((count - margin) / 2), math.ceil((count + margin) / 2)
    return (slopes[count // 2], slopes[low] if low >= 0 else -math.inf, slopes[high] if high < count else math.inf)


def find_leak(points, tolerance):
    """(slope, least, most, whether it is a leak) of [(x, y)]; None: there is too little to say."""
    if len(points) < LEAST_POINTS or len({x for x, _ in points}) < LEAST_PLACES:
        return None
    found = [trend(states(points)), trend([points])]
    found = [one for one in found if one is not None]
    leaks = [one for one in found if one[1] > tolerance]
    last = points[len(points) // 2:]
    least = max(tolerance, leaks[0][0] / 4) if leaks else 0
    later = trend(states(last)) or trend([last])
    return (*(leaks or found)[0], bool(leaks and later is not None and later[0] > least))


def judge(series):
    """[(what, over what, slope, least, most, whether it is a leak)] of a life."""
    points = series["points"]
    second = points[len(points) // 2:]
    behind = [p for p in second if p["strangers"] > 0]
    rows = []
    for what, (a_fault, a_stranger) in TOLERANCE.items():
        over = [("fault", a_fault, [(i, p[what]) for i, p in enumerate(second)]),
                ("stranger", a_stranger, [(p["strangers"], p[what]) for p in behind])]
        for name, tolerance, pairs in over:
            found = find_leak(pairs, tolerance)
            if found is not None:
                rows.append((what, name, *found))
    return rows


def describe(series, rows):
    """Lines about a life: what leaks, and how sharply heap blocks were seen."""
    lines = []
    for what, over, slope, least, most, leaks in rows:
        if leaks or (what, over) == ("blocks", "fault"):
            lines.append(f"{series['name']}, {len(series['points'])} times: {slope:+.3g} {what} a {over}, "
                         f"from {least:+.3g} to {most:+.3g}{' LEAKS' if leaks else ''}")
    return lines


def main():
    leaking = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for series in json.load(file):
                rows = judge(series)
                leaking = leaking or any(row[-1] for row in rows)
                print("\n".join(describe(series, rows)))
    return 1 if leaking else 0


if __name__ == "__main__":
    sys.exit(main())
