"""Two hosts of this machine: network namespaces joined by a veth pair."""
import os
import subprocess
import sys

NETWORK = "10.79.0"
ADDRESS = f"{NETWORK}.2"  # of the second


def run(*words, check=True):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if check and done.returncode != 0:
        sys.exit(f"bench_hosts.py: {' '.join(words)}: {done.stderr.strip()}")


def why_none():
    """Why this process cannot make hosts; None if it can."""
    if os.geteuid() != 0:
        return "hosts are network namespaces, which take root"
    return None


class HostPair:
    """Two hosts, gone when the `with` is over. The line has no rate; its congestion control is said
    by routes, since the kernel may not let a namespace have another default than its own."""

    def __init__(self, congestion="cubic"):
        self.congestion = congestion
        self.names = [f"pen-bench{os.getpid()}-{side}" for side in ("from", "to")]

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "eth0", "netns", self.names[0], "type", "veth", "peer", "name",
            "eth0", "netns", self.names[1])
        for number, name in enumerate(self.names, 1):
            own = f"{NETWORK}.{number}"
            run("ip", "-n", name, "addr", "add", f"{own}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "route", "replace", f"{NETWORK}.0/24", "dev", "eth0", "src", own,
                "congctl", self.congestion)

    def __exit__(self, *_):
        for name in self.names:
            run("ip", "netns", "del", name, check=False)

    def options(self):
        """For transport_bench."""
        return ["--hosts", *self.names, ADDRESS]
