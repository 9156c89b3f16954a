"""What came of all runs of `make faults`, by the kind of fault.

  fault_table.py RECORDS

RECORDS is what $PENSTOCK_FAULTS_RECORDS named when the scripts ran: a line for each training.
"Equal" are those whose numbers are bit for bit those of one device. Seconds are medians: from the
fault to the word of a lost worker, and to the next loss.
"""
import collections
import json
import statistics
import sys

KINDS = {"kill": "processes killed, frozen, cut off", "replica": "processes of replicas killed", "network": "networks",
         "node": "nodes slow or standing still", "disks": "disks", "clock": "wall clocks that jump",
         "refused": "memory refused to a process", "group": "memory of a control group", "build": "another build"}


def middle(values):
    found = [value for value in values if value is not None]
    return f"{statistics.median(found):.2f}" if found else "-"


def main():
    runs = collections.defaultdict(list)
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            run = json.loads(line)
            runs[run["kind"]].append(run)
    print(f"{'faults':36s} {'runs':>5s} {'equal':>6s} {'noticed s':>10s} {'next loss s':>12s}  codes of processes")
    for kind, found in runs.items():
        codes = collections.Counter(code for run in found for code in run["codes"])
        said = " ".join(f"{code} ({count})" for code, count in sorted(codes.items()))
        print(f"{KINDS.get(kind, kind):36s} {len(found):5d} {sum(not run['wrong'] for run in found):6d} "
              f"{middle(run['noticed'] for run in found):>10s} {middle(run['next_loss'] for run in found):>12s}  {said}")
    everything = [run for found in runs.values() for run in found]
    print(f"{'all':36s} {len(everything):5d} {sum(not run['wrong'] for run in everything):6d} "
          f"{middle(run['noticed'] for run in everything):>10s} {middle(run['next_loss'] for run in everything):>12s}")


main()
