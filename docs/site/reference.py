"""The pages of reference: what the command, the headers and the Python module say of themselves.

Each function gives a page as Markdown. Nothing of them is written by hand.
"""
import ast
import os
import re
import subprocess

HEADERS = ("scheduler/penstock.h", "graph/layers.h", "base/status.h")
MODULES = (("penstock", ("__init__", "training", "plan", "export", "_errors")), ("penstock.spark", ("spark",)),
           ("penstock.ray", ("ray",)))
FILES = {"job": "The job file", "cluster": "A file of devices and links", "costs": "A table of costs",
         "plan": "A plan", "sweep": "A sweep"}


def said(penstock, *words):
    """What the command prints on standard output."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run([penstock, *words], check=True, capture_output=True, text=True, env=environment).stdout


def plain(text):
    """A text whose signs mean nothing to Markdown; what is in backquotes stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return re.sub(r"([\\`*_<>\[\]#|~$])", r"\\\1", text)
    parts[::2] = [re.sub(r"([\\*_<>\[\]#|~$])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def keys(penstock):
    """Every key of every file: a heading for each at the top, lists of those within."""
    page = ["# Keys", "", "What `penstock schema --keys` prints. Keys without a default may be left out, unless they "
            "are required.", ""]
    for kind, title in FILES.items():
        page += [f"## {title}", "", f"`penstock schema {kind}` prints the JSON Schema.", ""]
        for line in said(penstock, "schema", "--keys", kind).splitlines():
            match = re.match(r"( +)(\S+) +(.*)", line)
            if not match:
                page += ["", plain(line.strip()), ""]
                continue
            depth = len(match[1]) // 2 - 1
            page.append(f"{'  ' * depth}- `{match[2]}`: {plain(match[3])}")
        page.append("")
    return "\n".join(page)


def verbs(penstock):
    """The help of each verb, in the order of the command's own list."""
    page = ["# Verbs", "", "What `penstock VERB --help` prints. `man penstock` and `man penstock-VERB` say the same.", ""]
    for name in re.findall(r"^  ([a-z]+) {2,}", said(penstock, "help"), re.M):
        page += [f"## penstock {name}", "", "```text", said(penstock, name, "--help").rstrip(), "```", ""]
    return "\n".join(page)


def comment_text(lines):
    """Comment lines of C, or a docstring, as Markdown. What is set in is code behind an empty line, and a list when it
    begins with a name in capitals; else it goes on with the line before. So is a paragraph in columns."""
    out, text, code = [], [], []

    def flush():
        is_list = sum(re.match(r"\w+ {2,}\S", line) is not None for line in text) > 1
        if text:
            out.extend(["```text", *text, "```", ""] if is_list else [plain("\n".join(map(str.strip, text))), ""])
        if code:
            out.extend(["```text", *code, "```", ""])
        text.clear()
        code.clear()

    before = ""
    for line in lines:
        is_list = re.match(r"  [A-Z_]{4,}  ", line) is not None
        if line.startswith("  ") and (code or not before or is_list):
            if text:
                flush()
            code.append(line)
        elif not line:
            flush()
        else:
            if code or re.match(r"(Lifetime|Threads): ", line):
                flush()
            text.append(line)
        before = line
    flush()
    return out


def header_page(path):
    """A header: its first comment, then each group of declarations below what stands above it."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = [f"## {os.path.basename(path)}", ""]
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    for chunk in re.split(r"\n\s*\n", text):
        lines = [line for line in chunk.split("\n") if line and not re.match(r"#(ifndef|endif|include|define PEN_\w+_H$)", line)]
        if not lines:
            continue
        section = re.match(r"// ---- (.*)", lines[0])
        if section:
            page += [f"### {plain(section[1])}", ""]
            lines = lines[1:]
        count = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
        page += comment_text([line[3:] if line.startswith("// ") else line[2:] for line in lines[:count]]) + [""]
        if lines[count:]:
            page += ["```c", *lines[count:], "```", ""]
    return page


def c_page(root):
    page = ["# C", "", "The three headers that `make install` installs; `cc program.c $(pkg-config --cflags --libs penstock)`.", ""]
    for path in HEADERS:
        page += header_page(os.path.join(root, path))
    return "\n".join(page)


def signature(node):
    """A function or class as it is written, without its body."""
    if isinstance(node, ast.ClassDef):
        fields = [f"    {ast.unparse(item)}" for item in node.body
                  if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_")]
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return "\n".join([f"class {node.name}({bases})" if bases else f"class {node.name}", *fields])
    marks = [f"@{ast.unparse(mark)}" for mark in node.decorator_list]
    back = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"def {node.name}({ast.unparse(node.args)}){back}"
    if len(line) > 95:  # an argument a line
        whole, depth = "", 0
        for sign in ast.unparse(node.args):
            depth += (sign in "([{") - (sign in ")]}")
            whole += ",\n   " if sign == "," and depth == 0 else sign
        line = f"def {node.name}(\n    {whole}\n){back}"
    return "\n".join([*marks, line])


def docstring(node):
    text = ast.get_docstring(node, clean=not isinstance(node, ast.Module))
    return comment_text(text.strip("\n").split("\n")) if text else []


def python_page(root):
    """What each module has that does not begin with an underscore, with signatures and docstrings."""
    page = ["# Python", "", "[From Python](../python.md) is the manual; these are the docstrings.", ""]
    for title, files in MODULES:
        page += [f"## {title}", ""]
        for name in files:
            with open(os.path.join(root, "python/penstock", name + ".py"), encoding="utf-8") as file:
                module = ast.parse(file.read())
            if name in ("__init__", "spark", "ray"):
                page += docstring(module)
            for node in module.body:
                if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_"):
                    continue
                page += [f"### {node.name}", "", "```python", signature(node), "```", "", *docstring(node)]
                for item in node.body if isinstance(node, ast.ClassDef) else []:
                    if isinstance(item, ast.FunctionDef) and (not item.name.startswith("_") or item.name == "__init__"):
                        page += ["```python", signature(item), "```", "", *docstring(item)]
    return "\n".join(page)
