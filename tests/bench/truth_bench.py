#!/usr/bin/python3
"""What plans say beside what they come to: models of four kinds in four places, as each strategy places them.

  truth_bench.py --penstock build/gcc/penstock [--out build/bench] [--place cluster] [--models a,b]
                 [--strategies a,b] [--seconds 2] [--minutes 10] [--again] [--show]

Places and models are those of cluster_bench.py: two threads, two processes, 4 hosts with a line of
1 Gbit/s each, 8 unequal hosts with lines of 100 Mbit/s to 1 Gbit/s. For each pair of a place and a
model, links (once a place) and operators are measured, every strategy plans, and the plans are
trained in turns: three times those that are predicted to be up to a tenth slower than the shortest,
and others once. Plans that are alike are one. Of a plan's trainings the quickest counts: what else
runs on the machine, or beside it on the same host, only makes one slower.

A pair is a line of truth.rows.json in --out. Pairs that are there are not run again (--again does),
so that what was stopped goes on where it was, and pairs can be run one by one; --show prints the
tables of all that are there. What is asked of a pair: the prediction of `auto` is within 10 % of the
real step, its bubble within 5 points, and no strategy is more than 2 % faster.
"""
import argparse
import hashlib
import json
import os
import re
import signal
import statistics
import sys
import time

import cluster_bench

PLACES = {"threads": 2, "processes": 2, "cluster": 4, "unequal": 8} # how many devices
MODELS = "residual_mlp,resnet18,bert4,lstm512"
STRATEGIES = "auto,contiguous,local_search,dynamic_programming,metis,greedy,round_robin,random"
LEAST_STEPS, MOST_STEPS = 3, 100 # that count, of a training
TURNS = ((1.1, 3), (float("inf"), 1)) # of plans that are predicted to be so much slower
OFF_LIMIT, BUBBLE_LIMIT, BEST_LIMIT = 0.10, 0.05, 1.02


def rows_file(options):
    return f"{options.out}/truth.rows.json"


def read_rows(options):
    """The last line of each pair, in the order of places and models."""
    rows = {}
    if os.path.exists(rows_file(options)):
        with open(rows_file(options), encoding="ascii") as file:
            rows = {(row["place"], row["model"]): row for row in map(json.loads, file)}
    return [rows[pair] for pair in sorted(rows, key=lambda pair: (list(PLACES).index(pair[0]),
                                                                  list(cluster_bench.MODELS).index(pair[1])))]


# ---- one pair

def measure(options, model, place):
    """Links, unless they were measured for this place; then the operators of the model."""
    job = cluster_bench.write_job(options, model, place)
    costs = f"{options.out}/{cluster_bench.costs_file(options)}"
    has_links = False
    if os.path.exists(costs):
        with open(costs, encoding="utf-8") as file:
            has_links = "\nlinks:" in file.read()
    local = options.place in ("threads", "processes")
    verbs = [] if has_links else [["probe", job]]
    verbs.append(["profile", job, "--operator-time", "50ms"] + (["--in-step", "--steps", "4"] if local else []))
    for words in verbs:
        cluster_bench.run(*place.command(options.penstock, *words, "--insecure", "-q"))


