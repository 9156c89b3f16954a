"""What guarding against faults costs when none happens.

  fault_cost.py [--rounds 5] [--steps 300] [--size 512]

Trainings over two workers, by turns: with the settings that jobs have by themselves, with a lease so
long that nothing is beaten or watched, and with checkpoints at the interval of Young and Daly for a
mean time between failures of MTBF. Prints the median step of each and what it takes more.
"""
import argparse
import statistics
import shutil
import tempfile

from training import Scene

BASE = "on_loss: wait, grace: 20 s"


def seconds_per_step(scene):
    """Of all steps after a warm-up, as they were reported: pauses for checkpoints count."""
    training = scene.begin(argv=["train", "--continue", "--json"])
    training.start()
    result = training.finish(300)
    if result.wrong:
        raise SystemExit(f"WRONG: {result.wrong}")
    times = [(when, step) for when, step, _ in training.losses()]
    first = next(i for i, (_, step) in enumerate(times) if step >= 20)
    (begin, low), (end, high) = times[first], times[-1]
    shutil.rmtree(training.folder, ignore_errors=True)
    return (end - begin) / (high - low)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
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
            found[name].append(seconds_per_step(scene))
    base = {name: statistics.median(times) for name, times in found.items()}
    for name, times in found.items():
        against = base["unguarded" if name == "guarded" else "guarded"]
        more = "" if name == "unguarded" else f"  {100 * (base[name] / against - 1):+.2f} %"
        pairs = "" if name == "unguarded" else " (pairs: " + ", ".join(
            f"{100 * (a / b - 1):+.2f}" for a, b in
            zip(times, found["unguarded" if name == "guarded" else "guarded"])) + ")"
        print(f"{name:12s} {1e3 * base[name]:9.3f} ms a step{more}{pairs}")
    shutil.rmtree(folder, ignore_errors=True)


main()
