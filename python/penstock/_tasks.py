"""A training in tasks of Spark or Ray: each starts `penstock train --launched`, and its process ends with it."""
from __future__ import annotations

import ctypes
import ipaddress
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping

from . import _errors, _job, _rows

_PR_SET_PDEATHSIG = 1
_RESTARTS = 10 # of a process that a signal ended
_RESTART_SECONDS = 0.5
_END_SECONDS = 5 # from being told to end to being ended


@dataclass(frozen=True)
class Training:
    """What all tasks of a training know. It is sent to them."""
    job: Mapping[str, Any]
    columns: _rows.Columns
    folder: str
    workers: int
    threads: int = 1
    device: Mapping[str, Any] = field(default_factory=dict)
    command: str = "penstock"
    insecure: bool = False

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise _errors.InvalidInputError(f"workers: found {self.workers}, expected at least 1")
        if self.threads < 1:
            raise _errors.InvalidInputError(f"threads: found {self.threads}, expected at least 1")
        if not os.path.isabs(self.folder):
            raise _errors.InvalidInputError(f"folder: found {self.folder}, expected an absolute path")
        self._text()

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _text(self) -> bytes:
        """The job with its data. What it says of data.train goes before: label_type, say."""
        data = dict(self.job.get("data", {}))
        data["train"] = {**self.columns.dataset(self.path("data")), **data.get("train", {})}
        devices = [{"name": "task", "per": "task", "threads": self.threads, **self.device}]
        checkpoint = {**self.job.get("checkpoint", {}), "dir": self.path("checkpoints")}
        described = _job.Job({**self.job, "data": data, "devices": devices, "checkpoint": checkpoint})
        if described.arrays:
            raise _errors.InvalidInputError(f"job, at {next(iter(described.arrays))}: found an array, expected the "
                                            "path of a file that all tasks see")
        return described.text

    def prepare(self, parts: Iterable[tuple[int, int, str]]) -> None:
        """Once the parts of the data are there, and before any task trains. Not in the driver, which need not see the
        folder."""
        parts = list(parts)
        if sum(rows for _, rows, _ in parts) == 0:
            raise _errors.InvalidInputError("the data have no rows")
        _rows.note_parts(self.path("data"), parts)
        with open(self.path("job.yaml"), "wb") as file:
            file.write(self._text())

    def run(self, rank: int, start: str, find_address: Callable[[], str]) -> None:
        """The process of a task, until the training is over. One that a signal ends is started again: the others wait
        for it, or go on without it, as the job's `recovery` says.

        start         a text that all tasks of one start have, and no other start
        find_address  the address of this machine, as the engine knows it
        """
        address = find_address()
        environment = {**os.environ, "PENSTOCK_RANK": str(rank), "PENSTOCK_SIZE": str(self.workers),
                       "PENSTOCK_START": start}
        if _is_numeric(address): # a name of this machine may mean its loopback here
            environment.setdefault("PENSTOCK_ADDRESS", address)
        command = [self.command, "train", self.path("job.yaml"), "--launched",
                   "--log", self.path("log.jsonl"), "--save", self.path("parameters.safetensors"),
                   *(["--insecure"] if self.insecure else [])]
        log = self.path(f"messages-{rank}.txt")
        before = os.path.getsize(log) if os.path.exists(log) else 0
        for _ in range(1 + _RESTARTS):
            code = _run(command, environment, log)
            if code == 0:
                return
            if code > 0:
                break
            time.sleep(_RESTART_SECONDS)
        ended = f"exit code {code}" if code > 0 else f"{signal.Signals(-code).name}, {_RESTARTS} restarts did not help"
        raise RuntimeError(f"penstock train, task {rank}: {ended}: {_tail(log, before)}")

    def result(self) -> tuple[bytes, str]:
        """The parameters, as the bytes of a safetensors file, and their hash."""
        with open(self.path("parameters.safetensors"), "rb") as file:
            weights = file.read()
        with open(self.path("log.jsonl")) as file:
            ends = [line for line in file if '"event": "end"' in line]
        return weights, json.loads(ends[-1])["parameters_hash"]


def _is_numeric(address: str) -> bool:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def _die_with(parent: int) -> Any:
    """In the child: it ends when the thread that started it does, however that comes."""
    library = ctypes.CDLL(None)

    def become() -> None:
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    return become


def _run(command: list[str], environment: Mapping[str, str], log: str) -> int:
    """The exit code; that of a process which a signal ended is its negative."""
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment,
                                   preexec_fn=_die_with(os.getpid()))
    try:
        return process.wait()
    finally: # this task may be told to end
        if process.poll() is None:
            _end(process)


def _end(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(path: str, begin: int) -> str:
    with open(path, "rb") as file:
        file.seek(begin)
        return file.read().decode(errors="replace")[-2000:]
