#!/usr/bin/python3
"""Plans beside what they come to, on a cluster in one machine.

  cluster_bench.py --penstock build/gcc/penstock [--out build/bench] [--place cluster] [--hosts 4,8]
                   [--cores 1.4] [--rate 1000] [--models a,b] [--strategies a,b] [--seeds 10] [--repeat 1]

As it is, it trains five models on 4 and on 8 equal hosts, as three strategies place them and as ten
random placements do, and says what the strategies save. With other places, strategies and models it
compares predictions with what they come to.

A place is `threads` (two devices of one process), `processes` (two processes of this machine),
`cluster`, or `unequal`. Hosts of the last two are network namespaces with an address each, joined
by a bridge that leads nowhere else. Each has a line of its own (tc's token bucket, out of it) and a
share of --cores (a cgroup's quota, with the shortest turns that the kernel allows, so that a host is
slow rather than now and then asleep). Of unequal hosts, shares go down from host to host to half,
and rates to a tenth.

Devices and links are measured first (`profile`, `probe`); then each strategy plans, and its plan is
trained. The coordinator is on a host of its own without limits. `again` is auto once more, with
what its own run saw (`plan --from-run`). Prints predicted and real seconds of a step, the bubble of
both, what the difference is made of, and what each saves against random; adds each row to
cluster.rows.json in --out.
Hosts need root, iproute2 and cgroups (version 1 or 2).
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import numpy

WARM_UP = 2
TRAINING_SECONDS = 15 # of a plan, about; at least two steps count
NETWORK = "10.78.0"
PORT = 7070
CGROUPS = "/sys/fs/cgroup"
STRATEGIES = "auto, again, contiguous, local_search, greedy, metis, dynamic_programming"


def run(*words, check=True, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)
    if check and done.returncode != 0:
        sys.exit(f"cluster_bench.py: {' '.join(words)}: {done.stderr.strip()}")
    return done


# ---- hosts

class Host:
    """A network namespace and a cgroup. What runs on it is ended by `close`."""

    def __init__(self, cluster, number, cores, rate):
        self.number, self.cores, self.rate = number, cores, rate
        self.name = f"{cluster.name}-n{number}"
        self.address = f"{NETWORK}.{number}"
        self.children = []
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", f"p{number}", "netns", cluster.hub, "type", "veth", "peer", "name", "eth0", "netns",
            self.name)
        run("ip", "netns", "exec", cluster.hub, "ip", "link", "set", f"p{number}", "master", "br0", "up")
        self._ip("addr", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            self._ip("link", "set", device, "up")
        if rate:
            run("ip", "netns", "exec", self.name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate,
                "burst", "256kbit", "latency", "50ms")
        self.group = self._make_group()

    def _ip(self, *words):
        run("ip", "netns", "exec", self.name, "ip", *words)

    def _make_group(self):
        is_old = os.path.isdir(f"{CGROUPS}/cpu")
        group = f"{CGROUPS}/cpu/{self.name}" if is_old else f"{CGROUPS}/{self.name}"
        os.makedirs(group, exist_ok=True)
        if not self.cores:
            return group
        period = int(1000 / self.cores) if self.cores < 1 else 10000
        quota = 1000 if self.cores < 1 else int(10000 * self.cores)
        values = {"cpu.max": f"{quota} {period}"}
        if is_old:
            values = {"cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": str(quota)}
        for file, value in values.items():
            with open(f"{group}/{file}", "w", encoding="ascii") as out:
                out.write(value)
        return group

    def command(self, *words):
        join = f'echo $$ > {self.group}/cgroup.procs; exec ip netns exec {self.name} "$@"'
        return ["bash", "-c", join, "bash", *words]

    def start(self, *words):
        child = subprocess.Popen(self.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.children.append(child)
        return child

    def close(self):
        for child in self.children:
            child.kill()
            child.wait()
        run("ip", "netns", "del", self.name, check=False)
        for _ in range(50):
            try:
                os.rmdir(self.group)
                return
            except OSError:
                time.sleep(0.1)


class Cluster:
    """Host 0 is the coordinator's, without limits; 1 and up are the workers'."""

    def __init__(self, options):
        self.name = f"pen{os.getpid()}"
        self.hub = f"{self.name}-hub"
        self.hosts = []
        run("ip", "netns", "add", self.hub)
        run("ip", "netns", "exec", self.hub, "ip", "link", "add", "br0", "type", "bridge")
        run("ip", "netns", "exec", self.hub, "ip", "link", "set", "br0", "up")
        try:
            self._add(100, 0, None)
            last = max(options.host_count - 1, 1) if options.place == "unequal" else float("inf")
            falls = [number / last for number in range(options.host_count)]
            most = options.cores / sum(1 - 0.5 * fall for fall in falls)
            for number, fall in enumerate(falls, start=1):
                self._add(number, most * (1 - 0.5 * fall), f"{options.rate * 10 ** -fall:.0f}mbit")
            for host in self.hosts[1:]:
                host.start(options.penstock, "worker", "--listen", f"{host.address}:{PORT}", "--insecure")
        except BaseException:
            self.close()
            raise

    def _add(self, *about):
        self.hosts.append(Host(self, *about))

    def devices(self):
        return [f"{{name: n{host.number}, host: '{host.address}:{PORT}', memory: 2GiB, threads: 1}}"
                for host in self.hosts[1:]]

    def command(self, *words):
        return self.hosts[0].command(*words)

    def close(self):
        for host in self.hosts:
            host.close()
        run("ip", "netns", "del", self.hub, check=False)


class Machine:
    """Two devices of this machine, as threads or as processes."""

    def __init__(self, options):
        self.host = "host: localhost, " if options.place == "processes" else ""

    def devices(self):
        return [f"{{name: n{number}, {self.host}memory: 8GiB, threads: 1}}" for number in (1, 2)]

    @staticmethod
    def command(*words):
        return list(words)

    def close(self):
        pass


# ---- models

def write_residual_mlp(folder):
    layers = ["    - dense: {name: first, units: 1024, activation: relu}"]
    last = "first"
    for i in range(12):
        layers += [f"    - dense: {{name: inner{i}, from: {last}, units: 1024, activation: relu}}",
                   f"    - add: {{name: block{i}, from: [{last}, inner{i}]}}"]
        last = f"block{i}"
    layers.append(f"    - dense: {{name: scores, from: {last}, units: 10}}")
    inputs = numpy.random.default_rng(1).standard_normal((512, 256), dtype=numpy.float32)
    numpy.save(f"{folder}/residual_mlp_inputs.npy", inputs)
    numpy.save(f"{folder}/residual_mlp_labels.npy", numpy.arange(512, dtype=numpy.int64) % 10)
    return "model:\n  seed: 1\n  inputs: {x: {shape: [256]}}\n  layers:\n" + "\n".join(layers)


def write_exported(name):
    def write(folder):
        if not os.path.exists(f"{folder}/{name}_labels.npy"):
            here = os.path.dirname(os.path.abspath(__file__))
            run("/usr/bin/python3", f"{here}/export_bench_models.py", "--out", folder, name)
        return f"model: {{file: {name}.onnx}}"
    return write


# what writes the model, its input, batch, microbatches, steps
MODELS = {
    "residual_mlp": (write_residual_mlp, "x", 256, 8, 16),
    "resnet18": (write_exported("resnet18"), "input", 16, 8, 4),
    "mlp2048": (write_exported("mlp2048"), "input", 256, 8, 8),
    "bert4": (write_exported("bert4"), "input", 8, 4, 8),
    "lstm512": (write_exported("lstm512"), "input", 32, 4, 8),
    "gpt4": (write_exported("gpt4"), "input", 4, 4, 4),
}

JOB = """version: 1
{model}
data: {{train: {{format: npy, inputs: {{{input}: {name}_inputs.npy}}, labels: {name}_labels.npy}}}}
train: {{loss: softmax_cross_entropy, optimizer: {{sgd: {{lr: 0.0001}}}}, batch: {batch}, microbatches: {microbatches},
  steps: {steps}, shuffle: false}}
