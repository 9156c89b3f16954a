#!/usr/bin/python3
"""Strangers that attack a worker over raw sockets, and what the worker takes for them.

  strangers.py PID PORT           each attack in turn; exit code 1 when one takes too much
  strangers.py --hold PORT COUNT  so many connections that say nothing, until it is ended
"""
import glob
import gzip
import os
import select
import socket
import struct
import sys
import time

MIB = 1 << 20
MOST_MIB = 64  # that an attack may take
KEPT_MIB = 16  # that may be left when it is over
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
ENDS_HEADERS, ACK = 4, 1


def frame(kind, flags, stream, body=b""):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + body


def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def headers(*more, path=b"/penstock.Penstock/Exchange"):
    fields = ((b":path", path), (b":authority", b"a"),
              (b"te", b"trailers"), (b"content-type", b"application/grpc")) + more
    return b"\x83\x86" + b"".join(literal(name, value) for name, value in fields)


def message(body, announced=None, flag=0):
    return bytes([flag]) + struct.pack(">I", len(body) if announced is None else announced) + body


def number(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(key, value):
    """A field of protobuf: a number, or bytes."""
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value


def find_token(port):
    """A token for one link, which the worker gives its own user over a socket."""
    user = os.getuid()
    folders = (os.environ.get("XDG_RUNTIME_DIR", "/nowhere") + "/penstock",
               f"/run/user/{user}/penstock", f"/tmp/penstock-{user}")
    doors = [door for folder in folders for door in glob.glob(f"{folder}/{port}@127.0.0.1@*")]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(doors[0])
        asking.send(struct.pack("<IIQ", 0x70656E74, 1, 0))
        return b"once " + asking.recv(64)[4:20].hex().encode()


class Caller:
    """An HTTP/2 connection, with what the other end lets us send."""

    def __init__(self, port, source="127.0.0.1", says_hello=True):
        self.socket = socket.socket()
        self.socket.settimeout(20)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self.first_window, self.window, self.windows = 65535, 65535, {}
        self.largest = 16384
        self.buffer, self.heard, self.is_over = b"", b"", False
        if says_hello:
            self.send(PREFACE + frame(SETTINGS, 0, 0))

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_over = True

    def open(self, stream, *more, **path):
        self.windows[stream] = self.first_window
        self.send(frame(HEADERS, ENDS_HEADERS, stream, headers(*more, **path)))

    def take(self, kind, flags, stream, body):
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(body), 6):
                key, value = struct.unpack(">HI", body[at:at + 6])
                if key == 4:
                    for other in self.windows:
                        self.windows[other] += value - self.first_window
                    self.first_window = value
                elif key == 5:
                    self.largest = min(value, MIB)
            self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, body))
        elif kind == WINDOW and stream == 0:
            self.window += int.from_bytes(body, "big")
        elif kind == WINDOW and stream in self.windows:
            self.windows[stream] += int.from_bytes(body, "big")
        elif kind == RESET:
            self.windows.pop(stream, None)
        elif kind == DATA:
            self.heard += body

    def hear(self, seconds):
        """Takes what has come; waits so long for it."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return
        try:
            more = self.socket.recv(1 << 16)
        except OSError:
            more = b""
        self.is_over = self.is_over or more == b""
        self.buffer += more
        while len(self.buffer) >= 9:
            end = 9 + int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < end:
                break
            kind, flags = self.buffer[3:5]
            self.take(kind, flags, int.from_bytes(self.buffer[5:9], "big"), self.buffer[9:end])
            self.buffer = self.buffer[end:]

    def hear_until(self, is_enough, seconds=5):
        end = time.monotonic() + seconds
        while not is_enough() and not self.is_over and time.monotonic() < end:
            self.hear(0.2)

    def pour(self, stream, head, count, seconds=10):
        """Sends `head` and zeros, as far as it is let within that time; says how many bytes."""
        end, sent, zeros = time.monotonic() + seconds, 0, bytes(MIB)
        while sent < count and stream in self.windows and not self.is_over:
            if time.monotonic() > end:
                break
            most = min(self.window, self.windows[stream], self.largest, count - sent)
            if most <= 0:
                self.hear(0.2)
                continue
            body, head = (head + zeros)[:most], head[most:]
            self.send(frame(DATA, 0, stream, body))
            self.window -= most
            self.windows[stream] -= most
            sent += most
            self.hear(0)
        return sent

    def introduce(self):
        """As a coordinator, which is then the worker's own. Returns the worker's incarnation."""
        body = field(1, 2) + field(2, 0) + field(3, 1) + field(4, 1) + b"\x29" + bytes([1] * 8)
        self.open(1, (b"penstock-token", find_token(self.socket.getpeername()[1])))
        self.send(frame(DATA, 0, 1, message(field(1, body + field(6, b"j")))))
        self.hear_until(lambda: len(self.heard) > 40)
        at = self.heard.index(b"\x29")
        return struct.unpack("<Q", self.heard[at + 1:at + 9])[0]


def callers(port, count, sources=1, says_hello=True):
    """As many of them as are taken."""
    made = []
    for at in range(count):
        try:
            made.append(Caller(port, f"127.0.0.{1 + at % sources}", says_hello))
        except OSError:
            pass
    return made


# ---- attacks: each returns the callers that are there

def silent(port):
    return callers(port, 600, 1, False) + callers(port, 600, 3)


def many_streams(port):
    """As much as may be had: the most callers, the most streams of each."""
    made = callers(port, 330, 3)
    for caller in made:
        for stream in range(1, 16, 2):
            caller.open(stream)
            caller.send(frame(DATA, 0, stream, message(bytes(1700), (1 << 32) - 1)))
    return made


def too_many_streams(port):
    made = callers(port, 100)
    for caller in made:
        for stream in range(1, 101, 2):
            caller.open(stream)
            caller.send(frame(DATA, 0, stream, message(bytes(31), (1 << 32) - 1)))
    return made


def long_message(port):
    made = callers(port, 4)
    for caller in made:
        caller.hear(1)
        caller.open(1)
        caller.pour(1, message(b"", 600 * MIB), 600 * MIB)
    return made


def reset_streams(port):
    made = callers(port, 1)
    block = headers()
    made[0].send(b"".join(
        frame(HEADERS, ENDS_HEADERS, stream, block) + frame(RESET, 0, stream, b"\0\0\0\x08")
        for stream in range(1, 40001, 2)))
    return made


def slow_headers(port):
    made = callers(port, 320, 3)
    for caller in made:
        caller.send(frame(HEADERS, 0, 1, b"\x83\x86"))
    for turn in range(20):
        for caller in made:
            caller.send(frame(CONTINUATION, 0, 1, literal(b"x%d" % turn, b"y" * 100) * 8))
    return made


def bomb(port):
    made = callers(port, 20)
    packed = gzip.compress(bytes(12 * MIB))
    for caller in made:
        caller.open(1, (b"grpc-encoding", b"gzip"))
        caller.send(frame(DATA, 0, 1, message(packed, flag=1)))
    return made


def known_resets(port):
    """From one who has said who it is."""
    caller = Caller(port)
    caller.introduce()
    block = headers()
    caller.send(b"".join(
        frame(HEADERS, ENDS_HEADERS, stream, block) + frame(RESET, 0, stream, b"\0\0\0\x08")
        for stream in range(3, 40001, 2)))
    return [caller]


def known_announces(port):
    """A coordinator whose description has 4 GiB, of which nothing comes."""
    caller = Caller(port)
    incarnation = caller.introduce()
    body = field(1, 1) + field(2, incarnation) + field(4, (1 << 32) - 1)
    control = field(1, 1) + field(2, b"j") + field(3, 1) + field(4, 0x0101010101010101)
    said = len(caller.heard)
    caller.send(frame(DATA, 0, 1, message(field(5, 1) + field(2, control + field(12, body)))))
    caller.hear_until(lambda: len(caller.heard) > said)
    return [caller]


ATTACKS = (silent, many_streams, too_many_streams, long_message, reset_streams, slow_headers, bomb,
           known_resets, known_announces)


# ---- what is taken

def taken(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(key):
                return int(line.split()[1]) / 1024
    raise ValueError(key)


def attack(pid, port, name, run):
    before = taken(pid, "VmRSS")
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")  # the most is counted from here
    made = run(port)
    time.sleep(0.5)
    most = taken(pid, "VmHWM") - before
    for caller in made:
        caller.socket.close()
    print(f"{name}: {len(made)} callers, at most {most:.0f} MiB")
    return most <= MOST_MIB


def main():
    if sys.argv[1] == "--hold":
        held = callers(int(sys.argv[2]), int(sys.argv[3]), 1, False)
        print(len(held), flush=True)
        time.sleep(600)
    pid, port = int(sys.argv[1]), int(sys.argv[2])
    before = taken(pid, "VmRSS")
    is_good = True
    for run in ATTACKS:
        is_good = attack(pid, port, run.__name__, run) and is_good
    end = time.monotonic() + 15
    while taken(pid, "VmRSS") - before > KEPT_MIB and time.monotonic() < end:
        time.sleep(0.2)
    kept = taken(pid, "VmRSS") - before
    print(f"kept: {kept:.0f} MiB")
    sys.exit(0 if is_good and kept <= KEPT_MIB else 1)


if __name__ == "__main__":
    main()
