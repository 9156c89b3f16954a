"""Clocks that jump, memory that is refused or taken away, and processes of another build.

  machine_faults.py [--repeats N] [--only PATTERN] [--folder DIR]

  clock    the wall clock of a role jumps by up to a year, forth or back, at a step drawn
  memory   an allocation is refused, drawn over all that a role makes (memory.asked); or the kernel
           kills a worker at the limit of its control group
  build    a worker that died comes back as another build, and then as itself

Numbers must be those of one device; a process that ends by itself says why by a code that
docs/recovery.md lists. Prints a line for each run, then a table. Exit code 1: something did not hold.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import time

from processes import helpers
from runs import Runs, judge
from training import PENSTOCK, TOP, Scene

RECOVERY = "on_loss: wait, grace: 20 s, lease: 2 s, progress: 6 s, attempts: 20"
ROLES = {"coordinator": "coordinator", "first": "worker1", "middle": "worker2", "last": "worker3"}
DAY = 86400
# allocations that a role makes until its training is over, about
ALLOCATIONS = {"coordinator": 600, "first": 200, "middle": 200, "last": 200}
GROUPS = "/sys/fs/cgroup/memory"


def cases():
    for role in ROLES:
        yield "clock", role
    for role in ROLES:
        yield "refused", role
    yield "group", "middle"
    yield "build", "middle"


class Machine:
    def __init__(self, folder):
        self.folder = folder
        self.runs = Runs("fault", (11, 11))
        self.scene = Scene(f"{folder}/mlp", "mlp", steps=200, every="25 steps", recovery=RECOVERY)
        self.scene.expected()
        self.clock = f"{folder}/false_clock.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", self.clock,
                        f"{TOP}/tests/faults/false_clock.c", "-ldl"], check=True)
        self.other = f"{folder}/penstock-of-another-build"
        self.make_other()

    def make_other(self):
        """The same program, but for the name of its build."""
        said = subprocess.run([PENSTOCK, "doctor", "--json"], stdout=subprocess.PIPE, check=True).stdout
        name = re.search(r"\+([0-9a-f]{8})", json.loads(said)["build"])
        with open(PENSTOCK, "rb") as file:
            program = file.read()
        build = name.group(1).encode()
        with open(self.other, "wb") as file:
            file.write(program.replace(build, build[::-1] if build != build[::-1] else b"01234567"))
        os.chmod(self.other, 0o755)

    def run(self, kind, role, repeat):
        dice = random.Random(f"{kind} {role} {repeat}")
        name = ROLES[role]
        self.scene.kind = kind
        training, told = getattr(self, f"begin_{kind}")(name, role, dice)
        result = training.finish(120)
        self.clean_up()
        if kind == "clock" and training.said("coordinator", "lost worker"):
            result.wrong.append("a jump of the clock was taken for a loss: " + training.last_words("coordinator"))
        if kind == "build" and not training.said("coordinator", "runs build"):
            result.wrong.append("another build was not named")
        codes = sorted({life.code for life in training.keeper.all_lives() if life.code not in (0, None)})
        if kind == "refused":
            told += ", refused" if training.said(name, "failpoint memory.asked") else ", not reached"
        told = f"{kind:8s} {role:11s} {told:44s} codes {codes!s:10s}"
        self.runs.note((kind, role), f"{kind} {role}", told, training, result)

    def clean_up(self):
        group = f"{GROUPS}/penstock-faults-{os.getpid()}"
        for _ in range(100):
            try:
                os.rmdir(group)
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.02)

    def begin_clock(self, name, _role, dice):
        training = self.scene.begin()
        path = f"{training.folder}/clock"
        jump = dice.choice([-1, 1]) * dice.choice([2, 60, 3600, DAY, 365 * DAY])
        start = training.keeper.start
        preload = {"LD_PRELOAD": self.clock, "FALSE_CLOCK": path}

        def start_one(who, argv, again=0.1, **environment):
            start(who, argv, again, **(dict(environment, **preload) if who == name else environment))

        training.keeper.start = start_one
        training.start()
        at = dice.randint(2, 150)
        training.until(lambda: training.step() >= at, 60)
        with open(path, "w", encoding="ascii") as out:
            out.write(str(jump))
        training.kills.append(time.monotonic())
        return training, f"by {jump} s at step {at}"

    def begin_refused(self, name, role, dice):
        at = dice.randint(1, ALLOCATIONS[role])
        training = self.scene.begin(first={name: f"memory.asked:{at}:fail"})
        for one in ROLES.values():
            training.allowed_codes[one] = {5, 6}
        training.start()
        return training, f"allocation {at}"

    def begin_group(self, name, _role, dice):
        """What else is in the group takes the rest: the kernel kills the largest that is in it."""
        group = f"{GROUPS}/penstock-faults-{os.getpid()}"
        training = self.scene.begin()
        training.start()
        at = dice.randint(2, 150)
        training.until(lambda: training.step() >= at, 60)
        os.mkdir(group)
        pid = training.keeper.now(name).pid
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as out:
            out.write(str(pid))
        with open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as out:
            out.write("1000")
        with open(f"{group}/memory.limit_in_bytes", "w", encoding="ascii") as out:
            out.write(str(16 << 20))
        hog = "x = bytearray(64 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1"
        training.kills.append(time.monotonic())
        fill = subprocess.Popen(["sh", "-c", f'echo $$ >"{group}/cgroup.procs"; exec "$@"', "sh", sys.executable, "-c",
                                 hog], stderr=subprocess.DEVNULL)
        helpers.add(fill.pid)
        training.until(lambda: fill.poll() is not None, 60)
        return training, f"at step {at}"

    def begin_build(self, name, _role, dice):
        training = self.scene.begin()
        training.allowed_codes["coordinator"] = {6}
        training.start()
        at = dice.randint(2, 150)
        training.until(lambda: training.step() >= at, 60)
        argv, again = training.keeper.kinds[name]
        training.keeper.kinds[name] = ([self.other] + argv[1:], again)
        training.keeper.now(name).kill()
        training.until(lambda: bool(training.said("coordinator", "runs build")), 30)
        training.keeper.kinds[name] = (argv, again)
        training.keeper.now(name).kill()
        return training, f"at step {at}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="", help="a pattern of KIND ROLE")
    parser.add_argument("--folder")
    options = parser.parse_args()
    has_groups = os.access(f"{GROUPS}/memory.limit_in_bytes", os.R_OK) and os.access(GROUPS, os.W_OK)

    def work(folder):
        machine = Machine(folder)
        for repeat in range(options.repeats):
            for kind, role in cases():
                if not re.search(options.only, f"{kind} {role}"):
                    continue
                if kind == "group" and not has_groups:
                    if repeat == 0:
                        print("skipped  group: no control group for memory here", flush=True)
                    continue
                machine.run(kind, role, repeat)
        return machine.runs
    return judge(options.folder, work)


if __name__ == "__main__":
    sys.exit(main())
