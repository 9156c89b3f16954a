"""Generated training graphs, up to a million operators on a thousand unequal devices: `auto` beside
METIS alone, with time and peak memory, and why what is left is left. Also single plans of 2,000
nodes, which must take milliseconds.
"""
import json
import subprocess

import bench_rows

# kind, nodes, devices, seconds allowed, gibibytes allowed
GIANTS = [("transformer", 100_000, 64, 10, 1), ("branching", 100_000, 64, 10, 1),
          ("transformer", 1_000_000, 1024, 60, 6), ("branching", 1_000_000, 1024, 60, 6)]
SMALL_NODES, SMALL_DEVICES, SMALL_RUNS = 2000, 8, 9
GAP_LIMIT = 0.05


def run(options, kind, nodes, devices, order, strategy, seconds):
    command = [options.giant, kind, str(nodes), str(devices), order, strategy, str(seconds)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def reason(report):
    """Why the value is above the bound, which knows no transfers: over all devices, so much of
    the loads is transfers, and so much of the time they wait for the fullest."""
    parts = [f"{100 * report['moved_share']:.1f}% transfers",
             f"{100 * (1 - report['even']):.1f}% uneven"]
    if report["full_devices"]:
        parts.append(f"{report['full_devices']:.0f} devices full")
    return ", ".join(parts)


def giants(options):
    lines, rows = [], []
    for kind, nodes, devices, seconds, gibibytes in GIANTS:
        for order in ("contiguous", "free"):
            ours = run(options, kind, nodes, devices, order, "auto", seconds)
            metis = run(options, kind, nodes, devices, order, "metis_alone", seconds)
            name = f"{kind}, {nodes:,} nodes, {devices} devices, {order}"
            is_kept = ours["seconds"] <= seconds and ours["peak_bytes"] <= gibibytes * 2**30
            lines.append([name, f"{1e3 * ours['value']:.3f}", f"{100 * ours['gap']:.2f}",
                          f"{ours['seconds']:.1f}", f"{ours['peak_bytes'] / 2**30:.2f}",
                          f"{1e3 * metis['value']:.3f}", f"{100 * metis['gap']:.2f}",
                          f"{metis['seconds']:.1f}", "yes" if metis["right"] else "no",
                          "yes" if is_kept else "NO",
                          reason(ours) if ours["gap"] > GAP_LIMIT else ""])
            rows += [bench_rows.row(f"giant {name}: value", 2, [1e3 * ours["value"]],
                                    [1e3 * metis["value"]], "METIS alone", "ms"),
                     bench_rows.row(f"giant {name}: value", 0, [1e3 * ours["value"]],
                                    [1e3 * ours["lower_bound"]], "lower bound", "ms"),
                     bench_rows.row(f"giant {name}: time", 2, [ours["seconds"]], [seconds],
                                    "allowed", "s"),
                     bench_rows.row(f"giant {name}: peak memory", 2, [ours["peak_bytes"] / 2**20],
                                    [gibibytes * 2**10], "allowed", "MiB")]
    print("generated training graphs on unequal devices (rates 1:2:4:8, memories 1:2:4), ms")
    bench_rows.show_table(["graph", "auto", "gap %", "s", "GiB", "METIS", "gap %", "s", "valid",
                           "in limits", "more than 5% because of"], lines)
    return rows


def small(options):
    """One plan of 2,000 nodes, in ms."""
    lines, rows = [], []
    for kind in ("transformer", "branching"):
        for strategy, order in (("greedy", "free"), ("greedy", "contiguous"),
                                ("dynamic_programming", "contiguous")):
            reports = [run(options, kind, SMALL_NODES, SMALL_DEVICES, order, strategy, 0.001)
                       for _ in range(SMALL_RUNS)]
            times = [min(1e3 * report["place_seconds"] for report in reports)]  # others disturb
            name = f"{kind}, {SMALL_NODES:,} nodes, {SMALL_DEVICES} devices, {order}, {strategy}"
            lines.append([name, f"{times[0]:.2f}",
                          f"{100 * reports[0]['gap']:.2f}"])
            rows.append(bench_rows.row(f"one plan: {name}", 1, times, [10.0], "allowed", "ms"))
    print("one plan of 2,000 nodes")
    bench_rows.show_table(["plan", "ms", "gap %"], lines)
    return rows


def table(options):
    """Prints the tables; returns rows."""
    return small(options) + giants(options)
