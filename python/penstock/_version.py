"""The version of the source tree that this is in: its Makefile says it. An installation has a number here."""
import pathlib
import re

_text = (pathlib.Path(__file__).resolve().parents[2] / "Makefile").read_text(encoding="utf-8")
__version__ = re.search(r"^VERSION := (\S+)$", _text, re.MULTILINE).group(1)
