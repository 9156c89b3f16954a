#!/usr/bin/python3
"""Text to tokens and back: 0 is a space, 1 to 26 are the letters.

  prepare.py tokens.bin <TEXT     writes a byte a token; all else becomes a space
  prepare.py --decode <NUMBERS    prints tokens as text
"""
import argparse
import re
import sys

LETTERS = " abcdefghijklmnopqrstuvwxyz"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--decode", action="store_true")
    parser.add_argument("--encode", action="store_true", help="print numbers instead of a file")
    parser.add_argument("file", nargs="?")
    options = parser.parse_args()
    text = sys.stdin.read()
    if options.decode:
        print("".join(LETTERS[int(token)] for token in text.split()))
        return
    text = re.sub(r"[^a-z]+", " ", re.sub(r"(?m)^\w+:\d+ ", "", text).lower())
    tokens = [LETTERS.index(letter) for letter in text]
    if options.encode:
        print(*tokens)
    elif options.file is None:
        parser.error("the file to write is missing")
    else:
        with open(options.file, "wb") as file:
            file.write(bytes(tokens))


if __name__ == "__main__":
    main()
