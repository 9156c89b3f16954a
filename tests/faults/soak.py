"""A long training with a random fault every so often; the numbers must be those of one device.

  soak.py MINUTES [--every SECONDS] [--seed N] [--folder DIR] [--leak FUNCTION:BYTES]

Faults: kill -9 of any role, freezes shorter and longer than the lease, connections that are reset,
networks that let nothing through for a while, and bursts of BURST connections by strangers to each
worker, who say nothing or nonsense. Of each process that lives long enough, nothing may leak: heap, mappings, threads
and open files (leaks.py has the rule, heap_watch.c counts blocks). Resident memory is told, too. What
each life held goes to series.json in the folder. --leak plants a leak, which must be found.

At the end the coordinator is told to stop (SIGINT), which must save and exit 0, and as many steps are
done on one device. For long lives to look at, worker1 is never killed, and the coordinator neither
killed nor frozen in the first half.
"""
import argparse
import json
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from leaks import describe, judge
from processes import resident_kinds, state_of
from training import PENSTOCK, TOP, Scene, numbers

BURST = 200
WORDS = [b"", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(64), b"\x16\x03\x01\xff\xff" + b"x" * 900]
LEASE = 3.0
STEPS = 100000000
SHOWN = struct.Struct("2q")  # of heap_watch.c: blocks, bytes


class Held:
    """What one process held at least since the fault before, and its points so far (leaks.py)."""

    def __init__(self, heap):
        self.heap = heap
        self.points = []
        self.strangers = 0
        self.least = {}
        self.is_begun = False  # its first faults are over: it runs

    def note(self, found):
        for what, number in found.items():
            self.least[what] = min(number, self.least.get(what, number))

    def look(self):
        try:
            with open(self.heap, "rb") as file:
                blocks, size = SHOWN.unpack(file.read(SHOWN.size))
        except (OSError, struct.error):
            return
        self.note({"blocks": blocks, "bytes": size})

    def end(self):
        """A fault comes."""
        if self.is_begun and len(self.least) == 5:
            self.points.append({"strangers": self.strangers, **self.least})
        self.is_begun, self.least = True, {}


