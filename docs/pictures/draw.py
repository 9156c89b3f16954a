#!/usr/bin/python3
"""Draws the pictures of docs/architecture.md.

  docs/pictures/draw.py            writes the .svg files beside it
  docs/pictures/draw.py --check    says what is out of date: pictures, files and functions (for lint)

A picture is a list of boxes on a grid and of arrows between them. A box has a folder, which gives its
colour, a title, and lines: files and functions of that step. Lines in backquotes are set as code.
"""
import os
import re
import sys
import xml.sax.saxutils

WIDTH, GAP, MARGIN, LINE, HEAD = 290, 50, 24, 18, 26
ROW_GAP = 34
COLOURS = {  # of a folder: background, border
    "cli": ("#fef3c7", "#b45309"),
    "scheduler": ("#ede9fe", "#6d28d9"),
    "partition": ("#dcfce7", "#15803d"),
    "graph": ("#dbeafe", "#1d4ed8"),
    "device": ("#ffe4e6", "#be123c"),
    "base": ("#e5e7eb", "#4b5563"),
    "file": ("#ffffff", "#6b7280"),
}

PICTURES = {
    "batch": {
        "title": "The way of a batch",
        "boxes": [
            ("files", 0, 0, "file", "Files of examples", ["IDX, NPY, CSV, pictures, text, tokens"]),
            ("dataset", 0, 1, "scheduler", "Data set: examples by number",
             ["`data/dataset_open.c`", "`pen_dataset_open`, `pen_dataset_read`"]),
            ("batches", 0, 2, "scheduler", "Batches, read ahead by a thread",
             ["`data/batches.c`", "order = f(seed, epoch)", "`pen_batches_next`"]),
            ("train", 1, 2, "scheduler", "The loop: one batch, one step",
             ["`train/train_loop.c`", "`pen_trainer_step`"]),
            ("local", 1, 3, "scheduler", "One device",
             ["`engine/local_engine.c`, `runner/feed.c`", "microbatch m into the buffers:",
              "`pen_feed_microbatch`"]),
            ("pipeline", 2, 3, "scheduler", "Several devices: a round",
             ["`engine/pipeline_engine.c`", "`runtime/coordinator/coordinator_life.c`",
              "`pen_coordinator_begin_round`"]),
            ("worker", 2, 4, "scheduler", "A worker gets its inputs as frames",
             ["`transport/`, `runtime/worker/`", "`protocol/worker_events.c` says",
              "which task runs now"]),
            ("executor", 1, 4, "scheduler", "Executor: a list of nodes",
             ["`runtime/executor/executor_life.c`", "`pen_executor_run`"]),
            ("kernels", 1, 5, "device", "Kernels compute",
             ["`device/cpu/kernels/`", "gradients are added up over m"]),
            ("loss", 2, 5, "scheduler", "Losses come back, then `go`",
             ["`protocol/coordinator_rounds.c`", "all finite: updates may run"]),
            ("report", 2, 6, "cli", "Loss, accuracy, samples a second",
             ["`cli/progress.c`", "`scheduler/train/train_keeper.c` saves"]),
        ],
        "arrows": [("files", "dataset"), ("dataset", "batches"), ("batches", "train"),
                   ("train", "local"), ("train", "pipeline"), ("local", "executor"),
                   ("pipeline", "worker"), ("worker", "executor"), ("executor", "kernels"),
                   ("kernels", "loss"), ("loss", "report")],
    },
    "node": {
        "title": "The way of a node",
        "boxes": [
            ("file", 0, 0, "file", "Conv in a model file", ["ONNX, TensorFlow, Keras, layers"]),
            ("import", 0, 1, "graph", "Read, with its place in the file",
             ["`import/import.c`", "`pen_model_open`"]),
            ("graph", 0, 2, "graph", "A node of the graph",
             ["`graph.h`, operator from `op_table.c`", "`pen_graph_add_node`"]),
            ("shapes", 0, 3, "graph", "Types and shapes of its results",
             ["`passes/infer_shapes.c`", "by the operator's own rule"]),
            ("fuse", 0, 4, "graph", "Joined with its neighbours",
             ["`passes/fuse/`", "or left as it is"]),
            ("gradients", 1, 4, "graph", "Its gradient: new nodes",
             ["`passes/gradient/build_gradients.c`", "by the operator's gradient rule"]),
            ("updates", 2, 4, "graph", "Its weight gets an update",
             ["`passes/gradient/build_updates.c`", "optimizer, clipping, sums"]),
            ("layout", 2, 3, "graph", "Layouts of its operands",
             ["`passes/assign_layouts.c`", "rules come from the device"]),
            ("order", 2, 2, "graph", "A place in the order",
             ["`analysis/execution_order.c`"]),
            ("stage", 2, 1, "partition", "Several devices: a stage",
             ["`plan/stage_assign.c`", "backward goes with forward"]),
            ("cut", 2, 0, "graph", "A part for each device",
             ["`passes/cut/cut_stages.c`", "send and receive where values cross"]),
            ("kernel", 1, 0, "device", "A kernel is chosen and prepared",
             ["`cpu/cpu_kernel_list.c`", "`pen_cpu_choose`; else `reference`"]),
            ("bind", 1, 1, "scheduler", "Bound to memory, once",
             ["`runtime/executor/executor_places.c`", "`graph/analysis/memory_plan.c`"]),
            ("run", 1, 2, "scheduler", "Run for every microbatch",
             ["`runtime/executor/executor_life.c`", "`pen_executor_run`"]),
        ],
        "arrows": [("file", "import"), ("import", "graph"), ("graph", "shapes"), ("shapes", "fuse"),
                   ("fuse", "gradients"), ("gradients", "updates"), ("updates", "layout"),
                   ("layout", "order"), ("order", "stage"), ("stage", "cut"), ("cut", "kernel"),
                   ("kernel", "bind"), ("bind", "run")],
    },
    "key": {
        "title": "The way of a key: train.clip_norm",
        "boxes": [
            ("line", 0, 0, "file", "A line of job.yaml", ["`train: {…, clip_norm: 1.0}`"]),
            ("yaml", 0, 1, "base", "A tree with lines and columns",
             ["`base/format/yaml_reader.c`", "limits of size, depth and count"]),
            ("read", 0, 2, "base", "Read by a table",
             ["`base/option/option_read.c`", "`pen_option_read`: kind, range, default"]),
            ("row", 1, 2, "scheduler", "The row that says all of it, once",
             ["`job/job_table.c`", "key, kind, range, default, help,", "offset in `pen_job`"]),
            ("schema", 2, 1, "base", "penstock schema",
             ["`base/option/option_schema.c`", "JSON Schema for editors"]),
            ("help", 2, 2, "base", "penstock schema --keys",
             ["`base/option/option_help.c`", "a list to read"]),
            ("blame", 2, 3, "scheduler", "An error names line and column",
             ["`pen_job_blame`", "job.yaml:9:23: error: …"]),
            ("job", 0, 3, "scheduler", "A field of a struct", ["`job/job.h`", "`job->train.clip_norm`"]),
            ("request", 0, 4, "scheduler", "Handed to the compiler",
             ["`job/job_runner.c`", "optimizer of the compile request"]),
            ("nodes", 1, 4, "graph", "Becomes nodes of the graph",
             ["`passes/gradient/build_updates.c`", "squared norms, one scale"]),
            ("kernels", 2, 4, "device", "Runs as a kernel",
             ["`cpu/kernels/optimizer_cpu.c`", "or the same of another device"]),
        ],
        "arrows": [("line", "yaml"), ("yaml", "read"), ("row", "read"), ("row", "schema"),
                   ("row", "help"), ("row", "blame"), ("read", "job"), ("job", "request"),
                   ("request", "nodes"), ("nodes", "kernels")],
    },
    "placement": {
        "title": "The way of a placement",
        "boxes": [
            ("spec", 0, 0, "partition", "What the user says",
             ["`spec/cluster_spec.c`: devices, links", "`spec/constraints.h`: pins, memory"]),
            ("costs", 1, 0, "partition", "What is known of the machines",
             ["`costs/cost_table.c`: measured", "`costs/cost_model.c`: else estimated"]),
            ("graph", 2, 0, "graph", "What belongs together",
             ["`analysis/forward_owner.c`", "backward and update go with forward"]),
            ("problem", 1, 1, "partition", "One weighted problem",
             ["`lower/graph_problem.c`", "`pen_graph_problem_build`"]),
            ("place", 1, 2, "partition", "A strategy answers",
             ["`strategies/strategies.c`", "`pen_place`, with `search/`"]),
            ("check", 0, 2, "partition", "The answer is not trusted",
             ["`objective/placement.c`: check", "`bound/`: nothing can be better than"]),
            ("stages", 1, 3, "partition", "Stages and transfers",
             ["`lower/stage_split.c`", "`lower/stage_costs.c`"]),
            ("schedule", 2, 3, "scheduler", "The order of tasks, simulated",
             ["`schedule/`: generators, check,", "time line, memory"]),
            ("rounds", 2, 2, "partition", "Again, until memory agrees",
             ["`plan/plan_place.c`", "what is in flight changes what fits"]),
            ("plan", 1, 4, "partition", "The plan: a file to read and edit",
             ["`plan/plan_build.c`, `plan/plan_file.c`", "penstock plan, explain, diff"]),
            ("cut", 0, 5, "graph", "A graph for each device",
             ["`passes/cut/cut_stages.c`"]),
            ("form", 1, 5, "scheduler", "Tasks, channels, places",
             ["`runtime/run/run_form.c`", "`protocol/run_table.h`"]),
            ("admit", 2, 5, "scheduler", "Proved, then told to the workers",
             ["`protocol/admission.c`", "`runtime/coordinator/coordinator_life.c`"]),
        ],
        "arrows": [("spec", "problem"), ("costs", "problem"), ("graph", "problem"),
                   ("problem", "place"), ("place", "check"), ("place", "stages"),
                   ("stages", "schedule"), ("schedule", "rounds"), ("rounds", "place"),
                   ("stages", "plan"), ("plan", "cut"), ("cut", "form"), ("form", "admit")],
    },
}