def what_is_run(path):
    """Of a plan: which device runs what, and when; not why, nor what it takes."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    nodes = re.findall(r"name: (\S+), stage: (\d+)", text)
    devices = re.findall(r"\{devices: (\[[^]]*\])", text)
    schedule = re.findall(r"^schedule: .*$", text, re.M)
    return hashlib.sha256(json.dumps([nodes, devices, schedule]).encode()).hexdigest()


def train_in_turns(options, place, plans):
    shortest = min(plan["predicted"] for plan in plans)
    for turn in range(TURNS[0][1]):
        for plan in plans:
            slower = plan["predicted"] / shortest
            if turn >= next(turns for most, turns in TURNS if slower <= most):
                continue
            steps = int(options.seconds / plan["predicted"])
            plan["steps"] = cluster_bench.WARM_UP + max(LEAST_STEPS, min(MOST_STEPS, steps))
            cluster_bench.train(options, place, plan)
            plan.setdefault("turns", []).append((plan["reals"][-1], plan["bubbles"][-1], plan["terms"]))
    for plan in plans:
        plan["real"], plan["bubble"], plan["terms"] = min(plan["turns"], key=lambda one: one[0])


def run_pair(options, model, place):
    began = time.monotonic()
    measure(options, model, place)
    measured = time.monotonic()
    trained, plans = {}, []
    for strategy in options.strategies.split(","):
        plan = cluster_bench.make_plan(options, model, place, strategy, 1)
        same = trained.setdefault(what_is_run(f"{plan['name']}.plan.yaml"), plan)
        plans.append((plan, same))
    planned = time.monotonic()
    train_in_turns(options, place, list(trained.values()))
    row = {"place": options.place, "hosts": options.host_count, "model": model, "load": os.getloadavg()[0],
           "seconds": [measured - began, planned - measured, time.monotonic() - planned], "plans": []}
    for plan, same in plans:
        row["plans"].append({"strategy": plan["strategy"], "alike": same["strategy"], "stages": plan["stages"],
                             "predicted": plan["predicted"], "predicted_bubble": plan["predicted_bubble"],
                             "real": same["real"], "reals": same["reals"], "bubble": same["bubble"],
                             "terms": same["terms"]})
    with open(rows_file(options), "a", encoding="ascii") as file:
        file.write(json.dumps(row) + "\n")
    return row


# ---- what is shown

def judge(row):
    auto = row["plans"][0]
    best = min(row["plans"], key=lambda plan: plan["real"])
    return {"auto": auto, "best": best, "off": auto["predicted"] / auto["real"] - 1,
            "bubble": auto["bubble"] - auto["predicted_bubble"], "beside": auto["real"] / best["real"]}


def show_pair(row):
    print(f"\n{row['place']}, {row['hosts']} devices, {row['model']}: load {row['load']:.1f}; measuring, planning, "
          f"training took {', '.join(f'{seconds:.0f}' for seconds in row['seconds'])} s")
    print(f"{'strategy':<22}{'stages':>7}{'predicted':>11}{'real':>9}{'off':>8}{'bubble':>8}{'real':>7}{'/ best':>8}"
          f"{'compute':>9}{'transfer':>9}{'waiting':>9}  turns")
    best = min(plan["real"] for plan in row["plans"])
    for plan in row["plans"]:
        terms = "".join(f"{plan['terms'].get(term + '_seconds', 0):>+9.4f}"
                        for term in ("compute", "transfer", "waiting"))
        alike = f"  as {plan['alike']}" if plan["alike"] != plan["strategy"] else ""
        print(f"{plan['strategy']:<22}{plan['stages']:>7}{plan['predicted']:>11.4f}{plan['real']:>9.4f}"
              f"{plan['predicted'] / plan['real'] - 1:>+8.0%}{plan['predicted_bubble']:>8.2f}{plan['bubble']:>7.2f}"
              f"{plan['real'] / best:>8.2f}{terms}  {' '.join(f'{real:.4f}' for real in plan['reals'])}{alike}")
    sys.stdout.flush()


def show_all(rows):
    """Of each pair, how true auto's plan came and how far it is from the best, as a table of Markdown."""
    names = [name for name in STRATEGIES.split(",") if name != "auto"]
    print("\n| place | model | predicted, ms | real, ms | off | bubble, planned | real | best | auto / best |",
          " | ".join(names), "|")
    print("|---" * (9 + len(names)) + "|")
    for row in rows:
        found = judge(row)
        others = {plan["strategy"]: plan for plan in row["plans"]}
        cells = [f"{1000 * others[name]['predicted']:.0f} → {1000 * others[name]['real']:.0f}"
                 if name in others else "" for name in names]
        auto = found["auto"]
        print(f"| {row['place']}, {row['hosts']} | {row['model']} | {1000 * auto['predicted']:.1f} "
              f"| {1000 * auto['real']:.1f} | {found['off']:+.0%} | {auto['predicted_bubble']:.2f} "
              f"| {auto['bubble']:.2f} | {found['best']['strategy']} | {found['beside']:.2f} |", " | ".join(cells), "|")
    judged = [judge(row) for row in rows]
    plans = [plan for row in rows for plan in row["plans"] if plan["alike"] == plan["strategy"]]
    off = [abs(plan["predicted"] / plan["real"] - 1) for plan in plans]
    print(f"\nof {len(rows)} pipelines of auto: step within 10 %: {sum(abs(j['off']) <= OFF_LIMIT for j in judged)}, "
          f"bubble within 5 points: {sum(abs(j['bubble']) <= BUBBLE_LIMIT for j in judged)}, "
          f"within 2 % of the best: {sum(j['beside'] <= BEST_LIMIT for j in judged)}")
    print(f"of {len(plans)} plans: step within 10 %: {sum(one <= OFF_LIMIT for one in off)}; "
          f"off by {statistics.median(off):.0%} (median)", flush=True)


def run_place(options, wanted):
    is_local = options.place in ("threads", "processes")
    options.host_count = PLACES[options.place]
    place = cluster_bench.Machine(options) if is_local else cluster_bench.Cluster(options)
    try:
        for model in wanted:
            if time.monotonic() < options.end:
                show_pair(run_pair(options, model, place))
    finally:
        place.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--out", default="build/bench")
    parser.add_argument("--place", default=",".join(PLACES), help="of " + ", ".join(PLACES))
    parser.add_argument("--models", default=MODELS, help=", ".join(cluster_bench.MODELS))
    parser.add_argument("--strategies", default=STRATEGIES, help="auto first")
    parser.add_argument("--seconds", type=float, default=2, help="of a training, about")
    parser.add_argument("--cores", type=float, default=1.4, help="that all hosts share")
    parser.add_argument("--rate", type=int, default=1000, help="Mbit/s of a host's line; of unequal ones the first's")
    parser.add_argument("--minutes", type=float, default=1e6, help="after which no pair begins")
    parser.add_argument("--again", action="store_true", help="pairs that were run")
    parser.add_argument("--show", action="store_true", help="runs nothing")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    options.penstock, options.out = os.path.abspath(options.penstock), os.path.abspath(options.out)
    options.end = time.monotonic() + 60 * options.minutes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("truth_bench.py: stopped")) # and hosts are taken down
    places = [] if options.show else options.place.split(",")
    if {"cluster", "unequal"} & set(places) and os.geteuid() != 0:
        sys.exit("truth_bench.py: hosts in namespaces need root and iproute2")
    done = set() if options.again else {(row["place"], row["model"]) for row in read_rows(options)}
    for options.place in places:
        wanted = [model for model in options.models.split(",") if (options.place, model) not in done]
        if wanted and time.monotonic() < options.end:
            run_place(options, wanted)
    rows = read_rows(options)
    if options.show:
        for row in rows:
            show_pair(row)
    show_all(rows)


if __name__ == "__main__":
    main()
