"""Processes that are started again when they end, as a supervisor does, and a relay of TCP that cuts.

Everything is looked at from one loop (Keeper.turn), so that what a test sees has one order.
"""
import asyncio
import ctypes
import os
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time

PR_SET_CHILD_SUBREAPER = 36
helpers = set()  # processes of the test itself
STEP = re.compile(rb'"step": (\d+), "epoch": \d+, "loss": ([^,}]+),')


def adopt_orphans():
    """Children of children that die come to us, so that what is left behind can be seen."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid):
    """All processes below `pid` that have not ended."""
    below = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    text = stat.read()
            except OSError:
                continue
            state, parent = text[text.rindex(b")") + 2:].split()[:2]
            if state != b"Z":
                below.setdefault(int(parent), []).append(int(name))
    found, todo = [], [pid]
    while todo:
        for child in below.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def state_of(pid):
    """R, S, T (stopped) …; "" when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            text = stat.read()
    except OSError:
        return ""
    return text[text.rindex(")") + 2]


def resident_bytes(pid):
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def resident_kinds(pid):
    """(of its own, of files, shared with others) in bytes: parts of what resident_bytes() tells."""
    try:
        with open(f"/proc/{pid}/status", encoding="latin-1") as status:
            found = dict(line.split(":", 1) for line in status)
        return tuple(int(found[key].split()[0]) << 10 for key in ("RssAnon", "RssFile", "RssShmem"))
    except (OSError, KeyError, ValueError):
        return 0, 0, 0


