"""Opens event files with TensorBoard, over its own server, and reads figures as Prometheus does.

  check_followers.py BOARD FIGURES LOG...     BOARD has the folder `run`; its steps are those of the logs, one after another
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

WAIT = 120  # seconds for the server, which imports much


def single(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def lines(paths, event):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            yield from (line for line in map(json.loads, file) if line["event"] == event)


class Board:
    """TensorBoard at a port of its choice; its answers are what its page draws."""

    def __init__(self, folder):
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--host", "127.0.0.1", "--port", "0",
             "--load_fast", "false"],
            stdout=self.said, stderr=subprocess.STDOUT, env=dict(os.environ, PYTHONUNBUFFERED="1"))
        self.address = self.wait(self.find_address, "TensorBoard does not begin")

    def wait(self, look, problem):
        end = time.monotonic() + WAIT
        while time.monotonic() < end and self.process.poll() is None:
            found = look()
            if found:
                return found
            time.sleep(0.2)
        self.said.seek(0)
        sys.exit(f"{problem}: {self.said.read()}")

    def find_address(self):
        self.said.seek(0)
        words = [word for word in self.said.read().split() if word.startswith("http://127.0.0.1:")]
        return words[0] if words else None

    def ask(self, path, **query):
        address = f"{self.address}data/plugin/scalars/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=WAIT) as answer:
            return json.load(answer)

    def tags(self):
        return self.wait(lambda: self.ask("tags").get("run"), "TensorBoard finds no run")

    def curve(self, tag):
        return [(step, value) for _, step, value in self.ask("scalars", run="run", tag=tag)]

    def close(self):
        self.process.terminate()
        self.process.wait()


def expect(found, wanted, what):
    if found != wanted:
        sys.exit(f"{what}: {found}, expected {wanted}")


def check_board(board, logs):
    steps, evaluations = list(lines(logs, "step")), list(lines(logs, "evaluation"))
    curves = {key: [(step["step"], single(step[key])) for step in steps] for key in ("loss", "accuracy", "learning_rate")}
    for key in ("loss", "accuracy", "f1", "top_2"):
        curves["evaluation/" + key] = [(line["step"], single(line[key])) for line in evaluations]
    tags = board.tags()
    missing = [tag for tag in curves if tag not in tags]
    expect(missing, [], "curves that TensorBoard does not have")
    for tag, curve in curves.items():
        expect(board.curve(tag), curve, f"TensorBoard's curve of {tag}")
    print(f"TensorBoard draws {len(tags)} curves of {len(steps)} steps and {len(evaluations)} evaluations")


def check_figures(path, logs):
    with open(path, encoding="utf-8") as file:
        families = {family.name: family for family in text_string_to_metric_families(file.read())}
    last, evaluation = list(lines(logs, "step"))[-1], list(lines(logs, "evaluation"))[-1]
    for name, value in (("step", last["step"]), ("loss", last["loss"]), ("evaluation_f1", evaluation["f1"]),
                        ("running", 0)):
        expect([sample.value for sample in families["penstock_train_" + name].samples], [value], f"Prometheus' {name}")
    wrong = [name for name, family in families.items() if family.type not in ("gauge", "counter") or not family.documentation]
    expect(wrong, [], "figures without type or help")
    print(f"Prometheus reads {len(families)} figures")


def main():
    folder, figures, *logs = sys.argv[1:]
    board = Board(folder)
    try:
        check_board(board, logs)
    finally:
        board.close()
    check_figures(figures, logs)


main()
