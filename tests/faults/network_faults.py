"""A training over four network namespaces whose network is disturbed.

  network_faults.py [PATTERN]       cases whose name matches

The coordinator and three workers have a namespace each; all packets between them go through one in
the middle, where they are dropped, refused, limited, or sent through packet_relay.py. Needs
namespaces (root, or user namespaces), ip, iptables and /dev/net/tun: cases for which something is
missing are skipped, counted, and say why.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

from cases import Cases, Skip
from processes import helpers
from training import PENSTOCK, Scene, Training

INSIDE = "PENSTOCK_FAULTS_INSIDE"
NODES = ["coordinator", "worker1", "worker2", "worker3"]
LEASE = 2.0
RECOVERY = f"on_loss: wait, grace: 30 s, lease: {LEASE} s, progress: 15 s, attempts: 20"


def sh(command, what=None):
    found = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           check=False)
    if found.returncode != 0 and what is not None:
        raise Skip(f"{what}: {found.stdout.decode().strip()[-120:]}")
    return found.returncode == 0


def enter():
    """Runs this script again in namespaces of its own."""
    if os.environ.get(INSIDE):
        return None
    for tool in ("unshare", "ip", "iptables"):
        if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
            return f"there is no {tool} here"
    flags = "-nm" if os.geteuid() == 0 else "-Urnm"
    if not sh(f"unshare {flags} true"):
        return "this machine allows no namespaces"
    os.environ[INSIDE] = "1"
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    os.execvp("unshare", ["unshare", flags, sys.executable] + sys.argv)


def build():
    """The namespaces and their links; the middle one is ours."""
    sh("mount -t tmpfs none /run && mkdir -p /run/netns && ip link set lo up",
       "cannot mount a folder for namespaces")
    sh("sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0",
       "cannot pass packets on")
    for i, node in enumerate(NODES):
        sh(f"ip netns add {node} && ip link add r{i} type veth peer name eth0 netns {node} && "
           f"ip addr add 10.9.{i}.1/24 dev r{i} && ip link set r{i} up && "
           f"ip netns exec {node} ip addr add 10.9.{i}.2/24 dev eth0 && "
           f"ip netns exec {node} ip link set eth0 up && ip netns exec {node} ip link set lo up && "
           f"ip netns exec {node} ip route add default via 10.9.{i}.1", f"cannot build {node}")


class Spread(Training):
    """A training whose processes are in the namespaces of their names."""

    def __init__(self, scene):
        super().__init__(scene, False, argv=["train", "--continue", "--json", "--insecure"])
        self.addresses = [f"10.9.{i + 1}.2:{port}" for i, port in enumerate(self.ports)]

    def start_worker(self, name, index=None):
        index = self.names.index(name)
        self.keeper.start(name, ["ip", "netns", "exec", name, PENSTOCK, "worker", "--quiet", "--insecure",
                                 "--store", self.kept, "--listen", self.addresses[index]], self.again)

    def start_coordinator(self):
        self.keeper.start("coordinator", ["ip", "netns", "exec", "coordinator", PENSTOCK] + self.argv +
                          [self.write_job()], self.coordinator_again)

    def generations(self):
        return sum(len(self.said("coordinator", pattern)) for pattern in ("lost worker",))


class Network:
    def __init__(self, cases):
        self.scene, self.short = (
            Scene(cases.at(name), "mlp", steps=steps, every=f"{steps // 6} steps", recovery=RECOVERY)
            for name, steps in (("network", 150), ("slow", 30)))
        self.scene.expected()

    def whole(self, before, after, scene=None):
        """A training with the network as `before` makes it."""
        before()
        try:
            training = Spread(scene or self.scene)
            training.start()
            result = training.finish(120)
        finally:
            note = after()
        if training.generations():
            result.wrong.append("the network was taken for the loss of a worker: " +
                                training.last_words("coordinator"))
        return result.wrong, f"{result.seconds:.1f} s of training; {note or ''}"

    def once(self, at, seconds, begin, end, is_loss):
        """A training that is disturbed for a time from step `at` on; is_loss None: either way."""
        training = Spread(self.scene)
        training.start()
        if not training.until(lambda: training.step() >= at, 60):
            result = training.finish(1)
            return result.wrong + [f"did not come to step {at}"], ""
        begin()
        training.kills.append(time.monotonic())
        until = time.monotonic() + seconds
        training.until(lambda: time.monotonic() > until, seconds + 60)
        end()
        result = training.finish(120)
        lost = training.generations()
        if is_loss is True and lost == 0:
            result.wrong.append("no worker was lost")
        if is_loss is False and lost > 0:
            result.wrong.append("a worker was lost: " + training.last_words("coordinator"))
        after = result.to_next_loss
        return result.wrong, f"next loss after {'-' if after is None else f'{after:.2f} s'}"


def rules(command, rule):
    return lambda: sh(f"iptables {command} FORWARD {rule}", "iptables does not do this")


def both(*functions):
    def do():
        for function in functions:
            function()
    return do


def cut_node(node):
    match = [f"-s 10.9.{node}.0/24 -j DROP", f"-d 10.9.{node}.0/24 -j DROP"]
    return both(*[rules("-I", m) for m in match]), both(*[rules("-D", m) for m in match])


def cut_pair(one, other):
    match = [f"-s 10.9.{one}.0/24 -d 10.9.{other}.0/24 -j DROP", f"-s 10.9.{other}.0/24 -d 10.9.{one}.0/24 -j DROP"]
    return both(*[rules("-I", m) for m in match]), both(*[rules("-D", m) for m in match])


def reset_node(node, which="--tcp-flags SYN NONE"):
    """Connections that there are; all with which="": to those who connect, nobody listens then."""
    match = [f"-p tcp {which} -s 10.9.{node}.0/24 -j REJECT --reject-with tcp-reset",
             f"-p tcp {which} -d 10.9.{node}.0/24 -j REJECT --reject-with tcp-reset"]
    return both(*[rules("-I", m) for m in match]), both(*[rules("-D", m) for m in match])


class RelayOfPackets:
    """All packets between nodes through packet_relay.py."""

    def __init__(self, *options):
        self.options, self.process = options, None

    def begin(self):
        if not os.path.exists("/dev/net/tun"):
            raise Skip("there is no /dev/net/tun here")
        sh("ip tuntap add dev tun0 mode tun && ip link set tun0 up mtu 1500 txqueuelen 5000",
           "cannot make a TUN device")
        sh("sysctl -qw net.ipv4.conf.tun0.rp_filter=0")
        sh("ip route add default dev tun0 table 100", "cannot route through the device")
        for i in range(len(NODES)):
            sh(f"ip rule add iif r{i} lookup 100", "cannot route through the device")
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(__file__), "packet_relay.py"), "tun0", *self.options],
            stdout=subprocess.PIPE)
        helpers.add(self.process.pid)
        time.sleep(0.3)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate()[0].decode().strip()
        for i in range(len(NODES)):
            sh(f"ip rule del iif r{i} lookup 100")
        sh("ip route flush table 100; ip link del tun0")
        return said


def limit_begin():
    for i in range(len(NODES)):
        sh(f"tc qdisc add dev r{i} root tbf rate 20mbit burst 64kb latency 100ms", "tc has no tbf here")


def limit_end():
    for i in range(len(NODES)):
        sh(f"tc qdisc del dev r{i} root")


def lose_end():
    found = subprocess.run("iptables -nvxL FORWARD | awk '/statistic/ {print $1}'", shell=True,
                           stdout=subprocess.PIPE, check=False).stdout.decode().split()
    rules("-F", "")()
    return f"{' '.join(found)} packets lost"


def main():
    cases = Cases(sys.argv[1] if len(sys.argv) > 1 else "")
    reason = enter()
    if reason is not None:
        print(f"skipped  all: {reason}")
        return 77
    try:
        build()
    except Skip as skip:
        print(f"skipped  all: {skip}")
        return 77
    network = Network(cases)
    cases.run("as it is", network.whole, lambda: None, lambda: "")
    cases.run("partition of a worker, within the lease", network.once, 40, LEASE / 4, *cut_node(2), False)
    cases.run("partition of two workers, within the lease", network.once, 40, LEASE / 4, *cut_pair(2, 3), False)
    cases.run("partition of a worker, beyond the lease", network.once, 40, 3 * LEASE, *cut_node(2), True)
    cases.run("partition of the coordinator, beyond", network.once, 40, 3 * LEASE, *cut_node(0), True)
    cases.run("connections reset", network.once, 40, 0.2, *reset_node(2), False)
    cases.run("connections reset, all", network.once, 40, 0.2,
              *[both(*fs) for fs in zip(*[reset_node(n) for n in range(4)])], False)
    cases.run("connections reset, and refused", network.once, 40, 0.2, *reset_node(2, ""), None)
    cases.run("1 % of packets lost", network.whole,
              rules("-A", "-m statistic --mode random --probability 0.01 -j DROP"), lose_end)
    cases.run("20 Mb/s", network.whole, limit_begin, limit_end)
    for name, options in (("25 ms each way", ["delay=0.025"]),
                          ("25 ms each way, 1 % lost", ["delay=0.025", "loss=0.01"]),
                          ("bits changed in 1 % of packets", ["flip=0.01"]),
                          ("packets doubled and in another order", ["double=0.05", "jitter=0.004"])):
        relay = RelayOfPackets(*options)
        scene = network.short if "delay=0.025" in options else network.scene
        cases.run(name, network.whole, relay.begin, relay.end, scene)
    return cases.end()


if __name__ == "__main__":
    sys.exit(main())