pipeline: {{schedule: 1f1b}}
costs: {costs}
placement: {{contiguous: {contiguous}, time_limit: 5s}}
devices:
{devices}
"""


def write_job(options, model, place, contiguous=False):
    write, name, batch, microbatches, steps = MODELS[model]
    path = f"{options.out}/cluster.{model}{'.line' if contiguous else ''}.yaml"
    with open(path, "w", encoding="ascii") as file:
        file.write(JOB.format(model=write(options.out), input=name, name=model, batch=batch, microbatches=microbatches,
                              steps=steps + WARM_UP, costs=costs_file(options), contiguous=str(contiguous).lower(),
                              devices="\n".join(f"  - {device}" for device in place.devices())))
    return path


# ---- what is measured

def costs_file(options):
    return f"cluster.{options.place}.costs.yaml"


def measure_costs(options, model, place, is_first):
    """Times of operators on each host, and once, links between each two."""
    path = write_job(options, model, place)
    in_step = [] if options.place in ("cluster", "unequal") else ["--in-step", "--steps", "8"]
    verbs = [["profile", path, "--operator-time", "50ms"] + in_step]
    if is_first:
        verbs.append(["probe", path])
        if os.path.exists(f"{options.out}/{costs_file(options)}"):
            os.remove(f"{options.out}/{costs_file(options)}")
    for words in verbs:
        began = time.monotonic()
        run(*place.command(options.penstock, *words, "--insecure", "-q"))
        print(f"{options.place}, {model}: {words[0]} took {time.monotonic() - began:.1f} s", flush=True)


def measured(trace_path):
    """Seconds of a step, from end to end, and the bubble: medians over the steps after the first ones."""
    with open(trace_path, encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X" and e.get("cat") == "compute"]
    steps = {}
    for event in events:
        if event["args"].get("form", 0) == 0:
            steps.setdefault(event["args"]["step"], []).append(event)
    devices = {e["args"]["device"] for e in events}
    ends = {step: max(e["ts"] + e["dur"] for e in tasks) for step, tasks in steps.items()}
    begins = {step: min(e["ts"] for e in tasks) for step, tasks in steps.items()}
    seconds, bubbles = [], []
    for step in sorted(steps)[WARM_UP:]:
        whole = ends[step] - max(begins[step], ends.get(step - 1, 0))
        busy = sum(e["dur"] for e in steps[step])
        seconds.append(whole * 1e-6)
        bubbles.append(1 - busy / (len(devices) * whole))
    return statistics.median(seconds), statistics.median(bubbles)


def make_plan(options, model, place, strategy, seed):
    is_line = strategy == "contiguous"
    job = write_job(options, model, place, contiguous=is_line)
    name = f"{options.out}/cluster.{options.place}.{model}.{strategy}{seed if strategy == 'random' else ''}"
    words = [options.penstock, "plan", job, "-o", f"{name}.plan.yaml", "--json", "--seed", str(seed), "--strategy",
             "auto" if is_line or strategy == "again" else strategy]
    if strategy == "again":
        words += ["--from-run", f"{options.out}/cluster.{options.place}.{model}.auto.trace.json"]
    predicted = json.loads(run(*words).stdout)
    return {"place": options.place, "hosts": options.host_count, "model": model, "strategy": strategy, "seed": seed,
            "predicted": predicted["step_seconds"], "predicted_bubble": predicted["bubble"],
            "stages": len(predicted["stages"]), "name": name, "reals": [], "bubbles": [],
            "steps": WARM_UP + max(2, min(MODELS[model][4], int(TRAINING_SECONDS / predicted["step_seconds"])))}


def train(options, place, row):
    trace = f"{row['name']}.trace.json"
    done = run(*place.command(options.penstock, "train", f"{row['name']}.plan.yaml", "--json", "--no-eval", "--insecure",
                              "--overwrite", "--steps", str(row["steps"]), "--trace", trace))
    seconds, bubble = measured(trace)
    row["reals"].append(seconds)
    row["bubbles"].append(bubble)
    row["real"], row["bubble"] = statistics.median(row["reals"]), statistics.median(row["bubbles"])
    row["terms"] = json.loads(done.stdout)["measured"].get("difference", {})


def measure_strategies(options, model, place):
    """Plans are trained in turns, so that what the machine does meanwhile meets all of them."""
    wanted = [(strategy, 1) for strategy in options.strategies.split(",")]
    wanted += [("random", seed) for seed in range(1, options.seeds + 1)]
    rows = []
    for strategy, seed in wanted:
        rows.append(make_plan(options, model, place, strategy, seed))
        train(options, place, rows[-1])
    for _ in range(1, options.repeat):
        for row in rows:
            train(options, place, row)
    return rows


def show(model, rows):
    random = [row["real"] for row in rows if row["strategy"] == "random"]
    best = min(row["real"] for row in rows)
    print(f"\n{model}, {rows[0]['hosts']} hosts: seconds a step, load {os.getloadavg()[0]:.1f}")
    print(f"{'strategy':<22}{'stages':>7}{'predicted':>11}{'real':>9}{'off':>8}{'bubble':>8}{'real':>7}{'/ best':>8}"
          f"{'compute':>9}{'transfer':>9}{'waiting':>9}{'saved':>7}")
    for row in rows:
        name = row["strategy"] + (f" {row['seed']}" if row["strategy"] == "random" else "")
        saved = f"{1 - row['real'] / statistics.mean(random):7.0%}" if random else ""
        terms = "".join(f"{row['terms'].get(term + '_seconds', 0):>+9.3f}"
                        for term in ("compute", "transfer", "waiting"))
        print(f"{name:<22}{row['stages']:>7}{row['predicted']:>11.3f}{row['real']:>9.3f}"
              f"{row['predicted'] / row['real'] - 1:>+8.0%}{row['predicted_bubble']:>8.2f}{row['bubble']:>7.2f}"
              f"{row['real'] / best:>8.2f}{terms}{saved}", flush=True)


def measure_place(options):
    place = Cluster(options) if options.place in ("cluster", "unequal") else Machine(options)
    models = options.models.split(",")
    measured_rows = []
    try:
        for model in models:
            measure_costs(options, model, place, model == models[0])
            rows = measure_strategies(options, model, place)
            show(model, rows)
            measured_rows += rows
            with open(f"{options.out}/cluster.rows.json", "a", encoding="ascii") as file:
                file.write("".join(json.dumps(row) + "\n" for row in rows))
    finally:
        place.close()
    return measured_rows


def show_auto(rows):
    """How true auto's plan came, and how far it is from the best of the others, as a table of Markdown."""
    print("\n| place | model | predicted | real | off | bubble, planned | real | best | auto / best | others off by |")
    print("|---" * 10 + "|")
    for place, hosts, model in dict.fromkeys((row["place"], row["hosts"], row["model"]) for row in rows):
        here = [row for row in rows if (row["place"], row["hosts"], row["model"]) == (place, hosts, model)]
        auto = next((row for row in here if row["strategy"] == "auto"), None)
        if auto is None:
            continue
        best = min(here, key=lambda row: row["real"])
        off = [row["predicted"] / row["real"] - 1 for row in here]
        others = [far for row, far in zip(here, off) if row is not auto]
        print(f"| {place}, {hosts} | {model} | {auto['predicted']:.3f} s | {auto['real']:.3f} s "
              f"| {auto['predicted'] / auto['real'] - 1:+.0%} | {auto['predicted_bubble']:.2f} | {auto['bubble']:.2f} "
              f"| {best['strategy']} | {auto['real'] / best['real']:.2f} "
              f"| {min(others, default=0):+.0%} to {max(others, default=0):+.0%} |")


