"""Many workers on one machine: how soon the first loss comes, and what each adds to a step.

  many_workers.py [COUNT...]        128 by default

A chain of as many small layers as there are workers, a stage on each, in processes that were started
before; nearly all of a step is then what links, messages and threads cost. Limits are those of
LIMITS; the numbers must be those of one device. Prints a line for each count. Exit code 1: a number
differs, a process ended, or a limit was passed.
"""
import shutil
import socket
import statistics
import sys
import tempfile
import time

from processes import resident_bytes
from training import Scene

STEPS = 30
LIMITS = {128: (6.0, 2.0)}  # workers: seconds to the first loss, milliseconds of a step a worker


def stages(count):
    pins = [f'{{nodes: "^(gemm|relu){i + 1}$", to: d{i + 1}}}' for i in range(count - 1)]
    pins.append(f'{{nodes: "^(gemm{count}$|loss/)", to: d{count}}}')
    return f"strategy: greedy, pin: [{', '.join(pins)}]"


def await_listeners(ports):
    limit = time.monotonic() + 120
    for port in ports:
        while time.monotonic() < limit:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)


def train(count, folder):
    """(what is wrong, a line)"""
    scene = Scene(folder, f"chain:{count}", steps=STEPS, every="1000 steps", workers=count, placement=stages(count),
                  recovery="on_loss: wait, grace: 60 s, lease: 20 s, progress: 60 s")
    scene.expected()
    training = scene.begin()
    training.start_workers()
    await_listeners(training.ports)
    training.start_coordinator()
    training.until(lambda: training.step() >= STEPS - 1, 600)
    sizes = [resident_bytes(life.pid) for life in training.keeper.all_lives() if life.name != "coordinator"]
    coordinator_size = resident_bytes(training.coordinator().pid)
    result = training.finish(600)
    times = [when for when, _, _ in training.losses()]
    if len(times) < STEPS:
        return result.wrong + [f"{len(times)} losses"], ""
    first = times[0] - training.coordinator().started
    step = (times[-1] - times[4]) / (STEPS - 5)
    if sum(len(lives) for lives in training.keeper.lives.values()) > count + 1:
        result.wrong.append("a process was started again")
    most_first, most_step = LIMITS.get(count, (float("inf"), float("inf")))
    if first > most_first:
        result.wrong.append(f"the first loss came after {first:.1f} s, not {most_first} s")
    if 1e3 * step / count > most_step:
        result.wrong.append(f"{1e3 * step / count:.2f} ms of step a worker, not {most_step}")
    return result.wrong, (f"{count:4d} workers: first loss after {first:5.2f} s, a step {1e3 * step:7.1f} ms "
                          f"({1e3 * step / count:.2f} a worker), {statistics.median(sizes) / 2**20:.1f} MiB a worker, "
                          f"{coordinator_size / 2**20:.1f} the coordinator")


def main():
    wrong = []
    for count in [int(text) for text in sys.argv[1:]] or [128]:
        folder = tempfile.mkdtemp(prefix="penstock-many-")
        found, line = train(count, folder)
        print(line, flush=True)
        for text in found[:6]:
            print(f"WRONG: {text}", flush=True)
        wrong += found
        if not found:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
