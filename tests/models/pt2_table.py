"""What check_pt2.py found, as lines, and as a table in Markdown."""
import textwrap

import pt2_models

COLUMNS = ("outputs", "gradient", "sgd loss", "sgd state", "adamw loss", "adamw state", "adamw rule", "home loss",
           "home outputs")
HEAD = """# Models of PyTorch: how well the numbers agree

`make check-pt2 PT2_FOLDER=DIR` checks them, and `check_pt2.py --folder DIR --table FILE` writes this.

Errors are those against PyTorch in double precision, as a share of the largest element of the tensor, the worst tensor
of each model. 1e-5 is asked, and 1e-6 of what is predicted after the way home. Where that is exceeded, brackets have
what PyTorch in single precision is off in the same place, the worst of up to seven roundings of its weights: this is
how badly the number is conditioned, and twice as much is allowed. Half of the roundings are computed with two threads,
because PyTorch then has oneDNN's convolutions of 1 x 1, as Penstock always has. These add up to 256 products in a row
before they join sums. Over 256 channels and more they round 1.15 to 1.4 times as much as the matrix products that
PyTorch takes with one thread, and DeepLab's gradients, which are ill-conditioned, 1.5 times as much (the root of the
mean square, median of six roundings). Penstock's are 1.06 times as far off as PyTorch's with two threads. Gradients
that are 0 but for rounding are told as a share of a millionth of the model's largest. Losses are those of three steps;
states are parameters and buffers after one; `adamw rule` is what AdamW makes of Penstock's own gradients, beside the
same in double precision. In all models three devices have the bits of one.

`open` counts elements that a step of AdamW may move by more than 1e-5 because of what PyTorch's gradient is off in
single precision. The number behind it is the worst error of these, as a share of what is allowed there. `rates` are the
kinds of dropout that the model has at its own rates; of each, the share and the scale are compared over 16384 draws.

"""


def is_right(result):
    if "refused" in result:
        return result["name"] in pt2_models.REFUSED
    return not result.get("wrong")


def cell(figure):
    """An error; with what PyTorch in single precision is off, where that is what decides."""
    if figure is None:
        return "-"
    text = f"{figure['error']:.0e}".replace("e-0", "e-")
    if figure["error"] <= (1e-6 if figure["where"].startswith("home outputs") else 1e-5):
        return text
    return text + f" ({figure['other']:.0e})".replace("e-0", "e-")


def opened(result):
    """How many elements AdamW leaves open, and how near the worst of them is to what it may be off."""
    figure = result["figures"].get("adamw open")
    if figure is None:
        return "0"
    return f"{result['open']} of {result['elements']}, {figure['error'] / figure['allowed']:.2f}"


def line(result):
    name = f"{result['name']:18} "
    if "refused" in result:
        return name + ("" if is_right(result) else "FAILED: ") + f"PyTorch does not export it: {result['refused']}"
    if "written" in result:
        return name + "written"
    if "figures" not in result:
        return name + "FAILED: " + result["wrong"][0]
    parts = [f"{key} {cell(result['figures'].get(key))}" for key in COLUMNS]
    parts += ["open " + opened(result), "rates " + result["rates"]]
    return name + "; ".join(parts) + "".join("\n    FAILED: " + each for each in result["wrong"])


def summary(results):
    refused = [result["name"] for result in results if "refused" in result]
    wrong = [result["name"] for result in results if result.get("wrong")]
    return (f"models: {len(results) - len(refused) - len(wrong)} as PyTorch, {len(wrong)} not"
            + (f" ({', '.join(wrong)})" if wrong else "") + f", {len(refused)} that PyTorch does not export")


def row(result):
    figures = result["figures"]
    cells = [result["name"], *(cell(figures.get(key)) for key in COLUMNS), opened(result), result["rates"],
             "no: " + "; ".join(result["wrong"])[:200] if result["wrong"] else "yes"]
    return "| " + " | ".join(cells) + " |"


def worst_of(results, column):
    """The largest error of a column, and whose."""
    return max((result["figures"][column]["error"], result["name"]) for result in results
               if column in result["figures"])


def table(results):
    """Models that were checked, the worst of each column, and what else there is."""
    found = [result for result in results if "figures" in result]
    rest = [result for result in results if "figures" not in result]
    head = ["model", *COLUMNS, "open", "rates", "as PyTorch"]
    worst = ["**worst**", *("%.0e %s" % worst_of(found, key) for key in COLUMNS), "", "", ""]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *map(row, found),
             "| " + " | ".join(worst).replace("e-0", "e-") + " |", "", summary(results) + ".", ""]
    programs = {}
    for result in found:
        key = f"program {result.get('program', 'unknown')}, PyTorch {result.get('pytorch', 'unknown')}"
        programs.setdefault(key, []).append(result["name"])
    for key, names in sorted(programs.items()):
        lines.append(f"- {key}: " + (", ".join(names) if len(names) < 5 else f"{len(names)} models"))
    for result in rest:
        lines += textwrap.wrap("- " + " ".join(line(result).split()), 120, subsequent_indent="  ")
    return HEAD + "\n".join(lines) + "\n"
