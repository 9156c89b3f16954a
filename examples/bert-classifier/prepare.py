#!/usr/bin/python3
"""Writes passages of the King James Bible as tokens, and which part of it each is from.

  bible -f gen1:1-rev22:21 | prepare.py [--verses 3] [--length 80] [--words 4000]

Writes {train,eval}_{tokens,mask,labels}.npy and words.txt. Every tenth passage, chosen by a fixed
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


def read_passages(lines, verse_count):
    """(words, part) of each passage: so many verses of a book, one after another"""
    part_of_book = [part for part, count in enumerate(PARTS) for _ in range(count)]
    books, passages, left = [], [], 0
    for line in lines:
        match = re.match(r"(\w+?)\d+:\d+ (.*)", line)
        if not match:
            continue
        if match[1] not in books:
            books.append(match[1])
            left = 0
        if left == 0:
            passages.append(([], part_of_book[len(books) - 1]))
            left = verse_count
        passages[-1][0].extend(re.findall(r"[a-z]+", match[2].lower()))
        left -= 1
    if len(books) != len(part_of_book):
        sys.exit(f"prepare.py: found {len(books)} books, expected {len(part_of_book)}")
    return passages


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--verses", type=int, default=3, help="verses of a passage")
    parser.add_argument("--length", type=int, default=80, help="tokens of a passage")
    parser.add_argument("--words", type=int, default=4000, help="words that have a token")
    options = parser.parse_args()
    passages = read_passages(sys.stdin, options.verses)
    counts = collections.Counter(word for words, _ in passages for word in words)
    common = [word for word, _ in counts.most_common(options.words - FIRST_WORD)]
    token_of = {word: FIRST_WORD + i for i, word in enumerate(common)}
    tokens = numpy.full((len(passages), options.length), PADDING, numpy.int64)
    for row, (words, _) in zip(tokens, passages):
        found = [BEGINNING, *(token_of.get(word, RARE) for word in words)][:options.length]
        row[:len(found)] = found
    labels = numpy.array([part for _, part in passages], numpy.int64)
    held_out = numpy.random.RandomState(1).rand(len(passages)) < 0.1
    for name, chosen in (("train", ~held_out), ("eval", held_out)):
        numpy.save(f"{name}_tokens.npy", tokens[chosen])
        numpy.save(f"{name}_mask.npy", (tokens[chosen] != PADDING).astype(numpy.int64))
        numpy.save(f"{name}_labels.npy", labels[chosen])
    with open("words.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(common) + "\n")


if __name__ == "__main__":
    main()
