#!/usr/bin/python3
"""Every command line of Penstock in a text names a verb, and options, that there are.

  commands.py PENSTOCK TEXT...     prints what does not, as FILE:LINE: text, and how many command lines it saw

Command lines are those of blocks of code, and what stands in backquotes and begins with `penstock`.
"""
import os
import re
import subprocess
import sys

COMMAND = re.compile(r"(?:^|[\s$;(|&=])(?:build/gcc/)?penstock ((?:\\\n|[^`|;&>#\n])*)")
VERB = re.compile(r"[a-z]+$")
OPTION = re.compile(r"(?:^|\s)(--?[a-zA-Z][\w-]*)")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


class Verbs:
    """What the command says of its verbs, asked once."""

    def __init__(self, penstock):
        self.penstock, self.known = penstock, {}
        self.names = set(re.findall(r"^  ([a-z]+) {2,}", self.said("help"), re.M))

    def said(self, *words):
        return subprocess.run([self.penstock, *words], check=True, capture_output=True, text=True,
                              env={**os.environ, "COLUMNS": "200"}).stdout

    def options(self, verb):
        if verb not in self.known:
            help_text = self.said(verb, "--help")
            self.known[verb] = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", help_text, re.M))
            self.known[verb] |= set(re.findall(r"^ +(-\w),? ", help_text, re.M))
        return self.known[verb]


def command_lines(path):
    """What stands behind `penstock ` on command lines, with its line."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for match in re.finditer(r"^ *```[^\n]*\n(.*?)^ *```|`([^`\n]+)`", text, re.M | re.S):
        number = 1 if match[1] is not None else 2
        for command in COMMAND.finditer(match[number]):
            start = match.start(number) + command.start()
            yield text.count("\n", 0, start + 1) + 1, command[1].replace("\\\n", " ")


def wrong_in(command, verbs):
    """What a command line names that is not there."""
    words = command.split()
    if not words or words[0].startswith("-") or not VERB.match(words[0]):
        return  # `penstock VERB`, `penstock --version`, a word of a sentence
    if words[0] not in verbs.names:
        yield f"penstock has no verb '{words[0]}'"
        return
    for option in OPTION.findall(QUOTED.sub("", command)):
        if option not in verbs.options(words[0]):
            yield f"penstock {words[0]} has no option {option}"


def main():
    verbs = Verbs(sys.argv[1])
    count = failed = 0
    for path in sys.argv[2:]:
        for line, command in command_lines(path):
            count += 1
            for text in wrong_in(command, verbs):
                failed = 1
                print(f"{path}:{line}: {text}")
    print(f"{count} command lines")
    sys.exit(failed)


if __name__ == "__main__":
    main()
