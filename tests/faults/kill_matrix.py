"""Kills, freezes and cuts each role of a training at each of its named places.

  kill_matrix.py [--repeats N] [--only PATTERN] [--short] [--lanes K] [--folder DIR] [--part I/N]

A case is ROLE PLACE DEED. Prints a line for each run (what held, and the seconds from the fault to
the next loss), and at the end the median and the longest for each role. Exit code 1 when anything
did not hold or a place was not reached.
"""
import argparse
import os
import random
import re
import signal
import sys
import time

from processes import children
from runs import Runs, judge
from training import Scene

# place: the last time that a run surely comes there (150 steps, a checkpoint every 25)
WORKER = {
    "worker.assigned": 1, "worker.described": 1, "worker.loaded": 1, "worker.ready": 1,
    "worker.round_begun": 130, "worker.task_done": 600, "worker.frame_sent": 400,
    "worker.frame_taken": 400, "worker.loss_sent": 130, "worker.updated": 130,
    "worker.snapped": 5, "worker.shard_written": 5, "worker.shard_synced": 5, "worker.shard_told": 5,
}
COORDINATOR = {
    "coordinator.fenced": 1, "coordinator.assigned": 1, "coordinator.started": 1,
    "coordinator.round_begun": 130, "coordinator.losses": 130, "coordinator.gone": 130,
    "coordinator.snapped": 5, "coordinator.shards_durable": 5, "coordinator.manifest_written": 5,
    "coordinator.manifest_published": 5, "coordinator.committed": 5, "coordinator.pruned": 3,
}
# a spare comes to its places when it has taken a lost worker's part, at step 20
SPARE = dict(WORKER, **{
    "worker.round_begun": 100, "worker.task_done": 400, "worker.frame_sent": 300,
    "worker.frame_taken": 300, "worker.updated": 100, "worker.snapped": 3, "worker.shard_written": 3,
    "worker.shard_synced": 3, "worker.shard_told": 3,
})
del SPARE["worker.loss_sent"]  # the middle stage has no loss
PROCESS = {"coordinator": "coordinator", "first": "worker1", "middle": "worker2", "last": "worker3",
           "spare": "spare1", "own": "worker2"}
SHORT = ["coordinator coordinator.fenced kill", "coordinator coordinator.losses kill",
         "coordinator coordinator.shards_durable kill", "coordinator coordinator.manifest_published kill",
         "first worker.assigned kill", "first worker.frame_taken kill", "middle worker.loaded kill",
         "middle worker.task_done kill", "last worker.loss_sent kill", "last worker.shard_written kill",
         "last worker.updated kill", "spare worker.round_begun kill", "coordinator coordinator.round_begun freeze",
         "middle - cut"]
LEASE = 2.0


def cases():
    for place in COORDINATOR:
        yield "coordinator", place, "kill"
    yield "coordinator", "-", "kill"
    yield "coordinator", "coordinator.round_begun", "freeze"
    yield "coordinator", "coordinator.manifest_written", "freeze"
    for role in ("first", "middle", "last"):
        for place in WORKER:
            if place == "worker.loss_sent" and role != "last":
                continue
            yield role, place, "kill"
        yield role, "-", "kill"  # at any time
        yield role, "worker.task_done", "pause"
        yield role, "worker.task_done", "freeze"
        yield role, "-", "cut"
        yield role, "-", "part"
    for place in SPARE:
        yield "spare", place, "kill"
    yield "spare", "-", "kill"
    # a second fault while the first is being recovered from
    for place in ("coordinator.fenced", "coordinator.assigned", "coordinator.started"):
        yield "coordinator", place, "again"
    for place in ("worker.assigned", "worker.described", "worker.loaded", "worker.ready"):
        yield "first", place, "again"
    yield "middle", "-", "lost"  # for good: placed anew without it
    yield "middle", "-", "back"  # placed anew without it, and with it when it is back
    yield "own", "-", "kill"  # one that the command started itself


