"""From kill -9 to the next loss, with a model of 256 MiB over four workers on this machine.

  recovery_time.py [--size 2896] [--repeats 5] [--only PATTERN]

Prints for each case the median and the longest of: until the loss was noticed, until all were
loaded again ("reload": from the decision to the first round), and until the next loss, which
includes the steps since the checkpoint that are done again. Exit code 1 when numbers differ, or when
the next loss came more than 3 s plus the reload after the kill.
"""
import argparse
import re
import shutil
import statistics
import sys
import tempfile

from training import Scene

CASES = {
    "worker waits": ("wait", "worker2", 0),
    "worker spare": ("spare", "worker2", 1),
    "worker replan": ("replan", "worker4", 0),
    "coordinator": ("wait", "coordinator", 0),
}


def measure(scene, kind, victim, at):
    training = scene.begin(again=None if kind != "wait" else 0.05, coordinator_again=0.05)
    training.lives_limit = 3
    training.start()
    if not training.until(lambda: training.step() >= at, 120):
        result = training.finish(1)
        return result, None
    training.keeper.now(victim).kill()
    result = training.finish(180)
    first = training.kills[0] if training.kills else None
    parts = {}
    for name, pattern in (("noticed", r"lost worker|lost the"), ("ready", r"goes on|recovered|from step")):
        times = [t for t in training.said("coordinator", pattern) if first and t >= first - 0.01]
        parts[name] = times[0] - first if times else None
    parts["loss"] = result.to_next_loss
    if not result.wrong:
        shutil.rmtree(training.folder, ignore_errors=True)
    return result, parts


def show(name, values):
    values = [v for v in values if v is not None]
    if not values:
        return f"{name} -"
    return f"{name} {statistics.median(values):.2f} s (longest {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=2896, help="eight matrices of so many rows")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="penstock-recovery-")
    wrong = 0
    for case, (kind, victim, spares) in CASES.items():
        if not re.search(options.only, case):
            continue
        scene = Scene(f"{folder}/{kind}{spares}", f"wide:{options.size}", steps=options.steps,
                      every="2 steps", workers=4, spares=spares, placement="strategy: dynamic_programming",
                      recovery=f"on_loss: {kind}, grace: {'20 s' if kind == 'wait' else '0 s'}, attempts: 9")
        scene.expected()
        found = {}
        for repeat in range(options.repeats):
            result, parts = measure(scene, kind, victim, 4 + repeat % 3)
            for text in result.wrong:
                print(f"WRONG {case}: {text}")
            wrong += bool(result.wrong)
            for name, value in (parts or {}).items():
                found.setdefault(name, []).append(value)
        print(f"{case:14s} {options.repeats} kills: " +
              ", ".join(show(name, values) for name, values in found.items()), flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
