#!/usr/bin/python3
"""Checks of what comments in C say about files.

  comments.py FILE...     prints each finding as FILE:LINE: text

A path in a comment is there, from the top of the tree or from the file's own folder. A header whose functions
are defined in another source than its own (job.h: job.c) says in its first line whose contract it is.
"""
import os
import re
import sys

FOLDERS = ("base", "graph", "partition", "scheduler", "device", "cli", "tests", "examples")
PATH = re.compile(r"(?<![\w/.:<-])((?:\w[\w.-]*/)+[\w.-]*\w\.(?:c|h|py|sh|md|awk|proto|js|css))\b(?!\()")
# heads of functions that others see, as clang-format leaves them: from the first column
DEFINED = re.compile(r"^(?!static|typedef)[A-Za-z_][\w \*\n,()]*?\b(pen_\w+)\([^;{}]*\)\s*\{", re.M)
DECLARED = re.compile(r"^(?!static|typedef|\s)[A-Za-z_][^;{}#]*?\b(pen_\w+)\([^;{}]*\)[^;{}]*;", re.M)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def paths_gone(path, text):
    folder = os.path.dirname(path)
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.search(r"(?:^|\s)//(.*)", line)
        for name in PATH.findall(comment.group(1)) if comment else ():
            if not os.path.exists(name) and not os.path.exists(os.path.join(folder, name)):
                yield number, f"names {name}, which is not there"


def definitions():
    """Of every function that others see, the source that defines it."""
    found = {}
    for folder in FOLDERS:
        for at, _, files in os.walk(folder):
            for path in (os.path.join(at, name) for name in files if name.endswith(".c")):
                # a fuzzer may stand in for what it leaves out
                found.update((name, path) for name in DEFINED.findall(read(path))
                             if not (path.startswith("tests/fuzz/") and name in found))
    return found


def contracts_unsaid(path, text, defined):
    if not path.endswith(".h") or "contract" in text.split("\n")[0].lower():
        return
    own = path[:-1] + "c"
    others = {defined[name] for name in DECLARED.findall(re.sub(r"//.*", "", text)) if name in defined} - {own}
    if others:
        yield 1, f"declares what {', '.join(sorted(others))} defines; its first line says no contract"


def main():
    defined = definitions()
    for path in sys.argv[1:]:
        text = read(path)
        for number, found in [*paths_gone(path, text), *contracts_unsaid(path, text, defined)]:
            print(f"{path}:{number}: {found}")


if __name__ == "__main__":
    main()
