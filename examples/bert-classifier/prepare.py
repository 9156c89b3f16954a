#!/usr/bin/python3
"""Writes verses of the King James Bible as tokens, and which part of it each is from.

  bible -f gen1:1-rev22:21 | prepare.py [--length 40] [--words 2000]

Writes {train,eval}_{tokens,mask,labels}.npy and words.txt. Every tenth verse, chosen by a fixed
seed, is for evaluation. Tokens: 0 padding, 1 a rare word, 2 the beginning, then the commonest words.
"""
import argparse
import collections
import re
import sys

import numpy

# books in their order: law, history, poetry, prophets, gospels and acts, letters
PARTS = [5, 12, 5, 17, 5, 22]
PADDING, RARE, BEGINNING, FIRST_WORD = 0, 1, 2, 3


def read_verses(lines):
    """(words, part) of each verse"""
    part_of_book = [part for part, count in enumerate(PARTS) for _ in range(count)]
    books, verses = [], []
    for line in lines:
        match = re.match(r"(\w+?)\d+:\d+ (.*)", line)
        if not match:
            continue
        if match[1] not in books:
            books.append(match[1])
        verses.append((re.findall(r"[a-z]+", match[2].lower()),
                       part_of_book[books.index(match[1])]))
    if len(books) != len(part_of_book):
        sys.exit(f"prepare.py: found {len(books)} books, expected {len(part_of_book)}")
    return verses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--length", type=int, default=40, help="tokens of a verse")
    parser.add_argument("--words", type=int, default=2000, help="words that have a token")
    options = parser.parse_args()
    verses = read_verses(sys.stdin)
    counts = collections.Counter(word for words, _ in verses for word in words)
    common = [word for word, _ in counts.most_common(options.words - FIRST_WORD)]
    token_of = {word: FIRST_WORD + i for i, word in enumerate(common)}
    tokens = numpy.full((len(verses), options.length), PADDING, numpy.int64)
    for row, (words, _) in zip(tokens, verses):
        found = [BEGINNING, *(token_of.get(word, RARE) for word in words)][:options.length]
        row[:len(found)] = found
    labels = numpy.array([part for _, part in verses], numpy.int64)
    held_out = numpy.random.RandomState(1).rand(len(verses)) < 0.1
    for name, chosen in (("train", ~held_out), ("eval", held_out)):
        numpy.save(f"{name}_tokens.npy", tokens[chosen])
        numpy.save(f"{name}_mask.npy", (tokens[chosen] != PADDING).astype(numpy.int64))
        numpy.save(f"{name}_labels.npy", labels[chosen])
    with open("words.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(common) + "\n")


if __name__ == "__main__":
    main()
