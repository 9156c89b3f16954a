#!/usr/bin/python3
"""Checks a file against the rules of Chrome's trace event format, as ui.perfetto.dev reads it.

check_trace.py FILE [EXPRESSION]: exits with 1 and says what is wrong. The expression is of `d`, the
whole file, `spans`, its "X" events, `rows`, the names of (pid, tid), `processes`, those of pids, and `order`, the names
of rows from top to bottom.
"""
import json
import sys
from collections import defaultdict


def fail(message):
    sys.exit(f"{sys.argv[1]}: {message}")


def number(event, key):
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        fail(f"{key} of {event}")
    return value


def main():
    d = json.load(open(sys.argv[1]))
    events = d["traceEvents"]
    processes, rows, spans, last = {}, {}, [], 0
    places = {}  # of a pid, or a (pid, tid)
    ends, arrows, counters = defaultdict(list), defaultdict(list), set()
    for event in events:
        phase, pid = event["ph"], event["pid"]
        if not isinstance(event["name"], str) or not isinstance(pid, int):
            fail(f"name or pid of {event}")
        if phase == "M":
            names = {"process_name": processes, "thread_name": rows}.get(event["name"])
            if names is not None:
                names[pid if names is processes else (pid, event["tid"])] = event["args"]["name"]
            elif not isinstance(event["args"]["sort_index"], int):
                fail(f"sort_index of {event}")
            else:
                is_process = event["name"] == "process_sort_index"
                places[pid if is_process else (pid, event["tid"])] = event["args"]["sort_index"]
            continue
        at = number(event, "ts")
        if at < last:
            fail(f"{at} after {last}")
        last = at
        if phase == "C":
            counters.add((pid, event["name"]))
            if not event["args"] or not all(isinstance(v, (int, float)) and v >= 0 for v in event["args"].values()):
                fail(f"counter {event}")
            continue
        row = (pid, event["tid"])
        if row not in rows or pid not in processes:
            fail(f"row or process without a name: {event}")
        if phase == "X":
            end = at + number(event, "dur")
            spans.append(event)
            for other in ends[row][-1:]:
                if at < other:
                    fail(f"{event['name']} at {at} overlaps what ends at {other} in '{rows[row]}'")
            ends[row].append(end)
        elif phase in "sf":
            if phase == "f" and event.get("bp") != "e":
                fail(f"an arrow that does not end at what encloses it: {event}")
            arrows[event["cat"], event["id"]].append(event)
        else:
            fail(f"phase {phase}")
    within = defaultdict(list)
    for span in spans:
        within[span["pid"], span["tid"]].append(span)
    for key, both in arrows.items():
        if [e["ph"] for e in both] != ["s", "f"]:
            fail(f"arrow {key} has ends {[e['ph'] for e in both]}")
        for end in both:
            if not any(s["ts"] <= end["ts"] <= s["ts"] + s["dur"] for s in within[end["pid"], end["tid"]]):
                fail(f"an arrow begins or ends at nothing: {end}")
    if len(sys.argv) > 2:
        drawn = sorted(rows, key=lambda row: (places[row[0]], places[row]))
        order = [rows[row] for row in drawn]
        known = {"d": d, "order": order, "spans": spans, "rows": rows, "processes": processes, "arrows": arrows, "counters": counters}
        if not eval(f"({sys.argv[2]})", known):
            fail(f"{sys.argv[2]} does not hold")


main()