def escape(text):
    return xml.sax.saxutils.escape(text)


def spans(line):
    """A line as tspans: what stands between backquotes is code."""
    parts = line.split("`")
    out = []
    for i, part in enumerate(parts):
        if part:
            code = ' class="code"' if i % 2 else ""
            out.append(f"<tspan{code}>{escape(part)}</tspan>")
    return "".join(out)


def rows_of(boxes):
    """The height of every row of the grid, and where it begins."""
    heights = {}
    for _, _, row, _, _, lines in boxes:
        heights[row] = max(heights.get(row, 0), HEAD + LINE * len(lines) + 12)
    tops, y = {}, MARGIN + 36
    for row in sorted(heights):
        tops[row] = y
        y += heights[row] + ROW_GAP
    return heights, tops, y - ROW_GAP + MARGIN


def ends_of(a, b):
    """Where an arrow leaves box a and meets box b: (x, y, width, height) each."""
    ax, ay, aw, ah = a
    bx, by, bw, bh = b
    if ax == bx or (ay != by and abs(ay - by) > 1):
        if ax == bx:
            x1 = x2 = ax + aw / 2
        else:  # to a neighbouring column: leave towards it
            x1 = ax + aw * (0.75 if bx > ax else 0.25)
            x2 = bx + bw * (0.25 if bx > ax else 0.75)
        return (x1, ay + ah, x2, by) if by > ay else (x1, ay, x2, by + bh)
    y = ay + min(ah, bh) / 2
    return (ax + aw, y, bx, y) if bx > ax else (ax, y, bx + bw, y)