def show_saved(rows):
    """What strategies save against the mean of random placements, as a table of Markdown."""
    strategies = [name for name in dict.fromkeys(row["strategy"] for row in rows) if name != "random"]
    print("\n| model | hosts | random, s a step |", " | ".join(f"{name} | saves" for name in strategies), "|")
    print("|---" * (3 + 2 * len(strategies)) + "|")
    saved = {name: [] for name in strategies}
    for model, hosts in dict.fromkeys((row["model"], row["hosts"]) for row in rows):
        here = [row for row in rows if (row["model"], row["hosts"]) == (model, hosts)]
        random = [row["real"] for row in here if row["strategy"] == "random"]
        cells = []
        for name in strategies:
            real = next(row["real"] for row in here if row["strategy"] == name)
            saved[name].append(1 - real / statistics.mean(random))
            cells.append(f"{real:.3f} | {saved[name][-1]:.0%}")
        print(f"| {model} | {hosts} | {statistics.mean(random):.3f} ({min(random):.3f} to {max(random):.3f}) |",
              " | ".join(cells), "|")
    print("| mean | | |", " | ".join(f"| {statistics.mean(saved[name]):.0%}" for name in strategies), "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--place", default="cluster", help="of threads, processes, cluster, unequal; several: a,b")
    parser.add_argument("--hosts", default="4,8", help="numbers of them, of cluster and unequal")
    parser.add_argument("--cores", type=float, default=1.4, help="that all hosts share")
    parser.add_argument("--rate", type=int, default=1000, help="Mbit/s of a host's line")
    parser.add_argument("--models", default="residual_mlp,resnet18,bert4,lstm512,mlp2048", help=", ".join(MODELS))
    parser.add_argument("--strategies", default="auto,greedy,metis", help=STRATEGIES)
    parser.add_argument("--seeds", type=int, default=10, help="of random placements")
    parser.add_argument("--repeat", type=int, default=1, help="trainings of a plan")
    options = parser.parse_args()
    places = options.place.split(",")
    if {"cluster", "unequal"} & set(places) and (os.geteuid() != 0 or not shutil.which("tc")):
        sys.exit("cluster_bench.py: hosts in namespaces need root and iproute2")
    os.makedirs(options.out, exist_ok=True)
    options.penstock, options.out = os.path.abspath(options.penstock), os.path.abspath(options.out)
    for options.place in places:
        is_local = options.place in ("threads", "processes")
        rows = []
        for options.host_count in [2] if is_local else [int(count) for count in options.hosts.split(",")]:
            rows += measure_place(options)
        show_auto(rows)
        if options.seeds > 0:
            show_saved(rows)


if __name__ == "__main__":
    main()
