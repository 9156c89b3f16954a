"""Runs a training and says what its processes hold early and late.

  watch_memory.py STEPS COMMAND...: prints one JSON object with the anonymous resident KiB of the
  command and of each process it started, at step 10 and near step STEPS, by name of the process.

COMMAND is `penstock train JOB --json --steps STEPS`, whose steps come as they are done.
"""
import json
import os
import subprocess
import sys
import time


def status(process, key):
    with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    return 0


def family(process):
    """The process and its children, in order of their ids."""
    found = [process]
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if status(entry, "PPid") == process:
                    found.append(int(entry))
            except OSError:
                pass  # it has ended
    return sorted(found)


def resident(processes):
    return [status(process, "RssAnon") for process in processes]


def main():
    count = int(sys.argv[1])
    near = count - max(100, count // 20)
    with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE) as child:
        seen, early, late, processes = 0, None, None, []
        started = time.monotonic()
        while True:
            part = os.read(child.stdout.fileno(), 1 << 16)
            if not part:
                break
            seen += part.count(b'"step"')
            if early is None and seen >= 10:
                processes = family(child.pid)
                early, first = resident(processes), seen
            if late is None and seen >= near:
                late, last = resident(processes), seen
        seconds = time.monotonic() - started
    if child.returncode != 0 or late is None:
        sys.exit(f"ended with {child.returncode} after {seen} steps")
    print(json.dumps({"early_step": first, "late_step": last, "early": early, "late": late,
                      "grown": max(b - a for a, b in zip(early, late)), "seconds": seconds}))


main()