def draw(picture):
    boxes = picture["boxes"]
    heights, tops, height = rows_of(boxes)
    columns = 1 + max(box[1] for box in boxes)
    width = 2 * MARGIN + columns * WIDTH + (columns - 1) * GAP
    places = {}
    body = []
    for name, column, row, folder, title, lines in boxes:
        x, y = MARGIN + column * (WIDTH + GAP), tops[row]
        places[name] = (x, y, WIDTH, heights[row])
        fill, stroke = COLOURS[folder]
        body.append(f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{heights[row]}" rx="6" '
                    f'fill="{fill}" stroke="{stroke}"/>')
        body.append(f'<text x="{x + 12}" y="{y + 21}" class="title" xml:space="preserve">{spans(title)}</text>')
        for i, line in enumerate(lines):
            body.append(f'<text x="{x + 12}" y="{y + HEAD + 14 + LINE * i}" xml:space="preserve">{spans(line)}</text>')
    for first, second in picture["arrows"]:
        x1, y1, x2, y2 = ends_of(places[first], places[second])
        body.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="arrow" marker-end="url(#head)"/>')
    used = []
    for box in boxes:
        if box[3] not in used and box[3] != "file":
            used.append(box[3])
    x = width - MARGIN
    for folder in reversed(sorted(used, key=list(COLOURS).index)):
        fill, stroke = COLOURS[folder]
        x -= 30 + 7.6 * len(folder)
        body.append(f'<rect x="{x:g}" y="{MARGIN - 2}" width="12" height="12" fill="{fill}" stroke="{stroke}"/>')
        body.append(f'<text x="{x + 17:g}" y="{MARGIN + 8}">{folder}/</text>')
        x -= 10
    return f'''<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>{escape(picture["title"])}</title>
<style>
text {{ white-space: pre; font: 13px "DejaVu Sans", Verdana, Arial, sans-serif; fill: #1f2937 }}
.title {{ font-weight: bold; font-size: 14px }}
.head {{ font-weight: bold; font-size: 17px }}
.code {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 12px }}
.arrow {{ stroke: #374151; stroke-width: 1.6; fill: none }}
</style>
<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">
<path d="M0 0L9 4L0 8z" fill="#374151"/></marker></defs>
<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="#ffffff" stroke="#9ca3af"/>
<text x="{MARGIN}" y="{MARGIN + 10}" class="head">{escape(picture["title"])}</text>
''' + "\n".join(body) + "\n</svg>\n"


