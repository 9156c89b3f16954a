"""Rows of a table that is spread over machines, as NPY files: a file for each column and part, and a hash of each part.

A part is what one task of Spark or Ray computes: a partition, or some blocks. It is known by its number. One that comes
again, because a task was lost or the data are read again, must have the same rows.
"""
from __future__ import annotations

import hashlib
import os
import urllib.parse
import uuid
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence

import numpy

from . import _errors

BLOCK_ROWS = 1024 # what is held of a part at once
_HEAD_BYTES = 128 # of an NPY file: its shape is known, and written, at the end
_DIGITS = 8 # of a part's number in names: their order is that of the numbers
_MAGIC = b"\x93NUMPY\x01\x00"


def _numbers(value: Any) -> numpy.ndarray:
    """A number, an array or list of them, bytes, or a vector of Spark ML."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return numpy.frombuffer(value, numpy.uint8)
    return numpy.asarray(value.toArray() if hasattr(value, "toArray") else value)


def array_of(values: Any, column: str, shape: Sequence[int] | None = None) -> numpy.ndarray:
    """The values of a column, a row each, of an element type that is taken: bytes, int64 or float32."""
    if not isinstance(values, numpy.ndarray) or values.dtype == object:
        rows = [_numbers(value) for value in values]
        other = next((row for row in rows if row.shape != rows[0].shape), None)
        if other is not None:
            raise _errors.InvalidInputError(f"column '{column}': found a row of shape {list(other.shape)}, expected "
                                            f"that of the first, {list(rows[0].shape)}")
        values = numpy.stack(rows)
    if values.dtype.kind not in "biuf":
        raise _errors.InvalidInputError(f"column '{column}': found {values.dtype}, expected numbers, arrays of "
                                        "numbers, or bytes, and none missing")
    if shape is not None:
        wanted = int(numpy.prod(shape))
        if values[:1].size not in (wanted, 0):
            raise _errors.InvalidInputError(f"column '{column}': found rows of {values[:1].size} numbers, expected "
                                            f"{wanted}, of the shape {list(shape)}")
        values = values.reshape([len(values), *shape])
    is_byte = values.dtype.itemsize == 1 and values.dtype.kind in "bu"
    return numpy.ascontiguousarray(values, "|u1" if is_byte else "<f4" if values.dtype.kind == "f" else "<i8")


@dataclass(frozen=True)
class Columns:
    """Which columns are a model's inputs and labels, by their names there; and shapes of examples, by input. `weight`
    is the column that says how much each row counts in the loss; "": all alike."""
    inputs: Mapping[str, str]
    labels: Mapping[str, str]
    shapes: Mapping[str, Sequence[int]]
    weight: str = ""

    def names(self) -> list[str]:
        """The columns that are needed, each once."""
        return list(dict.fromkeys([*self.inputs.values(), *self.labels.values(),
                                   *([self.weight] if self.weight else [])]))

    def input_arrays(self, block: Mapping[str, Any]) -> dict[str, numpy.ndarray]:
        """The inputs of some rows, whose values `block` has by column."""
        return {name: array_of(block[column], column, self.shapes.get(name)) for name, column in self.inputs.items()}

    def files(self) -> dict[str, tuple[str, Sequence[int] | None]]:
        """For each file of a part, by how its name begins: the column, and the shape of an example."""
        inputs = {_file_name("input", name): (column, self.shapes.get(name)) for name, column in self.inputs.items()}
        labels = {_file_name("label", name): (column, None) for name, column in self.labels.items()}
        weights = {"weight": (self.weight, ())} if self.weight else {}
        return {**inputs, **labels, **weights}

    def dataset(self, folder: str) -> dict[str, Any]:
        """The files of all parts, as a job has them."""
        labels: Any = {name: _pattern(folder, "label", name) for name in self.labels}
        if list(labels) == [""]:
            labels = labels[""]
        weights = {"weights": _pattern(folder, "weight", "")} if self.weight else {}
        return {"format": "npy", "labels": labels, **weights,
                "inputs": {name: _pattern(folder, "input", name) for name in self.inputs}}


def columns_of(inputs: Mapping[str, str], label: str | Mapping[str, str],
               shapes: Mapping[str, Sequence[int]] | None, weight: str | None = None) -> Columns:
    """As a caller says it: `label` is a column, or one by each name of labels."""
    for name in shapes or {}:
        if name not in inputs:
            raise _errors.InvalidInputError(f"shapes: found '{name}', expected one of inputs: {', '.join(inputs)}")
    return Columns(dict(inputs), {"": label} if isinstance(label, str) else dict(label), dict(shapes or {}),
                   weight or "")


def _file_name(kind: str, name: str) -> str:
    return f"{kind}-{urllib.parse.quote(name, safe='')}" if name else kind


def _pattern(folder: str, kind: str, name: str) -> str:
    return os.path.join(folder, f"{_file_name(kind, name)}-{'[0-9]' * _DIGITS}.npy")


class _ArrayFile:
    """An NPY file whose rows come block by block, and its hash. It has its name when it is whole."""

    def __init__(self, path: str, column: str) -> None:
        self.path, self.column = path, column
        self.temporary = f"{path}.{uuid.uuid4().hex}"
        self.row: tuple[int, ...] | None = None
        self.kind: Any = None
        self.rows = 0
        self.hash = hashlib.sha256()
        self.file = open(self.temporary, "wb")
        self.file.write(b"\0" * _HEAD_BYTES)

    def add(self, block: numpy.ndarray) -> None:
        if self.row is None:
            self.row, self.kind = block.shape[1:], block.dtype
        if block.shape[1:] != self.row or block.dtype != self.kind:
            raise _errors.InvalidInputError(
                f"column '{self.column}': found rows of {block.dtype} {list(block.shape[1:])}, expected those before, "
                f"of {self.kind} {list(self.row)}")
        data = block.tobytes()
        self.hash.update(data)
        self.file.write(data)
        self.rows += len(block)

    def finish(self) -> None:
        head = repr({"descr": self.kind.str, "fortran_order": False, "shape": (self.rows, *self.row)})
        self.hash.update(head.encode())
        self.file.seek(0)
        self.file.write(_MAGIC + (_HEAD_BYTES - len(_MAGIC) - 2).to_bytes(2, "little"))
        self.file.write(head.ljust(_HEAD_BYTES - len(_MAGIC) - 3).encode() + b"\n")
        _sync(self.file)

    def drop(self) -> None:
        self.file.close()
        if os.path.exists(self.temporary):
            os.unlink(self.temporary)


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def write_part(folder: str, index: int, blocks: Iterable[Mapping[str, Any]], columns: Columns) -> tuple[int, int, str]:
    """Writes the files of a part, whose rows come as blocks of values by column: (its number, rows, hash)."""
    os.makedirs(folder, exist_ok=True)
    files: dict[str, _ArrayFile] = {}
    try:
        for block in blocks:
            for name, (column, shape) in columns.files().items():
                array = array_of(block[column], column, shape)
                if name not in files:
                    files[name] = _ArrayFile(os.path.join(folder, f"{name}-{index:0{_DIGITS}d}.npy"), column)
                files[name].add(array)
        for file in files.values():
            file.finish()
        rows = next(iter(files.values())).rows if files else 0
        digest = hashlib.sha256(b"".join(file.hash.digest() for file in files.values())).hexdigest()
        _note(os.path.join(folder, f"part-{index:0{_DIGITS}d}.sha256"), digest,
              f"part {index} of the data came again with other rows")
        for file in files.values():
            os.replace(file.temporary, file.path)
    finally:
        for file in files.values():
            file.drop()
    return index, rows, digest


def note_parts(folder: str, parts: Iterable[tuple[int, int, str]]) -> None:
    """Refuses other parts in a folder than those that it was begun with: files of some of them would be left there."""
    digest = hashlib.sha256(repr(sorted(parts)).encode()).hexdigest()
    _note(os.path.join(folder, "parts.sha256"), digest, "the data came again in other parts")


def _note(path: str, digest: str, refusal: str) -> None:
    """Whoever is first says what the hash is: a link is made by one alone."""
    temporary = f"{path}.{uuid.uuid4().hex}"
    with open(temporary, "w") as file:
        file.write(digest)
        _sync(file)
    try:
        os.link(temporary, path)
    except FileExistsError:
        with open(path) as file:
            found = file.read()
        if found != digest:
            raise _errors.InvalidInputError(
                f"{refusal} (hash {digest[:12]}, before {found[:12]}): they must be the same each time. Sort them, or "
                "keep them in memory or files, or take another folder") from None
    finally:
        os.unlink(temporary)
