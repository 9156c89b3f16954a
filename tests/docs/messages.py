#!/usr/bin/python3
"""What a page quotes as messages of the program must be there: the first cells of its tables under `message`.

  messages.py PAGE...     prints each that no text of the sources has, as FILE:LINE: text

`…` stands for any text. A text of the sources is a C string, with those that stand behind it; what printf puts in is
any text as well.
"""
import os
import re
import sys

FOLDERS = ("base", "graph", "partition", "scheduler", "device", "cli")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def source_texts():
    """All strings of the sources, those that follow one another as one; `\\0` where printf puts something in."""
    for folder in FOLDERS:
        for at, _, names in os.walk(folder):
            for name in names:
                if not name.endswith((".c", ".h")):
                    continue
                with open(os.path.join(at, name), encoding="utf-8") as file:
                    text = re.sub(r'%[-+ #0-9.*]*"\s*PRI\w+(\s*")?', lambda m: "\0" if m[1] else '\0"', file.read())
                text = re.sub(r'"\s*"', "", text)
                for match in STRING.finditer(text):
                    yield re.sub(r"%[-+ #0-9.*]*[a-z]*", "\0", match[1].replace('\\"', '"'))


def quoted(path):
    """The messages of a page with their lines: all backquotes in the first cells of its tables of messages."""
    is_table = False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
            if line.startswith("| message |"):
                is_table = True
            elif not line.startswith("|"):
                is_table = False
            elif is_table:
                for code in re.findall(r"`([^`]+)`", cells[1]):
                    yield number, code


def main():
    texts = list(source_texts())
    for path in sys.argv[1:]:
        for number, message in quoted(path):
            for part in (part.strip(" ,") for part in message.split("…")):
                if re.search(r"\w{3}", part) and not any(part in text for text in texts):
                    print(f"{path}:{number}: no message of the program has {part!r}")


if __name__ == "__main__":
    main()
