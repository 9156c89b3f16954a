"""What guarding against faults costs when none happens.

  fault_cost.py [--rounds 5] [--steps 300] [--size 512]

Trainings over two workers, by turns: with the settings that jobs have by themselves, with a lease so
long that nothing is beaten or watched, and with checkpoints at the interval of Young and Daly for a
mean time between failures of MTBF. Prints the median step of each and what it takes more; on a machine that
does other work, the time of the processors says more than the wall's.
"""
import argparse
import shutil
import statistics
import tempfile
import time

from processes import processor_seconds
from training import Scene

BASE = "on_loss: wait, grace: 20 s"


def costs_of_step(scene):
    """(seconds, seconds of processors) a step, after a warm-up, pauses for checkpoints included."""
    training = scene.begin()
    training.start()
    spent = {}

    def look():
        for life in training.keeper.all_lives():
            seconds = processor_seconds(life.pid) if life.code is None else None
            if seconds is not None:
                spent[life.pid] = seconds
        return sum(spent.values()), training.step(), time.monotonic()

    training.until(lambda: training.step() >= 20, 120)
    cpu_before, low, begun = look()
    cpu, high, ended = cpu_before, low, begun
    while not training.is_over() and time.monotonic() < begun + 600:
        training.turn(0.02)
        if not training.is_over() and training.step() < scene.steps:
            cpu, high, ended = look()
    result = training.finish(60)
    if result.wrong:
        raise SystemExit(f"WRONG: {result.wrong}")
    shutil.rmtree(training.folder, ignore_errors=True)
    return (ended - begun) / (high - low), (cpu - cpu_before) / (high - low)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--mtbf", default="1800 s")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="penstock-cost-")
    kinds = {
        "unguarded": (f"{BASE}, lease: 1e6 s, progress: 1e6 s", ""),
        "guarded": (BASE, ""),
        "checkpoints": (BASE, f", mtbf: {options.mtbf}"),
    }
    scenes = {}
    for name, (recovery, checkpoint) in kinds.items():
        scenes[name] = Scene(f"{folder}/{name}", f"wide:{options.size}", steps=options.steps, workers=2,
                             every=f"{options.steps * 2} steps", recovery=recovery, checkpoint=checkpoint,
                             placement="strategy: dynamic_programming")
        scenes[name].expected()
    found = {name: [] for name in kinds}
    for _ in range(options.rounds):
        for name, scene in scenes.items():
            found[name].append(costs_of_step(scene))
    print(f"{'':12s} {'ms a step':>10s} {'more':>9s} {'processor ms':>13s} {'more':>9s}")
    middle = {name: [statistics.median(values) for values in zip(*pairs)] for name, pairs in found.items()}
    for name, (wall, cpu) in middle.items():
        base = middle["unguarded" if name == "guarded" else "guarded"]
        more = ["", ""] if name == "unguarded" else [f"{100 * (a / b - 1):+.2f} %" for a, b in zip((wall, cpu), base)]
        print(f"{name:12s} {1e3 * wall:10.3f} {more[0]:>9s} {1e3 * cpu:13.3f} {more[1]:>9s}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)


main()
