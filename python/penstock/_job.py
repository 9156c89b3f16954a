"""Jobs that are dicts: their text, in YAML, and the arrays in them."""
from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Mapping

from . import _arrays, _errors

# Words that mean in YAML what they mean in Python's text.
_PLAIN = re.compile(r"(?:[A-Za-z0-9_./+^$(]|-(?=[0-9]))(?:[\w ./+%^$()*|-]*[\w./+%^$()*|-])?\Z", re.ASCII)
_NOT_PLAIN = {"null", "true", "false", "yes", "no", "on", "off"}


def _scalar(value: Any, key: str) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if hasattr(value, "item"):
        value = value.item() # of NumPy or PyTorch
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _errors.InvalidInputError(f"job, at {key}: found {value}, expected a finite number", key=key)
        return repr(value)
    if isinstance(value, str):
        if _PLAIN.match(value) and value.lower() not in _NOT_PLAIN:
            return value
        return json.dumps(value, ensure_ascii=False)
    raise _errors.InvalidInputError(
        f"job, at {key}: found {type(value).__name__}, expected text, a number, a list or a dict", key=key)


class _Writer:
    """Block style, so that each setting has a line of its own, and errors find the way back."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.keys: dict[int, str] = {}

    def _add(self, text: str, key: str) -> None:
        self.lines.append(text)
        self.keys[len(self.lines)] = key

    def _value(self, head: str, value: Any, indent: int, key: str) -> None:
        if isinstance(value, Mapping):
            if not value:
                self._add(f"{head} {{}}", key)
                return
            self._add(head, key)
            self.mapping(value, indent + 2, key + ".")
        elif isinstance(value, (list, tuple)):
            if not value:
                self._add(f"{head} []", key)
                return
            self._add(head, key)
            for index, item in enumerate(value):
                self._value(" " * indent + "  -", item, indent + 2, f"{key}[{index}]")
        else:
            self._add(f"{head} {_scalar(value, key)}", key)

    def mapping(self, mapping: Mapping, indent: int, prefix: str) -> None:
        for name, value in mapping.items():
            if not isinstance(name, str):
                raise _errors.InvalidInputError(f"job, at {prefix}: found the key {name!r}, expected text",
                                                key=prefix.rstrip("."))
            if value is None:
                continue
            self._value(f"{' ' * indent}{_scalar(name, prefix + name)}:", value, indent, prefix + name)


def _name_arrays(value: Any, place: str, arrays: dict[str, _arrays.Data]) -> Any:
    """The same with names in place of arrays."""
    if isinstance(value, Mapping):
        return {key: _name_arrays(item, f"{place}.{key}" if key else place, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)) or _arrays.is_array(value):
        arrays[place] = _arrays.Data(value, place)
        return place
    return value


def _take_dataset(dataset: Any, place: str, arrays: dict[str, _arrays.Data]) -> Any:
    """A dataset of arrays: its inputs by name, or one array for the model's only input."""
    if not isinstance(dataset, Mapping):
        return dataset
    taken = dict(dataset)
    before = len(arrays)
    for field in ("inputs", "labels", "weights"):
        if field in taken:
            taken[field] = _name_arrays(taken[field], f"{place}.{field}", arrays)
    if len(arrays) == before:
        return taken
    if isinstance(taken.get("inputs"), str):
        taken["inputs"] = {"": taken["inputs"]}
    taken.setdefault("format", "arrays")
    return taken


class Job:
    """A job as the library takes it: a path, or a text with arrays."""

    def __init__(self, job: str | os.PathLike | Mapping[str, Any], arrays: Mapping[str, Any] | None = None,
                 folder: str | os.PathLike | None = None) -> None:
        self.text: bytes | None = None
        self.keys: dict[int, str] | None = None
        self.arrays = {name: _arrays.Data(value, name) for name, value in (arrays or {}).items()}
        if isinstance(job, Mapping):
            self.path = os.fsencode(os.path.join(os.fspath(folder or ""), "job"))
            self._write(job)
        elif isinstance(job, (str, os.PathLike)):
            if folder is not None:
                raise TypeError("folder: a job in a file is in its own folder")
            self.path = os.fsencode(os.path.expanduser(job))
        else:
            raise TypeError(f"job: found {type(job).__name__}, expected the path of a job, or a dict")

    def _write(self, job: Mapping[str, Any]) -> None:
        whole = {"version": 1, **job}
        if isinstance(whole.get("data"), Mapping):
            data = dict(whole["data"])
            for part in ("train", "eval"):
                if part in data:
                    data[part] = _take_dataset(data[part], f"data.{part}", self.arrays)
            whole["data"] = data
        if isinstance(whole.get("model"), (str, os.PathLike)):
            whole["model"] = {"file": whole["model"]}
        writer = _Writer()
        writer.mapping(whole, 0, "")
        self.text = ("\n".join(writer.lines) + "\n").encode()
        self.keys = writer.keys