class Matrix:
    def __init__(self, folder, lanes):
        self.folder, self.lanes, self.scenes = folder, lanes, {}
        self.runs = Runs("fault", (11, 6))

    def scene(self, model, role, deed):
        kind = "spare" if role == "spare" else "replan" if deed in ("lost", "back") else "wait"
        key = model, kind
        if key not in self.scenes:
            self.scenes[key] = Scene(
                f"{self.folder}/{model}-{kind}", model, spares=int(kind == "spare"),
                steps=1500 if kind == "replan" else 150,
                every="250 steps" if kind == "replan" else "25 steps", lanes=self.lanes,
                placement="strategy: dynamic_programming" if kind == "replan" else None,
                recovery=f"on_loss: {kind}, grace: {'20 s' if kind == 'wait' else '300 ms'}, "
                         f"lease: {LEASE} s, progress: 6 s, attempts: 20")
            self.scenes[key].expected()
        return self.scenes[key]

    def run(self, role, place, deed, repeat):
        dice = random.Random(f"{role} {place} {deed} {repeat}")
        scene = self.scene("branching" if repeat % 2 else "mlp", role, deed)
        name = PROCESS[role]
        first = {}
        if place != "-":
            last = {"coordinator": COORDINATOR, "spare": SPARE}.get(role, WORKER)[place]
            word = {"freeze": "stop", "pause": "stop"}.get(deed, "kill")
            first[name] = f"{place}:{2 if deed == 'again' else dice.randint(1, last)}:{word}"
        training = scene.begin(relays=deed in ("cut", "part"), first=first, is_own=role == "own",
                               again={"lost": None, "back": 1.5}.get(deed, 0.1))
        training.start()
        at = dice.randint(2, 120)
        if role == "spare":  # the middle one is lost for good
            training.until(lambda: training.step() >= 20, 20)
            training.keeper.kinds["worker2"] = (training.keeper.kinds["worker2"][0], None)
            training.keeper.now("worker2").kill()
        if deed == "again":
            self.disturb(training, "worker2", "kill", at)
        if place == "-":
            self.disturb(training, name, deed, at)
        seconds = {"freeze": 2 * LEASE, "pause": LEASE / 4}.get(deed)
        result = training.finish(240, seconds)
        where = first.get(name, f"step {at}")
        if place != "-" and not training.said(name, f"failpoint {place}"):
            result.wrong.append(f"{place} was not reached")
        if deed in ("lost", "back") and len(training.keeper.lives["coordinator"]) > 1:
            result.wrong.append("the coordinator ended: " + training.last_words("coordinator"))
        if deed in ("pause", "cut") and training.said("coordinator", "lost worker|generation [2-9]"):
            result.wrong.append("a fault shorter than the lease was taken for a loss")
        told = f"{role:11s} {place if place != '-' else 'any time':30s} {deed:6s} {where:34s}"
        self.runs.note((role, deed), f"{role} {place} {deed}", told, training, result)

    @staticmethod
    def disturb(training, name, deed, at):
        training.until(lambda: training.step() >= at, 20)
        if name in training.keeper.lives and deed in ("kill", "lost", "back"):
            training.keeper.now(name).kill()
        elif deed == "kill":  # started by the command
            started = children(training.coordinator().pid)
            training.kills.append(time.monotonic())
            os.kill(started[len(started) // 2], signal.SIGKILL)
        elif deed == "cut":  # connections are reset and can be made again
            training.kills.append(time.monotonic())
            training.relays[name].cut()
        elif deed == "part":  # nothing goes through for longer than the lease
            training.kills.append(time.monotonic())
            training.relays[name].mode = "stall"
            until = time.monotonic() + 2 * LEASE
            training.until(lambda: time.monotonic() > until, 60)
            training.relays[name].mode = "pass"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="", help="a pattern of ROLE PLACE DEED")
    parser.add_argument("--short", action="store_true", help="some cases of all")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--folder", help="kept; a temporary one goes when nothing was wrong")
    parser.add_argument("--part", default="1/1", help="I/N: each N-th case, from the I-th")
    options = parser.parse_args()
    part, parts = (int(n) for n in options.part.split("/"))
    chosen = [case for case in cases() if re.search(options.only, " ".join(case))]
    if options.short:
        chosen = [case for case in cases() if " ".join(case) in SHORT]

    def work(folder):
        matrix = Matrix(folder, options.lanes)
        for repeat in range(options.repeats):
            for case in chosen[part - 1::parts]:
                matrix.run(*case, repeat)
        return matrix.runs
    return judge(options.folder, work)


if __name__ == "__main__":
    sys.exit(main())
