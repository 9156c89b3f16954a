#!/usr/bin/python3
"""Functions of 20 lines or more say above them what they are for, or why they are so.

  reasons.py FILE.c...     prints FILE:LINE: NAME for each that has no comment in the line above it

Goes by clang-format's style: a function begins in the first column, its head ends with `) {`, and its
last line is a `}` in the first column.
"""
import re
import sys

LINES = 20
HEAD = re.compile(r"[A-Za-z_][\w \*,()\[\]]*\(")


def functions(lines):
    """(first line, last line, name) of each, counted from 0."""
    first = None  # of what may be a head
    body = None
    for i, line in enumerate(lines):
        if body is not None:
            if line.startswith("}"):
                yield first, i, body
                first = body = None
            continue
        if line and not line[0].isspace():
            first = i if HEAD.match(line) and not line.startswith(("#", "typedef")) else None
        if first is not None and line.rstrip().endswith(") {"):
            head = re.sub(r"__attribute__\(\(.*?\)\)+", "", " ".join(lines[first : i + 1]))
            if "=" not in head.split("(")[0]:
                body = re.search(r"(\w+)\s*\(", head).group(1)
        if first is not None and body is None and line.rstrip().endswith((";", "};", "= {")):
            first = None


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for first, last, name in functions(lines):
            above = lines[first - 1].strip() if first > 0 else ""
            is_told = above.startswith("//") or above.endswith("*/")
            if last - first + 1 >= LINES and not is_told:
                print(f"{path}:{first + 1}: {name} has {last - first + 1} lines and no comment above it")


if __name__ == "__main__":
    main()