def processor_seconds(pid):
    """Of all threads, user and system; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            text = stat.read()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2:].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_ports(count):
    """Below those that the system gives to clients, so that nobody takes them meanwhile."""
    ports = []
    while len(ports) < count:
        port = random.randrange(15000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Life:
    """One process of a name from its start to its end."""

    def __init__(self, keeper, name, argv, environment, folder, number):
        self.name, self.number, self.keeper = name, number, keeper
        self.started, self.ended, self.code = time.monotonic(), None, None
        self.messages_path = f"{folder}/{name}.{number}.log"
        self.output_path = f"{folder}/{name}.{number}.out"
        self.killed_by_us = False
        self.is_frozen = False
        self.losses = []  # (time seen, step, text of the loss)
        self.said = []  # (time seen, line)
        self.held = b""
        with open(self.output_path, "wb") as out:
            self.popen = subprocess.Popen(
                argv, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.PIPE, cwd=folder, preexec_fn=keeper.prepare_child(name))
        self.pid = self.popen.pid
        self.reader = threading.Thread(target=self.read_messages, daemon=True)
        self.output = open(self.output_path, "rb")
        self.reader.start()

    def read_messages(self):
        with open(self.messages_path, "wb", buffering=0) as log:
            for line in self.popen.stderr:
                self.said.append((time.monotonic(), line.decode("utf-8", "replace").rstrip()))
                log.write(line)

    def read_losses(self):
        now = time.monotonic()
        part = self.output.read()
        if not part:
            return
        text = self.held + part
        end = 0
        for match in STEP.finditer(text):
            self.losses.append((now, int(match.group(1)), match.group(2).decode()))
            end = match.end()
        self.held = text[max(end, len(text) - 200):]

    def output_bytes(self):
        with open(self.output_path, "rb") as out:
            return out.read()

    def signal(self, number):
        if self.popen.returncode is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def kill(self):
        self.killed_by_us = True
        self.signal(signal.SIGKILL)


class Keeper:
    """Starts processes by name, and again when they end before their time."""

    def __init__(self, folder):
        self.folder = folder
        self.kinds = {}  # name: (argv, delay before another life or None)
        self.lives = {}  # name: [Life]
        self.due = {}  # name: time of the next start
        self.environment = {}  # name: of the next life only
        self.wrap = {}  # name: function that gives the preexec of a child
        self.base = dict(os.environ)
        self.base.setdefault("OMP_WAIT_POLICY", "passive")
        self.base.pop("PENSTOCK_FAILPOINT", None)
        self.is_over = False

    def prepare_child(self, name):
        return self.wrap.get(name)

    def start(self, name, argv, again=0.1, **environment):
        self.kinds[name] = (argv, again)
        self.environment[name] = environment
        self.lives.setdefault(name, [])
        self.begin(name)

    def begin(self, name):
        argv, _ = self.kinds[name]
        environment = dict(self.base, **self.environment.pop(name, {}))
        number = len(self.lives[name]) + 1
        self.due.pop(name, None)
        self.lives[name].append(Life(self, name, argv, environment, self.folder, number))

    def now(self, name):
        """The life of that name that there is or was last."""
        return self.lives[name][-1]

    def all_lives(self):
        return [life for lives in self.lives.values() for life in lives]

    def turn(self):
        """Sees who ended, starts them again when it is time. Returns the lives that ended."""
        ended = []
        for life in self.all_lives():
            if life.code is not None:
                continue
            code = life.popen.poll()
            life.read_losses()
            if code is None:
                continue
            life.code, life.ended = code, time.monotonic()
            life.reader.join(5)
            life.read_losses()
            life.output.close()
            ended.append(life)
            _, again = self.kinds[life.name]
            done = life.code == 0 or life is not self.now(life.name)
            if again is not None and not done and not self.is_over:
                self.due[life.name] = time.monotonic() + again
        for name, when in list(self.due.items()):
            if time.monotonic() >= when:
                self.begin(name)
        return ended

    def end(self, patience=5.0):
        """Tells all to end; returns the names of those that did not in time, and how others ended."""
        self.is_over = True
        self.due.clear()
        for life in self.all_lives():
            if life.code is None:
                if state_of(life.pid) == "T":
                    life.signal(signal.SIGCONT)
                life.signal(signal.SIGTERM)
        limit = time.monotonic() + patience
        while time.monotonic() < limit and any(life.code is None for life in self.all_lives()):
            self.turn()
            time.sleep(0.005)
        wrong = []
        for life in self.all_lives():
            if life.code is None:
                wrong.append(f"{life.name} did not end {patience:.0f} s after SIGTERM")
                life.kill()
                life.popen.wait()
                life.code = life.popen.returncode
        for pid in set(children(os.getpid())) - helpers:
            wrong.append(f"process {pid} was left behind")
            os.kill(pid, signal.SIGKILL)
        return wrong


def door_of(port):
    """Where processes of this user ask who takes links at a port of this host (docs/run.md, "Within one host")."""
    runtime, user = os.environ.get("XDG_RUNTIME_DIR"), os.getuid()
    parents = ([(runtime, "penstock")] if runtime else []) + [(f"/run/user/{user}", "penstock"),
                                                              ("/tmp", f"penstock-{user}")]
    for parent, name in parents:
        if parent == "/tmp" or os.path.isdir(parent) and os.stat(parent).st_uid == user:
            network = os.readlink("/proc/self/ns/net").split("[")[1].rstrip("]")
            return f"{parent}/{name}/{port}@127.0.0.1@{network}"


class Relay:
    """Takes TCP connections at a port and passes them on to another, as long as it is told to.

    pass   bytes go through
    stall  nothing goes through and no connection is taken up, but none ends: a partition
    refuse connections that there are, and new ones, are reset
    """

    loop = None

    def __init__(self, port, target):
        self.port, self.target = port, target
        self.mode = "pass"
        self.delay = 0.0
        self.flips = 0  # bytes to change, each in another piece
        self.writers = set()
        self.bytes = 0
        if Relay.loop is None:
            Relay.loop = asyncio.new_event_loop()
            threading.Thread(target=Relay.loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self.listen(), Relay.loop).result(5)

    async def listen(self):
        self.server = await asyncio.start_server(self.take, "127.0.0.1", self.port)
        self.door = door_of(self.port)
        os.makedirs(os.path.dirname(self.door), mode=0o700, exist_ok=True)
        self.keeper = asyncio.ensure_future(self.keep_door())

    async def keep_door(self):
        """Who calls here asks the process behind. One that starts takes away names that lead nowhere, as this one
        does while the process behind is not there."""
        while True:
            if not os.path.lexists(self.door):
                os.symlink(os.path.basename(door_of(self.target)), self.door)
            await asyncio.sleep(0.05)

    async def pump(self, reader, writer):
        try:
            while True:
                part = await reader.read(1 << 16)
                if not part:
                    break
                while self.mode == "stall":
                    await asyncio.sleep(0.005)
                if self.delay > 0:
                    await asyncio.sleep(self.delay)
                if self.flips > 0 and len(part) > 4096:
                    self.flips -= 1
                    at = random.randrange(len(part) // 4, len(part))
                    part = part[:at] + bytes([part[at] ^ 1 << random.randrange(8)]) + part[at + 1:]
                self.bytes += len(part)
                writer.write(part)
                await writer.drain()
        except (ConnectionError, OSError):
            pass
        finally:
            writer.close()

    async def take(self, reader, writer):
        self.writers.add(writer)
        try:
            while self.mode == "stall":
                await asyncio.sleep(0.005)
            if self.mode == "refuse":
                self.reset(writer)
                return
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
            except OSError:
                self.reset(writer)
                return
            self.writers.add(far_writer)
            await asyncio.gather(self.pump(reader, far_writer), self.pump(far_reader, writer))
            self.writers.discard(far_writer)
        finally:
            self.writers.discard(writer)

    @staticmethod
    def reset(writer):
        plug = writer.get_extra_info("socket")
        if plug is not None:
            try:
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
        writer.transport.abort()

    def cut(self):
        """Resets what there is; new connections are taken."""
        def do():
            for writer in list(self.writers):
                self.reset(writer)
        Relay.loop.call_soon_threadsafe(do)

    def close(self):
        async def do():
            self.server.close()
            self.keeper.cancel()
            for writer in list(self.writers):
                self.reset(writer)
        asyncio.run_coroutine_threadsafe(do(), Relay.loop).result(5)
        if os.path.lexists(self.door):
            os.unlink(self.door)
