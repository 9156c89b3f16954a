"""Judges what a training in replicas of one device each sent and held, by its own arithmetic.

  judge_replicas.py RUN.json TRACE.json SHARDS LANES,LANES...

RUN.json is what `train --json` printed, SHARDS the folder of a checkpoint's shards with Adam's
moments, and LANES how many lanes each replica has. Prints in units of all gradients what a replica
sent in the mean. Fails where
  a device holds 5 % more or less than predicted,
  a replica sent 1 % more or less in a step than the tree of lanes and the owners ask for,
  a replica holds more of the moments than its share and those of the largest parameter.
"""
import glob
import json
import re
import struct
import sys


def shard_bytes(path):
    """Bytes of each tensor, by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {name: about["data_offsets"][1] - about["data_offsets"][0]
            for name, about in header.items() if name != "__metadata__"}


def count_subtrees(first, end, at=0, size=1 << 16):
    """Of the tree over all lanes, the largest parts that have lanes `first` up to `end` alone."""
    if at >= end or at + size <= first:
        return 0
    if first <= at and at + size <= end:
        return 1
    return count_subtrees(first, end, at, size // 2) + count_subtrees(first, end, at + size // 2, size // 2)


def check(holds, text):
    if not holds:
        sys.exit(f"FAILED: {text}")


def is_near(found, expected, part):
    return abs(found - expected) <= part * expected


def main():
    run, trace, shards, lanes = sys.argv[1:]
    lanes = [int(count) for count in lanes.split(",")]
    with open(run, encoding="utf-8") as file:
        told = json.load(file)
    for planned, measured in zip(told["predicted"]["devices"], told["measured"]["devices"]):
        check(is_near(measured["bytes"], planned["bytes"], 0.05),
              f"{planned['name']} holds {measured['bytes']} bytes, predicted {planned['bytes']}")

    parameters, moments, owner = {}, [], {}
    paths = sorted(glob.glob(f"{shards}/*.safetensors"))
    last = max(int(re.search(r"-s(\d+)-w", path).group(1)) for path in paths)
    for replica in range(len(lanes)):
        moments.append({})
        for path in glob.glob(f"{shards}/*-s{last}-w{replica + 1}.safetensors"):
            for name, size in shard_bytes(path).items():
                match = re.fullmatch(r"(.*)/(first|second)_moment", name)
                if match is None:
                    parameters[name] = size
                    continue
                owner[match.group(1)] = replica
                moments[replica][match.group(1)] = moments[replica].get(match.group(1), 0) + size
    check(set(owner) == set(parameters), f"moments of {sorted(owner)}, parameters {sorted(parameters)}")
    largest = max(size for own in moments for size in own.values())
    whole = sum(sum(own.values()) for own in moments)
    for replica, own in enumerate(moments):
        check(sum(own.values()) <= whole / len(lanes) + largest,
              f"replica {replica} has {sum(own.values())} bytes of {whole} of moments")

    sent = [0] * len(lanes)
    with open(trace, encoding="utf-8") as file:
        for event in json.load(file)["traceEvents"]:
            if event.get("cat") == "send" and event["args"]["step"] == last:
                sent[event["args"]["device"]] += event["args"]["bytes"]
    for replica, count in enumerate(lanes):
        first = sum(lanes[:replica])
        subtrees = count_subtrees(first, first + count)
        theory = sum(size * (len(lanes) - 1 if owner[name] == replica else subtrees)
                     for name, size in parameters.items())
        check(is_near(sent[replica], theory, 0.01),
              f"replica {replica} sent {sent[replica]} bytes, by theory {theory}: "
              f"{subtrees} sums of what others own, and what it owns to all others")
        predicted = told["predicted"]["devices"][replica]["sent_bytes"]
        check(is_near(sent[replica], predicted, 0.01),
              f"replica {replica} sent {sent[replica]} bytes, predicted {predicted}")
    print(f"{sum(sent) / len(lanes) / sum(parameters.values()):.2f}")


main()