def tree_text(root):
    """All headers and sources of the product, as one text."""
    text = []
    for folder in ("base", "graph", "partition", "scheduler", "device", "cli"):
        for at, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if name.endswith((".c", ".h")):
                    with open(os.path.join(at, name), encoding="utf-8") as file:
                        text.append(file.read())
    return "\n".join(text)


def missing_names(root):
    """Files and functions that a picture names and the tree does not have."""
    known = set(re.findall(r"\bpen_\w+", tree_text(root)))
    for picture, spec in PICTURES.items():
        for box in spec["boxes"]:
            for name in re.findall(r"`([^`]+)`", " ".join(box[5])):
                is_path = "/" in name or name.endswith((".c", ".h"))
                places = [os.path.join(root, name), os.path.join(root, box[3], name)]
                if is_path and not any(os.path.exists(place) for place in places):
                    yield f"{picture}: there is no {name} in {box[3]}/"
                if name.startswith("pen_") and name not in known:
                    yield f"{picture}: nothing is called {name}"


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    is_check = sys.argv[1:] == ["--check"]
    for name, picture in PICTURES.items():
        path = os.path.join(here, name + ".svg")
        if not is_check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(draw(picture))
        elif not os.path.exists(path) or open(path, encoding="utf-8").read() != draw(picture):
            print(f"docs/pictures/{name}.svg: is not what draw.py draws")
    if is_check:
        for text in missing_names(os.path.join(here, "..", "..")):
            print(f"docs/pictures/draw.py: {text}")


if __name__ == "__main__":
    main()