class Soak:
    def __init__(self, folder, seed, leak=None):
        self.folder = folder
        self.dice = random.Random(seed)
        self.scene = Scene(folder, "branching", steps=STEPS, every="200 steps", spares=1,
                           recovery=f"on_loss: wait, grace: 60 s, lease: {LEASE} s, progress: 15 s, attempts: 50")
        self.training = self.scene.begin(relays=True)
        self.training.lives_limit = 1 << 30
        self.memory = {}  # (name, life): [(time, bytes of its own, of files, shared)]
        self.held = {}  # (name, life): Held
        self.watch(leak)
        self.spares_coordinator = True
        self.counts = {}
        self.slowest = 0.0
        self.wrong = []

    def watch(self, leak):
        """All processes get heap_watch.c loaded first."""
        library = f"{self.folder}/heap_watch.so"
        subprocess.run(["cc", "-O2", "-std=c11", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library,
                        f"{TOP}/tests/faults/heap_watch.c", "-ldl"], check=True)
        os.makedirs(f"{self.folder}/heaps", exist_ok=True)
        preload = {"LD_PRELOAD": library, "HEAP_WATCH": f"{self.folder}/heaps"}
        if leak is not None:
            preload["HEAP_LEAK"] = leak
        self.training.environment = lambda name: preload

    def turn_for(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.training.turn(0.02)
            self.drain()
            self.look()

    def look(self):
        for life in self.training.keeper.all_lives():
            if life.code is None and not life.is_frozen:
                self.held_by(life).look()

    def held_by(self, life):
        key = (life.name, life.number)
        if key not in self.held:
            self.held[key] = Held(f"{self.folder}/heaps/{life.pid}")
        return self.held[key]

    def drain(self):
        """Losses are compared at the end from the files; here only the newest are kept."""
        for life in self.training.keeper.lives["coordinator"]:
            del life.losses[:-4]

    def sample(self):
        now = time.monotonic()
        for life in self.training.keeper.all_lives():
            if life.code is None and not life.is_frozen:
                self.memory.setdefault((life.name, life.number), []).append((now, *resident_kinds(life.pid)))
                self.held_by(life).note(counted(life.pid))

    def step(self):
        return self.training.step()

    def fault(self):
        training = self.training
        name = self.dice.choice(["coordinator", "worker1", "worker2", "worker3", "spare1"])
        deed = self.dice.choice(["kill", "kill", "pause", "freeze", "cut", "part", "long part", "burst", "burst"])
        if name == "coordinator" and (deed in ("cut", "part", "long part") or self.spares_coordinator):
            name = "worker2"
        if name == "worker1" and deed == "kill":
            name = "worker3"
        life = training.keeper.now(name)
        if life.code is not None:
            return
        told = deed if deed == "burst" else f"{deed} {name}"
        self.counts[told] = self.counts.get(told, 0) + 1
        for held in self.held.values():
            held.end()
        before, begun = self.step(), time.monotonic()
        print(f"{time.strftime('%H:%M:%S')} step {before}: {told}", flush=True)
        if deed == "kill":
            life.kill()
        elif deed in ("pause", "freeze"):
            self.stand_still(life, LEASE / 3 if deed == "pause" else 2 * LEASE)
        elif deed == "cut":
            training.relays[name].cut()
        elif deed == "burst":
            self.burst()
        else:
            training.relays[name].mode = "stall"
            self.turn_for(LEASE / 3 if deed == "part" else 2 * LEASE)
            training.relays[name].mode = "pass"
        self.next_loss(begun)

    def burst(self):
        """Strangers at the workers' own ports, who stay for a second."""
        plugs = []
        for name, port in zip(self.training.names, self.training.ports):
            self.held_by(self.training.keeper.now(name)).strangers += BURST
            for _ in range(BURST):
                try:
                    plugs.append(socket.create_connection(("127.0.0.1", port), 1))
                    plugs[-1].sendall(self.dice.choice(WORDS))
                except OSError:
                    pass
        self.turn_for(1)
        for plug in plugs:
            plug.close()

    def stand_still(self, life, seconds):
        life.signal(signal.SIGSTOP)
        life.is_frozen = True
        if life.name == "coordinator" and seconds > LEASE:
            self.training.keeper.begin("coordinator")  # as a supervisor that lost sight of it
            self.training.expects_superseded = True
        self.turn_for(seconds)
        life.signal(signal.SIGCONT)
        life.is_frozen = False

    def next_loss(self, begun):
        """Waits until losses come again."""
        def fresh():
            self.drain()
            return any(when > time.monotonic() - 0.1 and when > begun + 0.3 for when, _, _ in self.training.losses())
        limit = time.monotonic() + 180
        while not fresh():
            self.turn_for(0.01)
            if time.monotonic() > limit:
                self.wrong.append(f"no loss for 180 s: {self.training.last_words('coordinator')}")
                return
        self.slowest = max(self.slowest, time.monotonic() - begun)

    def run(self, seconds, every):
        self.training.start()
        end = time.monotonic() + seconds
        due = time.monotonic() + every
        sampled = 0.0
        while time.monotonic() < end and not self.wrong:
            self.turn_for(0.2)
            self.spares_coordinator = end - time.monotonic() > seconds / 2
            if time.monotonic() - sampled > 2:
                sampled = time.monotonic()
                self.sample()
            if time.monotonic() >= due:
                self.fault()
                due = max(due + every, time.monotonic() + 1)

    def finish(self):
        training = self.training
        limit = time.monotonic() + 60
        while training.is_over() or training.coordinator().code is not None or training.step() == 0:
            training.turn()
            if time.monotonic() > limit:
                break
        life = training.coordinator()
        life.signal(signal.SIGINT)
        training.keeper.kinds["coordinator"] = (training.keeper.kinds["coordinator"][0], None)
        limit = time.monotonic() + 60
        while any(l.code is None for l in training.keeper.lives["coordinator"]) and time.monotonic() < limit:
            training.turn()
            for old in training.keeper.lives["coordinator"]:
                if old.code is None and state_of(old.pid) == "T":
                    old.signal(signal.SIGCONT)
        if life.code != 0:
            self.wrong.append(f"the coordinator ended with {life.code} after SIGINT: {training.last_words('coordinator')}")
        self.wrong += training.keeper.end()
        return life

    def compare(self, life):
        reported, last = {}, 0
        for one in self.training.keeper.lives["coordinator"]:
            losses, _ = numbers(one.output_bytes())
            for step, loss in losses.items():
                if reported.setdefault(step, loss) != loss:
                    self.wrong.append(f"step {step} had loss {reported[step]} and later {loss}")
                last = max(last, step)
        final, _ = numbers(life.output_bytes())
        done = max(final, default=0)
        missing = [step for step in range(1, done + 1) if step not in reported]
        if missing:
            self.wrong.append(f"{len(missing)} steps were not reported, the first {missing[0]}")
        path = f"{self.scene.folder}/one.yaml"
        with open(path, "w", encoding="utf-8") as out:
            out.write(self.scene.job([""]))
        saved = f"{self.scene.folder}/one.safetensors"
        found = subprocess.run([PENSTOCK, "train", "--json", "--steps", str(done), "--save", saved, path],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        losses, parameters = numbers(found.stdout)
        different = [step for step in range(1, done + 1) if losses.get(step) != reported.get(step)]
        if different:
            self.wrong.append(f"{len(different)} of {done} losses differ, the first of step {different[0]}")
        self.compare_parameters(life, parameters, saved)
        return done

    def compare_parameters(self, life, expected, saved):
        _, found = numbers(life.output_bytes())
        if found is None:  # the run was stopped: what it saved is compared
            exported = f"{self.scene.folder}/kept.safetensors"
            made = subprocess.run([PENSTOCK, "checkpoint", "export", self.training.kept, "-o", exported],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if made.returncode != 0:
                self.wrong.append(f"checkpoint export: {made.stdout.decode().strip()}")
                return
            found, expected = tensors_of(exported), tensors_of(saved)
            if any(found.get(name) != bytes_ for name, bytes_ in expected.items()):
                self.wrong.append("the parameters differ")
        elif found != expected:
            self.wrong.append(f"parameters {found}, not {expected}")

    def judge_growth(self):
        """Leaks; lives that were judged, and the worst growth of resident memory."""
        series = [{"name": f"{name}.{number}", "points": held.points} for (name, number), held in self.held.items()]
        with open(f"{self.folder}/series.json", "w", encoding="utf-8") as file:
            json.dump(series, file)
        count = 0
        for one in series:
            rows = judge(one)
            count += bool(rows)
            for line in describe(one, rows):
                print(line)
                if line.endswith("LEAKS"):
                    self.wrong.append(line)
        if count == 0:
            self.wrong.append("no process lived long enough to be judged")
        return count, self.resident_growth()

    def resident_growth(self):
        """Of lives of 4 minutes and more, behind their first 2, from the first half to the second: what
        moves is also which part a worker has, and pages that are free and not given back."""
        worst = 0.0
        for (name, number), samples in self.memory.items():
            begun, ended = samples[0][0], samples[-1][0]
            settled = [sizes for when, *sizes in samples if when > begun + 120]
            half = len(settled) // 2
            if ended - begun < 240 or half < 12:
                continue
            own, mapped, shared = (floors(column) for column in zip(*settled))
            whole = own[0] + mapped[0] + shared[0]
            growth = (own[1] + mapped[1] - own[0] - mapped[0]) / whole
            print(f"{name}.{number}, {ended - begun:.0f} s: {whole >> 10} KiB are resident, later own "
                  f"{(own[1] - own[0]) >> 10:+d} KiB, files {(mapped[1] - mapped[0]) >> 10:+d}, {100 * growth:+.2f} %; "
                  f"rings {shared[0] >> 10} KiB, later {shared[1] >> 10}")
            worst = max(worst, growth)
        return worst


def floors(column):
    """The least of the first half and of the second."""
    half = len(column) // 2
    return min(column[:half]), min(column[-half:])


def counted(pid):
    """Mappings, threads and open files of a process; nothing where it has gone."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as maps:
            mappings = sum(1 for _ in maps)
        return {"mappings": mappings, "threads": len(os.listdir(f"/proc/{pid}/task")),
                "files": len(os.listdir(f"/proc/{pid}/fd"))}
    except OSError:
        return {}


def tensors_of(path):
    """{name: bytes} of a safetensors file."""
    with open(path, "rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    return {name: body[slice(*entry["data_offsets"])] for name, entry in head.items() if name != "__metadata__"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("minutes", type=float)
    parser.add_argument("--every", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder")
    parser.add_argument("--leak")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp(prefix="penstock-soak-")
    os.makedirs(folder, exist_ok=True)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    soak = Soak(folder, options.seed, options.leak)
    soak.run(60 * options.minutes, options.every)
    life = soak.finish()
    done = soak.compare(life)
    count, worst = soak.judge_growth()
    for name, number in sorted(soak.counts.items()):
        print(f"{number:4d} x {name}")
    print(f"{sum(soak.counts.values())} faults in {options.minutes:g} minutes, {done} steps, the longest from a "
          f"fault to the next loss {soak.slowest:.2f} s; {count} processes were looked at for leaks, resident memory "
          f"grew by {100 * worst:.2f} % at most")
    for text in soak.wrong:
        print(f"WRONG: {text}")
    if soak.wrong:
        print(f"what processes said is in {folder}")
        return 1
    print("all losses and parameters are those of one device")
    if options.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
