"""Kills workers and the coordinator of a training in replicas, at moments drawn over all of it.

  replica_kills.py [--repeats N] [--only PATTERN] [--short] [--seed S] [--folder DIR]

Two replicas and an owner, which updates for both, are processes of their own. A case is MODEL ROLE:
what is killed -9 is the worker of a replica, that of the owner, or the coordinator, once in each
run, from its start to its end; a supervisor starts it again. In every other run a lost worker is
waited for; in the others what it had is placed on the devices that are left, until it is back.
training.py judges each run. Prints a line for each run, then the median and the longest time from
the kill to the next loss. Exit code 1 when anything did not hold.
"""
import argparse
import itertools
import random
import re
import sys
import time

from runs import Runs, judge
from training import Scene

MODELS = ("mlp", "branching")  # the second has batch normalization
ROLES = {"replica": ("worker1", "worker2"), "owner": ("worker3",), "coordinator": ("coordinator",)}
RECOVERY = {"wait": "on_loss: wait, grace: 20 s", "replan": "on_loss: replan, grace: 300 ms"}
STEPS = {"mlp": 250, "branching": 120}


class Kills:
    def __init__(self, folder, seed):
        self.folder, self.seed = folder, seed
        self.scenes, self.lasted = {}, {}
        self.runs = Runs("kill", (10, 12))

    def scene(self, model, recovery):
        key = model, recovery
        if key not in self.scenes:
            scene = Scene(f"{self.folder}/{model}-{recovery}", model, steps=STEPS[model], every="15 steps",
                          lanes=4, placement="replicas: 2, owners: [d3], time_limit: 200ms",
                          recovery=f"{RECOVERY[recovery]}, lease: 2 s, progress: 6 s, attempts: 20")
            scene.expected()
            training = scene.begin()  # one that nothing is done to says how long they last
            training.start()
            result = training.finish(120)
            if result.wrong:
                raise SystemExit(f"{model}, undisturbed: {result.wrong}")
            self.scenes[key], self.lasted[key] = scene, result.seconds
        return self.scenes[key]

    def run(self, model, role, repeat):
        recovery = "replan" if repeat % 2 else "wait"
        scene = self.scene(model, recovery)
        dice = random.Random(f"{self.seed} {model} {role} {repeat}")
        name = dice.choice(ROLES[role])
        part = dice.random()
        while True:
            training = scene.begin(again=1.0 if recovery == "replan" else 0.1)
            training.start()
            at = training.begun + part * self.lasted[model, recovery]
            training.until(lambda: time.monotonic() >= at, 120)
            step, is_over = training.step(), training.is_over()
            if not is_over:
                training.keeper.now(name).kill()
            result = training.finish(120)
            if not is_over or result.wrong:
                break
            part *= 0.9  # it was faster than the one that was looked at
        told = f"{model:10s} {role:12s} {recovery:7s} {name:12s} at {part:4.2f}, step {step:3d}"
        self.runs.note((model, role), f"{model} {role}", told, training, result)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="", help="a pattern of MODEL ROLE")
    parser.add_argument("--short", action="store_true", help="one model")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--folder", help="kept; a temporary one goes when nothing was wrong")
    options = parser.parse_args()
    models = MODELS[:1] if options.short else MODELS

    def work(folder):
        kills = Kills(folder, options.seed)
        for repeat in range(options.repeats):
            for model, role in itertools.product(models, ROLES):
                if re.search(options.only, f"{model} {role}"):
                    kills.run(model, role, repeat)
        return kills.runs
    return judge(options.folder, work)


if __name__ == "__main__":
    sys.exit(main())
