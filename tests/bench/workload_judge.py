"""What a placement of a workload is worth, worked out anew from the workload's file.

Throughput: the largest load. Accelerators pay for each of their outputs that another device reads,
once, and for each foreign output that they read, once; cores pay for computing alone. Latency: the
finish time of the last node, devices working off their pieces one after another; pieces pay likewise
for what they exchange with others, also with those of their own device.
"""
import collections
import json


def load(path):
    with open(path, encoding="utf-8") as file:
        workload = json.load(file)
    nodes = {node["id"]: node for node in workload["nodes"]}
    workload["nodes"] = nodes
    workload["after"] = collections.defaultdict(set)
    workload["before"] = collections.defaultdict(set)
    workload["transfer"] = collections.defaultdict(float)
    for edge in workload["edges"]:
        source, target = edge["sourceId"], edge["destId"]
        if source == target:
            continue
        workload["after"][source].add(target)
        workload["before"][target].add(source)
        workload["transfer"][source] = edge["cost"]
    return workload


def device_count(workload):
    return workload["maxFPGAs"] + workload["maxCPUs"]


def compute(workload, node, device):
    entry = workload["nodes"][node]
    return entry["fpgaLatency" if device < workload["maxFPGAs"] else "cpuLatency"]


def loads(workload, placement):
    """The load of each device."""
    total = [0.0] * device_count(workload)
    for node, device in placement.items():
        total[device] += compute(workload, node, device)
        readers = {placement[target] for target in workload["after"][node]} - {device}
        for payer in readers | ({device} if readers else set()):
            if payer < workload["maxFPGAs"]:
                total[payer] += workload["transfer"][node]
    return total


def order(items, after):
    """Topological order of `items`, or None when there is a cycle."""
    waits = collections.Counter(target for item in items for target in after[item])
    ready = [item for item in items if waits[item] == 0]
    for item in ready:
        for target in after[item]:
            waits[target] -= 1
            if waits[target] == 0:
                ready.append(target)
    return ready if len(ready) == len(items) else None


def has_device_order(workload, placement):
    """Whether the devices, linked as the forward nodes on them are, have an order."""
    after = collections.defaultdict(set)
    for source, targets in workload["after"].items():
        for target in targets:
            if workload["nodes"][source]["isBackwardNode"]:
                continue
            if workload["nodes"][target]["isBackwardNode"]:
                continue
            if placement[source] != placement[target]:
                after[placement[source]].add(placement[target])
    return order(list(range(device_count(workload))), after) is not None


def faults(workload, placement, is_contiguous):
    """What is wrong with a placement: a list of texts."""
    found = []
    if set(placement) != set(workload["nodes"]):
        return ["not each node is placed once"]
    if any(not 0 <= device < device_count(workload) for device in placement.values()):
        return ["a device does not exist"]
    held = collections.Counter()
    home = {}
    for node, device in placement.items():
        entry = workload["nodes"][node]
        if device < workload["maxFPGAs"]:
            held[device] += entry.get("size", 0.0)
            if not entry["supportedOnFpga"]:
                found.append(f"node {node} cannot run on accelerator {device}")
        color = entry.get("colorClass")
        if color is not None and home.setdefault(color, device) != device:
            found.append(f"colour class {color} is on two devices")
    limit = workload["maxSizePerFPGA"] * (1 + 1e-9)
    found += [f"accelerator {device} holds {held[device]:.0f} bytes, it has {limit:.0f}"
              for device in held if held[device] > limit]
    if is_contiguous and not has_device_order(workload, placement):
        found.append("the devices have no order")
    return found


# ---- latency

def leavings(workload, placement, nodes):
    """For each node, the most times that a path to it leaves its device and comes back."""
    level, away = {}, {}  # away[node][device]: the level that a return to the device would have
    for node in nodes:
        here = placement[node]
        best, mine = 0, collections.defaultdict(int)
        for source in workload["before"][node]:
            there = placement[source]
            if there == here:
                best = max(best, level[source])
            else:
                best = max(best, away[source][here])
                mine[there] = max(mine[there], level[source] + 1)
            for device, value in away[source].items():
                mine[device] = max(mine[device], value)
        level[node], away[node] = best, mine
    return level


def changes(workload, placement, nodes):
    """For each node, the most times that a path to it changes the device."""
    level = {}
    for node in nodes:
        level[node] = max((level[source] + (placement[source] != placement[node])
                           for source in workload["before"][node]), default=0)
    return level


def finish_of_pieces(workload, placement, nodes, level):
    """The finish time of the last piece, or None when pieces wait for each other."""
    pieces = collections.defaultdict(list)
    for node in nodes:
        here = placement[node]
        is_core = here >= workload["maxFPGAs"]
        pieces[(here, node) if is_core else (here, level[node])].append(node)
    piece_of = {node: piece for piece, members in pieces.items() for node in members}
    after = collections.defaultdict(set)
    for node in nodes:
        for target in workload["after"][node]:
            if piece_of[node] != piece_of[target]:
                after[piece_of[node]].add(piece_of[target])
    for device in range(workload["maxFPGAs"]):
        mine = sorted(piece for piece in pieces if piece[0] == device)
        for first, second in zip(mine, mine[1:]):
            after[first].add(second)
    line = order(list(pieces), after)
    if line is None:
        return None
    begin, last = collections.defaultdict(float), 0.0
    for piece in line:
        here, seconds, read = piece[0], 0.0, set()
        for node in pieces[piece]:
            seconds += compute(workload, node, here)
            if here >= workload["maxFPGAs"]:
                continue
            read |= {source for source in workload["before"][node] if piece_of[source] != piece}
            if any(piece_of[target] != piece for target in workload["after"][node]):
                seconds += workload["transfer"][node]
        seconds += sum(workload["transfer"][source] for source in read)
        end = begin[piece] + seconds
        last = max(last, end)
        for target in after[piece]:
            begin[target] = max(begin[target], end)
    return last


def latency(workload, placement):
    nodes = order(list(workload["nodes"]), workload["after"])
    level = leavings(workload, placement, nodes)
    finish = finish_of_pieces(workload, placement, nodes, level)
    if finish is None:
        level = changes(workload, placement, nodes)
        finish = finish_of_pieces(workload, placement, nodes, level)
    return finish


def judge(workload, placement, objective, is_contiguous):
    """The value, and what is wrong."""
    found = faults(workload, placement, is_contiguous)
    if found:
        return float("inf"), found
    if objective == "latency":
        return latency(workload, placement), found
    return max(loads(workload, placement)), found
