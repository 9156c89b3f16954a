#!/usr/bin/python3
"""`penstock serve` under load, beside `penstock predict` and ONNX Runtime with the same threads.

  serve_bench.py --penstock build/gcc/penstock --load build/gcc/tests/bench/serve_load [--out build/bench]
                 [--threads N] [--seconds S] [--small N] [--venv DIR | --no-peer] [MODEL...]

capacity   rows a second, answered in a closed loop: a call of one row is sent again when it is answered. Over
           three times as long as the rest
predict    rows a second of `penstock predict` in batches of the same size: more rows less fewer, so that
           starting does not count
latencies  p50 and p99 at 50 and 90 % of the capacity, in an open loop: requests come at random moments
           (serve_load.c), and each latency counts from its planned moment
overload   twice the capacity: what is answered, and what is refused
--small    the job's serve.small_batch
peer       ONNX Runtime in a process of its own, batches of the same size, no server before it

The generator runs on the same machine: its share of a core is stated. Prints tables, and puts rows into
build/bench.json. ONNX Runtime is installed from PyPI into DIR.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

import numpy

import bench_rows

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../end_to_end")
import serving  # noqa: E402  what tests of `serve` share

# rows of a batch, rows that are predicted
CASES = {"resnet50": (8, 48), "gpt4_bytes": (8, 64)}
QUEUE = 64
SEED = 7

JOB = """version: 1
model: {{file: {model}.onnx}}
data:
  train: {{format: npy, inputs: {{input: {model}_serve.npy}}, labels: {model}_serve_labels.npy}}
  eval: {{format: npy, inputs: {{input: {model}_serve.npy}}, labels: {model}_serve_labels.npy}}
