"""Makes the pages that are looked at: small trainings, plans of many devices, large graphs."""

import os
import re
import subprocess
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

TRAINING = """version: 1
model:
  inputs: {x: {shape: [12]}}
  layers:
    - dense: {units: 48, activation: relu}
    - dropout: {rate: 0.1}
    - dense: {units: 48, activation: relu}
    - dense: {units: 4}
data:
  train: {format: npy, inputs: {x: train_x.npy}, labels: train_y.npy}
  eval: {format: npy, inputs: {x: eval_x.npy}, labels: eval_y.npy}
train: {loss: softmax_cross_entropy, seed: 3, optimizer: {adam: {lr: 0.02}}, learning_rate: one_cycle,
  batch: 16, microbatches: 4, epochs: EPOCHS}
devices: [DEVICES]
evaluation: {every: 4 steps, metric: accuracy}
"""


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
    return os.path.join(folder, name)


def make_data(folder):
    numbers = np.random.RandomState(1)
    truth = numbers.randn(12, 4)
    inputs = numbers.randn(160, 12).astype(np.float32)
    labels = (inputs @ truth + 3 * numbers.randn(160, 4)).argmax(1)
    for name, part in (("train", slice(0, 96)), ("eval", slice(96, 160))):
        np.save(os.path.join(folder, f"{name}_x.npy"), inputs[part])
        np.save(os.path.join(folder, f"{name}_y.npy"), labels[part])


def training_job(folder, name, device_count, epochs=10):
    devices = ", ".join(f"{{name: device {i}, threads: 1}}" for i in range(device_count))
    text = TRAINING.replace("DEVICES", devices).replace("EPOCHS", str(epochs))
    return write(folder, name, text)


def many_devices_job(folder, name, count):
    """A deep model over many devices, of which some are slower than others."""
    layers = "".join(f"    - dense: {{units: {24 + 8 * (i % 5)}, activation: relu}}\n" for i in range(2 * count))
    devices = "".join(f"  - {{name: device {i}, threads: {1 + i % 2}}}\n" for i in range(count))
    begin, rest = TRAINING.split("    - dense", 1)
    text = begin + layers + "    - dense: {units: 4}\ndata:" + rest.split("data:", 1)[1]
    text = text.replace("devices: [DEVICES]\n", "devices:\n" + devices + "placement: {strategy: dynamic_programming}\n")
    return write(folder, name, text.replace("EPOCHS", "1").replace("microbatches: 4", "microbatches: 16"))


def large_model(folder, name, block_count, block_nodes):
    """Blocks of two halves each, every node in a module of its own names: so many times so many nodes."""
    nodes, before = [], "x"
    for block in range(block_count):
        begin = before
        for i in range(block_nodes):
            half = "attention" if i < block_nodes // 2 else "feed"
            inputs = [before, begin] if i % 10 == 9 else [before]
            after = f"encoder/block{block}/{half}/value{i}"
            nodes.append(helper.make_node("Add" if len(inputs) == 2 else ["Relu", "Tanh", "Neg"][i % 3], inputs, [after],
                                          name=f"encoder/block{block}/{half}/node{i}"))
            before = after
    shape = [helper.make_tensor_value_info(value, TensorProto.FLOAT, [4, 16]) for value in ("x", before)]
    graph = helper.make_graph(nodes, "large", shape[:1], shape[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), os.path.join(folder, name))


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")


live = []


def start_live(penstock, folder, job):
    """A training that runs until it is stopped: the address of its page."""
    said = os.path.join(folder, "live.said")
    with open(said, "w", encoding="utf-8") as file:
        live.append(subprocess.Popen([penstock, "train", "--live", "127.0.0.1:0", job], cwd=folder, stderr=file))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with open(said, encoding="utf-8") as file:
            found = re.search(r"the page is at (\S+)", file.read())
        if found and live[0].poll() is None:
            return found[1]
        time.sleep(0.05)
    raise SystemExit("the live page never came")


def stop_live():
    while live:
        training = live.pop()
        training.kill()
        training.wait()


def pictures(folder):
    """Those that the command draws, once the pages are made."""
    return [os.path.join(folder, name) for name in ("plan.svg", "graph.svg")]


def make_all(penstock, folder):
    """The pages by name: files, and the address of one that is served."""
    make_data(folder)
    pages = {}

    def page(name, *command):
        pages[name] = os.path.join(folder, f"{name}.html")
        run(folder, penstock, *command, pages[name])

    training_job(folder, "run.yaml", 3)
    page("run", "train", "-q", "run.yaml", "--report")
    training_job(folder, "one.yaml", 1)
    page("one", "train", "-q", "one.yaml", "--report")
    run(folder, penstock, "plan", "-q", "run.yaml", "-o", "plan.json")
    page("plan", "show", "plan.json", "-o")
    page("graph", "show", "run.yaml", "-o")
    many_devices_job(folder, "many.yaml", 64)
    run(folder, penstock, "plan", "-q", "many.yaml", "-o", "many.plan.json")
    page("many", "show", "many.plan.json", "-o")
    run(folder, penstock, "show", "plan.json", "-o", "plan.svg")
    run(folder, penstock, "show", "run.yaml", "-o", "graph.svg")
    large_model(folder, "large.onnx", 100, 100)
    page("large", "show", "large.onnx", "-o")
    training_job(folder, "live.yaml", 2, epochs=10000000)
    pages["live"] = start_live(penstock, folder, "live.yaml")
    return pages
