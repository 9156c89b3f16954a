"""A plan: which device runs what, and what a step is predicted to take."""
from __future__ import annotations

import copy
import html
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """Nodes that follow each other on one device."""
    name: str
    device: str
    nodes: int
    in_flight: int
    parameter_bytes: int
    activation_bytes: float
    forward_seconds: float
    backward_seconds: float
    update_seconds: float
    recompute: bool


@dataclass(frozen=True)
class Device:
    """A device, and what of its memory is used at the peak."""
    name: str
    nodes: int
    bytes: float
    bytes_limit: float
    load_seconds: float


def _bytes_text(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def _seconds_text(seconds: float) -> str:
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return f"{seconds * factor:.3g} {unit}"
    return ""


_STYLE = ("<style>.penstock td,.penstock th{text-align:right;padding:.2em .8em}.penstock .text,.penstock td:last-child,"
          ".penstock th:last-child{text-align:left}.penstock table{margin:.8em 0}.penstock .bar{display:inline-block;"
          "height:.8em;background:#4a7db5;vertical-align:middle}.penstock .room{display:inline-block;width:8em;"
          "background:#8883;text-align:left;line-height:.8em}</style>")


class _Markup(str):
    """Text that is HTML already."""


def _bar(share: float) -> _Markup:
    width = f"width:{100 * min(max(share, 0), 1):.0f}%"
    return _Markup(f'<span class="room"><span class="bar" style="{width}"></span></span>')


def _table(head: list[str], rows: list[list[str]], texts: int) -> str:
    """The first `texts` columns are words, which begin at the left."""
    def line(kind: str, row: list[str]) -> str:
        cells = [text if isinstance(text, _Markup) else html.escape(text) for text in row]
        return "<tr>" + "".join(f'<{kind}{" class=text" if i < texts else ""}>{cell}</{kind}>'
                                for i, cell in enumerate(cells)) + "</tr>"
    lines = [line("th", head)] + [line("td", row) for row in rows]
    return "<table>" + "".join(lines) + "</table>"


class Plan:
    """Stages, memory and times, as `penstock plan` predicts them. A notebook shows it as tables."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self.strategy: str = values["strategy"]
        self.schedule: str = values["schedule"]
        self.microbatches: int = values["microbatches"]
        self.microbatch_size: int = values["microbatch_size"]
        self.step_seconds: float = values["step_seconds"]
        self.bubble: float = values["bubble"]
        self.stages = [Stage(name=stage["name"], device=stage["device"], nodes=stage["nodes"],
                             in_flight=stage["in_flight"], parameter_bytes=stage["parameter_bytes"],
                             activation_bytes=stage["activation_bytes"], forward_seconds=stage["forward_seconds"],
                             backward_seconds=stage["backward_input_seconds"] + stage["backward_weight_seconds"],
                             update_seconds=stage["update_seconds"], recompute=stage["recompute"])
                       for stage in values["stages"]]
        self.devices = [Device(name=device["name"], nodes=device["nodes"], bytes=device["memory"]["total"],
                               bytes_limit=device["bytes_limit"], load_seconds=device["load_seconds"])
                        for device in values["devices"]]

    def to_dict(self) -> dict[str, Any]:
        """All that is known, as `penstock plan --json` writes it."""
        return copy.deepcopy(self._values)

    def _head(self) -> str:
        return (f"{len(self.stages)} {'stage' if len(self.stages) == 1 else 'stages'} by {self.strategy}, schedule "
                f"{self.schedule}, {self.microbatches} x {self.microbatch_size} examples: a step takes "
                f"{_seconds_text(self.step_seconds)}, {100 * self.bubble:.0f} % of it idle (predicted)")

    def __repr__(self) -> str:
        lines = [self._head()]
        lines += [f"  {stage.name} on {stage.device}: {stage.nodes} nodes, "
                  f"{_bytes_text(stage.parameter_bytes)} of parameters, "
                  f"forward {_seconds_text(stage.forward_seconds)}, backward {_seconds_text(stage.backward_seconds)}"
                  for stage in self.stages]
        lines += [f"  {device.name}: {_bytes_text(device.bytes)} of {_bytes_text(device.bytes_limit)}"
                  for device in self.devices]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        longest = max([stage.forward_seconds + stage.backward_seconds for stage in self.stages] + [1e-30])
        stages = [[stage.name, stage.device, str(stage.nodes), _bytes_text(stage.parameter_bytes),
                   _seconds_text(stage.forward_seconds), _seconds_text(stage.backward_seconds),
                   _bar((stage.forward_seconds + stage.backward_seconds) / longest)] for stage in self.stages]
        devices = [[device.name, _bytes_text(device.bytes), _bytes_text(device.bytes_limit),
                    _bar(device.bytes / device.bytes_limit if device.bytes_limit > 0 else 0)]
                   for device in self.devices]
        return (f'<div class="penstock">{_STYLE}<p>{html.escape(self._head())}</p>'
                + _table(["stage", "device", "nodes", "parameters", "forward", "backward", "time"], stages, 2)
                + _table(["device", "memory", "of", "share"], devices, 1) + "</div>")
