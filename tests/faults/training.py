"""A training of real processes that a test disturbs, and the judgement of what came of it.

The numbers must be those of the undisturbed training on one device, bit for bit: the loss of each
step, reported once by each coordinator, and the parameters at the end.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

from processes import Keeper, Relay, adopt_orphans, children, free_ports, state_of

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PENSTOCK = os.path.abspath(os.environ.get("PENSTOCK", f"{TOP}/build/gcc/penstock"))

MODELS = {
    "mlp": "optimizer: {sgd: {lr: 0.005, momentum: 0.9}}, batch: 16, microbatches: 4",
    "branching": "optimizer: {adamw: {lr: 0.01}}, clip_norm: 1, batch: 16, microbatches: 4",
    "wide": "optimizer: {sgd: {lr: 0.01}}, batch: 16, microbatches: 4",
    "chain": "optimizer: {sgd: {lr: 0.01}}, batch: 16, microbatches: 4",
}
# nodes of each of three devices, first to last; the last has the loss. What no pattern names may be
# anywhere
PINS = {
    "mlp": ["^(gemm|relu)[12]$", "^(gemm|relu)[345]$", "^((gemm|relu)[67]$|loss/)"],
    "branching": ["^(conv[123]|batchnormalization[12]|relu[12]|dropout1|concat1)$",
                  "^(conv[456]|batchnormalization[34]|add1|relu[34]|dropout2|concat2)$",
                  "^((conv7|batchnormalization5|add2|relu5|maxpool1|globalaveragepool1|flatten1|gemm1)$|loss/)"],
    "wide": None,
    "chain": None,
}


def make_model(folder, name):
    """NAME or NAME:SIZE."""
    subprocess.run([sys.executable, f"{TOP}/tests/end_to_end/make_training_models.py", folder, name],
                   check=True)


class Result:
    def __init__(self):
        self.wrong = []  # what does not hold
        self.seconds = None  # of the whole
        self.kills = []  # times at which a process died or was frozen
        self.to_next_loss = None  # seconds from the first of them to the next loss after recovery
        self.lives = {}  # name: count
        self.generations = None


class Scene:
    """Models, data and undisturbed numbers in a folder; any number of trainings."""

    def __init__(self, folder, model="mlp", steps=150, every="25 steps", workers=3, spares=0,
                 recovery="on_loss: wait, grace: 20 s, lease: 2 s, progress: 6 s", checkpoint="",
                 placement=None, threads=1, lanes=1):
        self.folder, self.steps, self.every = folder, steps, every
        self.worker_count, self.spare_count = workers, spares
        self.recovery, self.checkpoint, self.placement = recovery, checkpoint, placement
        self.model, _, self.size = model.partition(":")
        self.threads, self.lanes = threads, lanes
        self.count = 0
        self.kind = os.path.basename(sys.argv[0]).partition("_")[0]  # of faults, in the table
        self.undisturbed = None
        os.makedirs(folder, exist_ok=True)
        adopt_orphans()
        if not os.path.exists(f"{folder}/{self.model}.onnx"):
            make_model(folder, model)

    def job(self, devices, kept=None, spares=(), more=""):
        """The text of a job; devices: what follows a device's name."""
        lines = ["version: 1", f"model: {{file: {self.folder}/{self.model}.onnx}}",
                 f"data: {{train: {{format: npy, inputs: {{x: {self.folder}/{self.model}_x.npy}}, "
                 f"labels: {self.folder}/{self.model}_y.npy}}}}",
                 f"train: {{loss: softmax_cross_entropy, {MODELS[self.model]}, "
                 f"lanes: {self.lanes}, steps: {self.steps}, seed: 3}}"]
        placement = self.placement
        if placement is None and PINS[self.model] and len(devices) == 3:
            pins = ", ".join(f'{{nodes: "{p}", to: d{i + 1}}}' for i, p in enumerate(PINS[self.model]))
            placement = f"strategy: greedy, pin: [{pins}]"
        if placement is None:
            placement = "strategy: round_robin" if self.model == "wide" else "strategy: dynamic_programming"
        if len(devices) > 1:
            lines.append(f"placement: {{{placement}}}")
            lines.append("pipeline: {rendezvous_timeout: 20 s}")
        lines.append("devices:")
        for i, device in enumerate(devices):
            lines.append(f"  - {{name: d{i + 1}, threads: {self.threads}{device}}}")
        if kept is not None:
            lines.append(f"checkpoint: {{dir: {kept}, every: {self.every}{self.checkpoint}}}")
            listed = ", ".join(f'"{s}"' for s in spares)
            lines.append(f"recovery: {{{self.recovery}{', spares: [' + listed + ']' if spares else ''}}}")
        return "\n".join(lines) + "\n" + more

    def expected(self):
        """Losses (texts) by step and hash of the training that nothing happens to."""
        if self.undisturbed is None:
            path = f"{self.folder}/one.yaml"
            with open(path, "w", encoding="utf-8") as out:
                out.write(self.job([""]))
            found = subprocess.run([PENSTOCK, "train", "--json", path], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, check=False)
            if found.returncode != 0:
                raise SystemExit(f"one device: {found.stderr.decode()}")
            self.undisturbed = numbers(found.stdout)
        return self.undisturbed

    def begin(self, relays=False, **options):
        return Training(self, relays, **options)