train: {{loss: softmax_cross_entropy, optimizer: {{sgd: {{lr: 0.1}}}}, batch: {batch}, steps: 1}}
devices: [{{name: bench, threads: {threads}}}]
outputs: {{dir: {model}_serve_run}}
serve: {{name: net, max_batch: {batch}, queue: {queue}{small}}}
"""


def write_case(options, model):
    """Rows, the job, and requests of one row for both doors. The lengths of the requests' JSON."""
    batch, count = CASES[model]
    inputs = numpy.load(f"{options.out}/{model}_inputs.npy")
    labels = numpy.load(f"{options.out}/{model}_labels.npy")
    turns = -(-3 * count // len(inputs))
    numpy.save(f"{options.out}/{model}_serve.npy", numpy.concatenate([inputs] * turns)[: 3 * count])
    numpy.save(f"{options.out}/{model}_serve_labels.npy", numpy.concatenate([labels] * turns)[: 3 * count])
    with open(f"{options.out}/{model}_serve.yaml", "w", encoding="ascii") as file:
        file.write(JOB.format(model=model, batch=batch, threads=options.threads, queue=QUEUE,
                              small=f", small_batch: {options.small}" if options.small else ""))
    text, data = serving.infer_body("input", inputs[:1])
    with open(f"{options.out}/{model}_serve.http", "wb") as file:
        file.write(text + data)
    with open(f"{options.out}/{model}_serve.grpc", "wb") as file:
        file.write(serving.infer_message("net", "input", inputs[:1]))
    return len(text)


def predict(options, model):
    """Rows a second, and the outputs of the first rows."""
    batch, count = CASES[model]
    path = f"{options.out}/{model}_serve.yaml"
    took = []
    for rows in (count, 3 * count, count, 3 * count):
        started = time.monotonic()
        subprocess.run([options.penstock, "predict", "-q", path, "--batch", str(batch), "--limit", str(rows),
                        "-o", f"{options.out}/{model}_serve_out.npy"], check=True)
        took.append(time.monotonic() - started)
    outputs = numpy.load(f"{options.out}/{model}_serve_out.npy", mmap_mode="r")
    return 2 * count / (min(took[1], took[3]) - min(took[0], took[2])), numpy.array(outputs[:batch])


def start(options, model):
    """The server, and its ports by door."""
    with open(f"{options.out}/{model}_serve.log", "wb") as log:
        server = subprocess.Popen(
            [options.penstock, "serve", f"{options.out}/{model}_serve.yaml", "--json", "--http", "127.0.0.1:0",
             "--grpc", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=log, text=True)
    line = ""
    while not line.rstrip().endswith("}"):
        more = server.stdout.readline()
        if more == "":
            sys.exit(f"serve_bench.py: serve ended: see {options.out}/{model}_serve.log")
        line += more
    said = json.loads(line)
    return server, {"http": said["http_port"], "grpc": said["grpc_port"]}


def load(options, model, door, port, json_length, calls, seconds, rate=None):
    """What serve_load says."""
    command = [options.load, door, str(port), "net", f"{options.out}/{model}_serve.{door}",
               str(json_length if door == "http" else 0), str(calls), str(seconds)]
    if rate is not None:
        command += [f"{rate:.6g}", str(SEED)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert found["unanswered"] == 0 and found["outcomes"]["other"] == 0, (door, rate, found)
    return found


def measure_door(options, model, door, port, json_length):
    """Capacity in rows a second, then lines of the table of loads."""
    batch = CASES[model][0]
    # answers come by batches: over a short time, one more or less would count too much
    closed = load(options, model, door, port, json_length, 4 * batch, 3 * options.seconds)
    capacity = closed["answered_a_second"]
    lines = []
    for share in 0.5, 0.9, 2:
        # more calls than may wait and be computed, fewer than may be open: what is too much is refused, not held here
        found = load(options, model, door, port, json_length, QUEUE + 48, options.seconds, share * capacity)
        outcomes = found["outcomes"]
        lines.append([f"{model}, {door}", f"{100 * share:.0f} %", f"{share * capacity:.1f}",
                      f"{found['answered_a_second']:.1f}", str(outcomes["ok"]),
                      str(outcomes["shed"]), str(outcomes["late"] + outcomes["refused"]),
                      *(f"{1e3 * found[name]:.0f}" for name in ("p50", "p99", "max")),
                      f"{found['processor_seconds'] / (options.seconds + 1):.2f}"])
    return capacity, lines


def run_peer(options, model):
    """Rows a second of ONNX Runtime, and its outputs for the first batch; None where it is not wanted."""
    if options.no_peer:
        return None
    python = f"{options.venv}/bin/python"
    if subprocess.run([python, "-c", "import onnxruntime"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        subprocess.run([sys.executable, "-m", "venv", options.venv], check=True)
        subprocess.run([f"{options.venv}/bin/pip", "install", "-q", "onnxruntime"], check=True)
    path = f"{options.out}/{model}_serve_peer.npy"
    said = subprocess.run([python, f"{HERE}/onnxruntime_peer.py", f"{options.out}/{model}_inference.onnx",
                           f"{options.out}/{model}_serve.npy", str(CASES[model][0]), str(options.threads),
                           str(options.seconds), path], check=True, stdout=subprocess.PIPE).stdout
    return float(said), numpy.load(path)


def measure(options, model):
    """Rows for build/bench.json, a line of capacities, and lines of loads."""
    json_length = write_case(options, model)
    print(f"measuring {model}", file=sys.stderr, flush=True)
    predicted, outputs = predict(options, model)
    server, ports = start(options, model)
    try:
        found = {door: measure_door(options, model, door, port, json_length) for door, port in ports.items()}
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    assert code == 0, f"serve ended with {code}"
    capacity = {door: value for door, (value, _) in found.items()}
    rows = [bench_rows.row(f"serve {model}, {door}", options.threads, [value], [predicted], "penstock predict",
                           "rows/s") for door, value in capacity.items()]
    line = [model, f"{predicted:.1f}", *(f"{capacity[door]:.1f}" for door in ("http", "grpc")),
            *(f"{capacity[door] / predicted:.2f}" for door in ("http", "grpc"))]
    peer = run_peer(options, model)
    if peer is not None:
        rate, theirs = peer
        scale = numpy.abs(theirs).max()
        apart = numpy.abs(outputs - theirs).max() / scale
        assert apart < 1e-3, f"{model}: outputs are {apart} of their greatest apart from ONNX Runtime's"
        rows.append(bench_rows.row(f"serve {model}, http", options.threads, [capacity["http"]], [rate],
                                   "ONNX Runtime", "rows/s") | {"name": f"serve {model} beside ONNX Runtime"})
        line += [f"{rate:.1f}", f"{capacity['http'] / rate:.2f}", f"{apart:.1e}"]
    else:
        line += ["-"] * 3
    return rows, line, found["http"][1] + found["grpc"][1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--json", default="build/bench.json")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--small", type=int, default=0)
    parser.add_argument("--venv", default=f"{cache}/penstock/onnxruntime")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(CASES))
    options = parser.parse_args()
    models = options.models or list(CASES)
    missing = [name for name in models if not os.path.exists(f"{options.out}/{name}_inference.onnx")
               or not os.path.exists(f"{options.out}/{name}.onnx")]
    if missing:
        subprocess.run(["/usr/bin/python3", f"{HERE}/export_bench_models.py", "--inference", "--out", options.out,
                        *missing], check=True, stdout=subprocess.DEVNULL)
    measured = [measure(options, model) for model in models]
    bench_rows.save(options.json, [row for rows, _, _ in measured for row in rows])
    print(f"\nrows a second, {options.threads} threads")
    bench_rows.show_table(["model", "predict", "http", "grpc", "http/predict", "grpc/predict", "ONNX Runtime",
                           "http/ORT", "apart"], [line for _, line, _ in measured])
    print(f"requests of one row in {options.seconds:g} s; latencies in ms; `generator`: cores that it took")
    bench_rows.show_table(["model, door", "load", "sent/s", "answered/s", "answered", "shed", "lost", "p50", "p99",
                           "max", "generator"], [line for _, _, lines in measured for line in lines])


if __name__ == "__main__":
    main()
