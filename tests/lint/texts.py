#!/usr/bin/python3
"""Checks of the texts that people read: README files, docs/, CONTRIBUTING.md.

  texts.py FILE...     prints each finding as FILE:LINE: text

Lines have at most 120 columns, but for tables, code and lines that a link makes long. What a text names
must be there: files and headings that it links to, paths in backquotes, and functions (`pen_...`). Where a table has
the columns PROMISED, the tests of a row must be there, and have the words that the row says.
"""
import os
import re
import sys

COLUMNS = 120
FOLDERS = ("base", "graph", "partition", "scheduler", "device", "cli", "tests", "examples", "docs")
PROMISED = ["promise", "test", "words of it"]
ENDINGS = (".c", ".h", ".py", ".sh", ".md", ".awk", ".proto", ".js", ".css")


def known_names():
    """Every identifier of ours in headers and sources, and every file's name and path."""
    words, names = set(), set()
    for folder in FOLDERS:
        for at, _, files in os.walk(folder):
            names.add(at)
            for name in files:
                names.add(name)
                names.add(os.path.join(at, name))
                if name.endswith((".c", ".h")):
                    with open(os.path.join(at, name), encoding="utf-8") as file:
                        words.update(re.findall(r"\bpen_\w+", file.read()))
    return words, names


def is_there(name, folder, names):
    """Whether a path is one from the top of the tree, or from the text's own folder."""
    name = re.sub(r"[A-Z]{4,}.*", "", name)  # tests/NAME_test.c stands for many
    if not name:
        return True
    return any(os.path.exists(path) for path in (name, os.path.join(folder, name))) or name in names


def anchors_of(path, known={}):  # pylint: disable=dangerous-default-value
    """The anchors of a text's headings, as GitHub and the site make them: `## Two disks` is #two-disks."""
    if path not in known:
        found, is_code = set(), False
        with open(path, encoding="utf-8") as file:
            for line in file:
                is_code ^= line.lstrip().startswith("```")
                heading = None if is_code else re.match(r"#+ +(.*)", line)
                if heading:
                    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1].strip().lower())
                    base = anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
                    while anchor in found:
                        number = int(anchor[len(base) + 1:] or 0) + 1
                        anchor = f"{base}-{number}"
                    found.add(anchor)
        known[path] = found
    return known[path]


def link_finding(path, target, anchor):
    """What is wrong with a link of a text to TARGET#ANCHOR, either of which may be empty."""
    place = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
    if not os.path.exists(place):
        return f"links to {target}, which is not there"
    if anchor and place.endswith((".md", ".txt")) and anchor not in anchors_of(place):
        return f"links to {target}#{anchor}: no heading there is called so"
    return None


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def promise_findings(lines):
    """What is wrong with the rows of tables of promises: each names files, and words that are in one of them."""
    is_promised = False
    for number, line in enumerate(lines, 1):
        cells = cells_of(line) if line.startswith("|") else []
        is_promised = cells == PROMISED or (is_promised and bool(cells))
        if not is_promised or cells == PROMISED or re.fullmatch(r"[|\s:-]+", line):
            continue
        files, words = ([] if len(cells) != 3 else [re.findall(r"`([^`]+)`", cell) for cell in cells[1:]]) or ([], [])
        there = [name for name in files if os.path.isfile(name)]
        yield from ((number, f"promises by {name}, which is not there") for name in files if name not in there)
        if not files or not words:
            yield number, "promises, but names no test or no words of it"
        text = ""
        for name in there:
            with open(name, encoding="utf-8") as file:
                text += file.read()
        yield from ((number, f"promises by '{word}', which no test of the row has")
                    for word in words if there and word not in text)


def findings(path, words, names):
    folder = os.path.dirname(path)
    is_code = False
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    yield from promise_findings(lines)
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        if is_code:
            continue
        is_long = len(line) > COLUMNS and not line.lstrip().startswith("|")
        if is_long and not re.search(r"\S{60,}", line):
            yield number, f"has {len(line)} columns, at most {COLUMNS} are allowed"
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", line):
            finding = link_finding(path, target, anchor)
            if finding:
                yield number, finding
        for code in re.findall(r"`([^`]+)`", line):
            for name in re.findall(r"\bpen_[a-z0-9_]+", code):
                if name not in words and not any(word.startswith(name) for word in words):
                    yield number, f"names {name}, which is not there"
            is_path = re.fullmatch(r"[\w./-]+", code) and code.endswith(ENDINGS + ("/",))
            begins = code.split("/")[0] in FOLDERS
            if is_path and begins and not is_there(code.rstrip("/"), folder, names):
                yield number, f"names {code}, which is not there"


def main():
    words, names = known_names()
    for path in sys.argv[1:]:
        for number, text in findings(path, words, names):
            print(f"{path}:{number}: {text}")


if __name__ == "__main__":
    main()