def numbers(output):
    """({step: loss}, hash or None) of what `train --json` wrote, also when it was cut off."""
    losses = {}
    for match in re.finditer(rb'"step": (\d+), "epoch": \d+, "loss": ([^,}]+),', output):
        losses[int(match.group(1))] = match.group(2).decode()
    found = re.search(rb'"parameters_hash": "([0-9a-f]+)"', output)
    return losses, found.group(1).decode() if found else None


class Training:
    """Processes of one run: `coordinator`, `worker1` …, `spare1` …"""

    def __init__(self, scene, relays, first=None, argv=None, again=0.1, coordinator_again=0.1,
                 is_own=False):
        """first: {name: failpoint text} of the first life of processes. is_own: workers are started
        by the command."""
        scene.count += 1
        self.scene = scene
        self.folder = f"{scene.folder}/run{scene.count}"
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.kept = f"{self.folder}/kept"
        self.keeper = Keeper(self.folder)
        self.first = first or {}
        self.is_own = is_own
        self.again, self.coordinator_again = again, coordinator_again
        self.argv = argv or ["train", "--continue", "--json"]
        self.begun = time.monotonic()
        self.kills = []
        self.expects_superseded = False
        self.lives_limit = 8  # of the coordinator
        self.allowed_codes = {}  # name: set of exit codes that are right, too
        self.has_own_disks = False  # nobody sees all checkpoints
        count = scene.worker_count + scene.spare_count
        ports = free_ports(2 * count)
        self.ports = ports[:count]
        self.relays = {}
        self.names = [f"worker{i + 1}" for i in range(scene.worker_count)]
        self.names += [f"spare{i + 1}" for i in range(scene.spare_count)]
        self.addresses = []
        for i, name in enumerate(self.names):
            port = self.ports[i]
            if relays:
                port = ports[count + i]
                self.relays[name] = Relay(port, self.ports[i])
            self.addresses.append(f"127.0.0.1:{port}")

    def write_job(self, more=""):
        path = f"{self.folder}/job.yaml"
        devices = [f', memory: 2GiB, host: "{a}"' for a in self.addresses[:self.scene.worker_count]]
        if self.is_own:
            devices = [", host: localhost"] * self.scene.worker_count
        with open(path, "w", encoding="utf-8") as out:
            out.write(self.scene.job(devices, self.kept, self.addresses[self.scene.worker_count:], more))
        return path

    def start_workers(self):
        if not self.is_own:
            for i, name in enumerate(self.names):
                self.start_worker(name, i)

    def start_worker(self, name, index=None):
        index = self.names.index(name) if index is None else index
        self.keeper.start(name, [PENSTOCK, "worker", "--quiet", "--store", self.kept, "--listen", f"127.0.0.1:{self.ports[index]}"],
                          self.again, **self.environment(name))

    def own_disks(self):
        """Each process gets a folder of its own at the place of the checkpoints; before start."""
        self.has_own_disks = True
        os.makedirs(self.kept)
        flags = "-m" if os.geteuid() == 0 else "-Urm"
        start = self.keeper.start

        def start_apart(name, argv, again=0.1, **environment):
            disk = self.disk_of(name)
            os.makedirs(disk, exist_ok=True)
            script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
            start(name, ["unshare", flags, "sh", "-c", script, "sh", disk, self.kept] + argv, again, **environment)

        self.keeper.start = start_apart

    def disk_of(self, name):
        return f"{self.folder}/disk-{name}"

    def environment(self, name):
        return {"PENSTOCK_FAILPOINT": self.first[name]} if name in self.first else {}

    def start_coordinator(self):
        path = self.write_job()
        self.keeper.start("coordinator", [PENSTOCK] + self.argv + [path], self.coordinator_again,
                          **self.environment("coordinator"))

    def start(self):
        self.start_workers()
        self.start_coordinator()

    def coordinator(self):
        return self.keeper.now("coordinator")

    def losses(self):
        """(time, step, loss) that coordinators reported, in order."""
        found = [loss for life in self.keeper.lives["coordinator"] for loss in life.losses]
        return sorted(found)

    def step(self):
        return max((step for _, step, _ in self.losses()), default=0)

    def turn(self, pause=0.004):
        """Looks once; notes deaths."""
        ended = self.keeper.turn()
        for life in ended:
            if life.code < 0:
                self.kills.append(life.ended)
        time.sleep(pause)
        return ended

    def until(self, what, seconds):
        """Turns until what() is true; False: not in time, or the training was over before."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if what():
                return True
            self.turn()
            if self.is_over():
                return bool(what())
        return False

    def is_over(self):
        lives = self.keeper.lives["coordinator"]
        return lives[-1].code is not None and "coordinator" not in self.keeper.due

    def wake_frozen(self, seconds):
        """Failpoints that stop a process: it goes on after this time."""
        for life in self.keeper.all_lives():
            if life.code is None and not life.is_frozen and state_of(life.pid) == "T":
                life.is_frozen = time.monotonic()
                self.kills.append(life.is_frozen)
                if life.name == "coordinator":
                    # as a supervisor that lost sight of it, on another machine
                    self.expects_superseded = True
                    self.keeper.begin("coordinator")
            if life.is_frozen and life.is_frozen is not True:
                if time.monotonic() - life.is_frozen >= seconds:
                    life.signal(18)
                    life.is_frozen = True

    def finish(self, seconds=60, frozen_seconds=None):
        """Waits for the end of the training, and judges it."""
        result = Result()
        limit = time.monotonic() + seconds
        while not self.is_over() and time.monotonic() < limit:
            if len(self.keeper.lives["coordinator"]) > self.lives_limit:
                result.wrong.append(f"the coordinator ended {self.lives_limit} times: {self.last_words('coordinator')}")
                self.keeper.kinds["coordinator"] = (None, None)
                self.keeper.due.clear()
                self.keeper.now("coordinator").kill()
                self.lives_limit = 1 << 30
            self.turn()
            if frozen_seconds is not None:
                self.wake_frozen(frozen_seconds)
        result.seconds = time.monotonic() - self.begun
        if not self.is_over():
            result.wrong.append(f"still running after {seconds} s, at step {self.step()}")
        if frozen_seconds is not None:  # zombies come back and must see that they are
            zombies = [life for life in self.keeper.lives["coordinator"][:-1] if life.code is None]
            for life in zombies:
                life.signal(18)
            until = time.monotonic() + 15
            while any(life.code is None for life in zombies) and time.monotonic() < until:
                self.turn()
            for life in zombies:
                if life.code is None:
                    result.wrong.append("a coordinator that was superseded did not end")
        result.wrong += self.keeper.end()
        self.judge(result)
        self.record(result)
        for relay in self.relays.values():
            relay.close()
        return result

    def judge(self, result):
        losses, parameters = self.scene.expected()
        lives = self.keeper.lives["coordinator"]
        result.kills = self.kills
        result.lives = {name: len(l) for name, l in self.keeper.lives.items()}
        if self.kills:
            result.to_next_loss = self.time_to_next_loss()
        last = [life for life in lives if life.code == 0]
        if not last:
            result.wrong.append(f"the coordinator ended with {lives[-1].code}: {self.last_words('coordinator')}")
        reported = {}
        for life in lives:
            before = 0
            for _, step, loss in life.losses:
                if step <= before:
                    result.wrong.append(f"step {step} reported after step {before}")
                elif before and step != before + 1:
                    result.wrong.append(f"step {step} reported after step {before}")
                before = step
                if losses.get(step) != loss:
                    result.wrong.append(f"loss of step {step} is {loss}, not {losses.get(step)}")
                reported[step] = loss
        missing = [step for step in losses if step not in reported]
        if missing and last:
            result.wrong.append(f"{len(missing)} steps were not reported, the first {missing[0]}")
        if last:
            _, found = numbers(last[-1].output_bytes())
            if found != parameters:
                result.wrong.append(f"parameters {found}, not {parameters}")
        self.judge_ends(result)
        if os.path.isdir(self.kept):
            self.judge_folder(result, bool(last))

    def record(self, result):
        """A line for fault_table.py."""
        path = os.environ.get("PENSTOCK_FAULTS_RECORDS")
        if not path:
            return
        codes = {life.code for life in self.keeper.all_lives()} - {0, None}
        noticed = [t for t in self.said("coordinator", r"lost worker|superseded") if self.kills and t >= self.kills[0] - 0.01]
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps({"kind": self.scene.kind, "wrong": result.wrong[:3], "codes": sorted(codes),
                                  "noticed": noticed[0] - self.kills[0] if noticed else None,
                                  "next_loss": result.to_next_loss}) + "\n")

    def judge_ends(self, result):
        for life in self.keeper.all_lives():
            codes = {0, -9} | self.allowed_codes.get(life.name, set())
            if life.name == "coordinator" and (self.expects_superseded or self.scene.spare_count > 0):
                codes.add(6)
            if life.code not in codes:
                result.wrong.append(f"{life.name} (life {life.number}) ended with {life.code}: "
                                    f"{self.last_words(life.name, life)}")

    def judge_folder(self, result, is_done):
        for place, _, files in os.walk(self.kept):
            if os.path.basename(place) == "flight":
                continue  # what processes did last: of those that failed
            for name in files:
                if not re.fullmatch(r"(g\d+-s\d+-w\d+(-\w+)?\.safetensors|(commit|record)?[.-]?\d+(\.\w+)?|job|lock)", name):
                    result.wrong.append(f"left behind: {os.path.relpath(place, self.kept)}/{name}")
        if not is_done or self.has_own_disks:
            return
        found = subprocess.run([PENSTOCK, "checkpoint", "verify", self.kept], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False)
        if found.returncode != 0:
            result.wrong.append(f"checkpoint verify: {found.stdout.decode().strip()[-300:]}")

    def last_words(self, name, life=None):
        said = (life or self.keeper.now(name)).said
        return " | ".join(line for _, line in said[-3:])[-400:]

    def said(self, name, pattern):
        """Times at which any life of a process said this."""
        return [when for life in self.keeper.lives[name] for when, line in life.said
                if re.search(pattern, line)]

    def time_to_next_loss(self):
        """From the first death to the first loss that was computed after it was noticed."""
        first = self.kills[0]
        noticed = [t for t in self.said("coordinator", r"lost|recover|generation") if t >= first - 0.01]
        starts = [life.started for life in self.keeper.lives["coordinator"] if life.started > first]
        begin = min(noticed + starts, default=first)
        after = [when for when, _, _ in self.losses() if when > begin]
        return after[0] - first if after else None


def left_children():
    return children(os.getpid())
