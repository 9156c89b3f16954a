#!/usr/bin/env python3
"""Makes the site of the texts in docs/, of the examples' and of the pages of reference.

  build_site.py --penstock COMMAND --output FOLDER      with Sphinx and myst-parser

Texts are copied into FOLDER-texts as they lie in the tree, so that links between them, and from them to files of the
tree, hold. The order of pages is that of the lists in docs/README.md. A link that leads nowhere is an error, and so is
a page that needs the network.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

import reference

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
LINK = re.compile(r"(\[[^\[\]]*)?\]\(([^)#:\s]+)(#[^)]*)?\)")
GALLERY_JOBS = ("branches.yaml", "workers.yaml", "job.yaml")  # the first that an example has
GALLERY_BYTES = 40000
REFERENCE = {"keys": "Keys", "verbs": "Verbs", "c": "C", "python": "Python"}


def outside_code(text, change):
    """A text with CHANGE applied to what is no block of code."""
    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.M | re.S)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def copy_text(path, stage, waiting):
    """Copies a text; what it links to joins those that wait. A folder stands for its README."""
    folder = os.path.dirname(path)

    def follow(match):
        text, target, anchor = match[1] or "", match[2], match[3] or ""
        place = os.path.normpath(os.path.join(folder, target))
        if os.path.isdir(os.path.join(TOP, place)):
            readme = os.path.join(place, "README.md")
            if not os.path.exists(os.path.join(TOP, readme)):
                return text[1:]  # there is no page to lead to
            place, target = readme, os.path.join(target, "README.md")
        waiting.append(place)
        return f"{text}]({target}{anchor})"

    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = outside_code(file.read(), lambda part: LINK.sub(follow, part))
    if path == "docs/README.md":
        text += contents(text)
    os.makedirs(os.path.join(stage, folder), exist_ok=True)
    with open(os.path.join(stage, path), "w", encoding="utf-8") as file:
        file.write(text)


def contents(text):
    """The lists of docs/README.md, each as a table of contents under the line that stands above it."""
    tables = []
    for caption, pages in re.findall(r"^(?:## )?([^\n]+?):?\n\n((?:- \[.*\n(?:  .*\n)*)+)", text, re.M):
        links = re.findall(r"^- \[[^\]]*\]\(([^)#]+)\.md\)", pages, re.M)
        tables.append((caption, links))
    examples = sorted(name for name in os.listdir(os.path.join(TOP, "examples"))
                      if os.path.exists(os.path.join(TOP, "examples", name, "README.md")))
    tables.append(("Reference", [f"reference/{name}" for name in REFERENCE]))
    tables.append(("Gallery", ["../examples/README", *[f"../examples/{name}/README" for name in examples]]))
    lines = []
    for caption, links in tables:
        lines += ["", "```{toctree}", ":hidden:", ":maxdepth: 1", f":caption: {caption}", "", *links, "```"]
    return "\n".join(lines) + "\n"


def stage_texts(stage):
    """Copies docs/README.md, all that it leads to, and the rest of docs/ and of the examples' READMEs."""
    waiting = ["docs/README.md", "examples/README.md", "CONTRIBUTING.md"]
    for folder, _, names in os.walk(os.path.join(TOP, "docs")):
        waiting += [os.path.relpath(os.path.join(folder, name), TOP) for name in names if name.endswith(".md")]
    done = set()
    while waiting:
        path = waiting.pop()
        if path in done or not os.path.isfile(os.path.join(TOP, path)):
            continue
        done.add(path)
        if path.endswith(".md"):
            copy_text(path, stage, waiting)
        else:
            os.makedirs(os.path.join(stage, os.path.dirname(path)), exist_ok=True)
            shutil.copyfile(os.path.join(TOP, path), os.path.join(stage, path))
    return done


def draw_gallery(stage, penstock):
    """A picture of each example's model, where it lies in the tree, below its text and in the list of examples."""
    rows = []
    for name in sorted(os.listdir(os.path.join(TOP, "examples"))):
        folder = os.path.join(stage, "examples", name)
        text = os.path.join(folder, "README.md")
        jobs = [job for job in GALLERY_JOBS if os.path.exists(os.path.join(TOP, "examples", name, job))]
        if not jobs or not os.path.exists(text):
            continue
        picture = os.path.join(folder, "model.svg")
        shown = subprocess.run([penstock, "show", "--quiet", "-o", picture, os.path.join(TOP, "examples", name, jobs[0])],
                               check=False, capture_output=True, timeout=120)
        if shown.returncode != 0 or os.path.getsize(picture) > GALLERY_BYTES:
            continue  # its model or data are made by its script
        with open(text, "a", encoding="utf-8") as file:
            file.write(f"\n## The model of {jobs[0]}\n\nDrawn by `penstock show -o model.svg {jobs[0]}`.\n\n"
                       "![The graph](model.svg)\n")
        rows.append(f"[![{name}]({name}/model.svg)]({name}/README.md)")
    with open(os.path.join(stage, "examples/README.md"), "a", encoding="utf-8") as file:
        file.write("\n## Their models, as `penstock show` draws them\n\n" + "\n".join(rows))


def network_needs(output):
    """What pages or style sheets would fetch from the network when they are read. Links to follow are no such thing."""
    for folder, _, names in os.walk(output):
        for name in names:
            if not name.endswith((".html", ".css")):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for found in re.findall(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["'](?:https?:)?//[^>]*>|"""
                                        r"""url\(["']?https?:[^)]*\)|@import[^;]*//[^;]*""", file.read()):
                    yield f"{folder}/{name}: {found}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--penstock", required=True)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    stage = options.output + "-texts"
    for folder in (stage, options.output):
        shutil.rmtree(folder, ignore_errors=True)
    stage_texts(stage)
    shutil.copytree(os.path.join(TOP, "docs/site"), os.path.join(stage, "docs/site"),
                    ignore=shutil.ignore_patterns("__pycache__"))
    penstock = os.path.abspath(options.penstock)
    draw_gallery(stage, penstock)
    pages = {"keys": reference.keys(penstock), "verbs": reference.verbs(penstock), "c": reference.c_page(TOP),
             "python": reference.python_page(TOP)}
    os.makedirs(os.path.join(stage, "docs/reference"))
    for name, text in pages.items():
        with open(os.path.join(stage, "docs/reference", name + ".md"), "w", encoding="utf-8") as file:
            file.write(text)
    version = reference.said(penstock, "--version").split()[-1]
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html",
               "-c", os.path.join(stage, "docs/site"), "-d", stage + "/.doctrees", stage, options.output]
    code = subprocess.run(command, check=False, env={**os.environ, "PENSTOCK_VERSION": version}).returncode
    if code != 0:
        sys.exit(code)
    with open(os.path.join(options.output, "index.html"), "w", encoding="utf-8") as file:
        file.write('<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>Penstock</title>\n'
                   '<meta http-equiv="refresh" content="0; url=docs/README.html">\n'
                   '<a href="docs/README.html">Penstock</a></html>\n')
    needs = list(network_needs(options.output))
    if needs:
        sys.exit("\n".join(["what these fetch would come from the network:", *needs]))
    count = sum(name.endswith(".html") for _, _, names in os.walk(options.output) for name in names)
    print(f"site: {count} pages, begin with {options.output}/index.html")


if __name__ == "__main__":
    main()
