"""Sends IP packets that come to a TUN device back into it, late, twice, in another order, with bits
changed, or not at all. By seed.

  packet_relay.py DEVICE [delay=SECONDS] [jitter=SECONDS] [loss=P] [double=P] [flip=P] [seed=N]

Ends on SIGTERM, and then prints what it did.
"""
import fcntl
import heapq
import os
import random
import select
import signal
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000


def main():
    options = {"delay": 0.0, "jitter": 0.0, "loss": 0.0, "double": 0.0, "flip": 0.0, "seed": 1.0}
    for text in sys.argv[2:]:
        key, value = text.split("=")
        options[key] = float(value)
    dice = random.Random(options["seed"])
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", sys.argv[1].encode(), IFF_TUN | IFF_NO_PI))
    done = []
    signal.signal(signal.SIGTERM, lambda *_: done.append(1))
    queue, number = [], 0
    counts = {"packets": 0, "lost": 0, "doubled": 0, "changed": 0}
    while not done:
        now = time.monotonic()
        while queue and queue[0][0] <= now:
            try:
                os.write(tun, heapq.heappop(queue)[2])
            except OSError:
                counts["lost"] += 1
        wait = min(0.1, queue[0][0] - now) if queue else 0.1
        ready, _, _ = select.select([tun], [], [], max(0.0, wait))
        if not ready:
            continue
        for _ in range(64):
            try:
                packet = os.read(tun, 65536)
            except BlockingIOError:
                break
            now = time.monotonic()
            counts["packets"] += 1
            if dice.random() < options["loss"]:
                counts["lost"] += 1
                continue
            copies = 1
            if dice.random() < options["double"]:
                copies, counts["doubled"] = 2, counts["doubled"] + 1
            if len(packet) > 100 and dice.random() < options["flip"]:
                at = dice.randrange(60, len(packet))
                packet = packet[:at] + bytes([packet[at] ^ 1 << dice.randrange(8)]) + packet[at + 1:]
                counts["changed"] += 1
            for _ in range(copies):
                number += 1
                due = now + options["delay"] + dice.random() * options["jitter"]
                heapq.heappush(queue, (due, number, packet))
    print(" ".join(f"{count} {name}" for name, count in counts.items()), flush=True)


main()
