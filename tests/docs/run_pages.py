#!/usr/bin/env python3
"""Does what pages of docs/ tell their reader to do, word by word.

  run_pages.py [--penstock COMMAND] PAGE...

Each page has a folder of its own, which begins empty but for `examples`, those of the source tree. Its blocks of code
are taken in their order, by what stands behind the language:

  ```yaml file=job.yaml     the block is written into that file
  ```python … needs=torch   where $PAGE_PYTHON (else python3), which pages call python3, cannot import that, the page is left out from here on
  ```sh run                 the block is run by bash; it must end with 0
  ```sh run code=5          it must end with 5
  ```sh run at=there        in that folder, which stands for another machine
  ```text shows             each line was printed by the block that ran last, in this order; … stands for any text

`scp FILE… HOST:` copies into the folder `there`. Where the system allows it, all runs in a network of its own that has
the addresses 10.0.0.1 to 10.0.0.4; elsewhere pages with such an address are left out. Processes that a page leaves running are ended after it.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"^( *)```(\w+)((?: [\w=./-]+)*)\n(.*?)^ *```$", re.M | re.S)
NETWORK = ("ip link set lo up && for n in 1 2 3 4; do ip addr add 10.0.0.$n/32 dev lo || exit; done && "
           'exec "$0" "$@"')
SCP = '#!/bin/sh\nfor last; do :; done\nwhile [ $# -gt 1 ]; do cp "$1" "$PAGE_FOLDER/there/" || exit; shift; done\n'
LEFT_OUT = "left out"
PYTHON = shutil.which(os.environ.get("PAGE_PYTHON", "python3"))  # its path: pages call it python3
MODULES = {"torch": "import numpy, torch; torch.export.Dim.DYNAMIC"}  # what tells that a module will do
LIMIT_SECONDS = 900


class Page:
    """A page under way: its folder, what runs in it, and what was printed last."""

    def __init__(self, path, penstock):
        self.path, self.penstock = path, penstock
        self.folder = tempfile.mkdtemp(prefix="page-")
        self.groups, self.printed, self.count, self.lacks = [], "", 0, None
        for name in ("bin", "there"):
            os.mkdir(os.path.join(self.folder, name))
        with open(os.path.join(self.folder, "bin/scp"), "w", encoding="utf-8") as file:
            file.write(SCP)
        os.chmod(os.path.join(self.folder, "bin/scp"), 0o755)
        os.symlink(penstock, os.path.join(self.folder, "bin/penstock"))
        with open(os.path.join(self.folder, "bin/python3"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {PYTHON} -W ignore "$@"\n')
        os.chmod(os.path.join(self.folder, "bin/python3"), 0o755)
        os.mkdir(os.path.join(self.folder, "here"))
        os.symlink(os.path.abspath("examples"), os.path.join(self.folder, "here/examples"))

    def write(self, name, text):
        with open(os.path.join(self.folder, "here", name), "w", encoding="utf-8") as file:
            file.write(text)
        return None

    def run(self, marks, text):
        """Runs a block. What is wrong with it, or None."""
        folder = os.path.join(self.folder, marks.get("at", "here"))
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "PAGE_FOLDER": self.folder,
                       "HOME": self.folder, "COLUMNS": "100", "NO_COLOR": "1"}
        with tempfile.TemporaryFile() as output:
            with subprocess.Popen(["bash", "-eu", "-c", text], cwd=folder, env=environment, stdout=output,
                                  stdin=subprocess.DEVNULL, stderr=output, start_new_session=True) as process:
                self.groups.append(process.pid)
                try:
                    code = process.wait(LIMIT_SECONDS)
                except subprocess.TimeoutExpired:
                    code = "none in time"
                    os.killpg(process.pid, signal.SIGKILL)
            output.seek(0)
            self.printed = output.read().decode(errors="replace").replace("\r", "\n")
        expected = int(marks.get("code", 0))
        return None if code == expected else f"ended with {code}, not {expected}:\n{self.printed}"

    def shows(self, text):
        """What of a block of output was not printed."""
        at = 0
        for line in text.splitlines():
            parts = [r"\s+".join(re.escape(word) for word in part.split()) for part in line.split("…")]
            found = re.compile(r"[^\n]*".join(parts) if line.strip() else "").search(self.printed, at)
            if not found:
                return f"was not printed: {line.strip()}\n{self.printed}"
            at = found.end()
        return None

    def block(self, language, marks, text):
        names = dict(mark.split("=", 1) if "=" in mark else (mark, "") for mark in marks.split())
        if "needs" in names and subprocess.run([PYTHON, "-c", MODULES[names["needs"]]], check=False,
                                               capture_output=True).returncode != 0:
            return LEFT_OUT
        if "file" in names:
            return self.write(names["file"], text)
        if "run" in names:
            return self.run(names, text)
        if "shows" in names:
            return self.shows(text)
        return f"{language}: nobody knows what `{marks.strip()}` is"

    def go(self):
        """Whether all blocks did what the page says."""
        with open(self.path, encoding="utf-8") as file:
            page = file.read()
        if "10.0.0." in page and not os.environ.get("PAGE_NETWORK"):
            self.lacks = "no network of its own can be made here"
            return True
        for match in BLOCK.finditer(page):
            if not match[3]:
                continue
            start = time.monotonic()
            text = re.sub(f"^{match[1]}", "", match[4], flags=re.M)
            wrong = self.block(match[2], match[3], text)
            line = page.count("\n", 0, match.start()) + 1
            if wrong == LEFT_OUT:
                self.lacks = f"from line {line} on: {PYTHON} cannot import what it needs: give PAGE_PYTHON=PYTHON"
                return True
            self.count += 1
            if "run" in match[3]:
                print(f"{self.path}:{line}: {time.monotonic() - start:.1f} s", flush=True)
            if wrong:
                print(f"{self.path}:{line}: {wrong}")
                return False
        return True

    def close(self):
        for group in self.groups:
            try:
                os.killpg(group, signal.SIGTERM)
            except ProcessLookupError:
                pass
        time.sleep(0.2 if self.groups else 0)
        shutil.rmtree(self.folder, ignore_errors=True)


def own_network():
    """Starts this program again in a network of its own, where that can be made."""
    if os.environ.get("PAGE_NETWORK") or not shutil.which("ip"):
        return
    words = ["unshare", "--map-root-user", "--net", "sh", "-c", NETWORK]
    if subprocess.run([*words, "true"], check=False, capture_output=True).returncode == 0:
        os.environ["PAGE_NETWORK"] = "own"
        os.execvp(words[0], [*words, sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--penstock", default="build/gcc/penstock")
    parser.add_argument("pages", nargs="+")
    options = parser.parse_args()
    own_network()
    failed = count = 0
    left_out = []
    for path in options.pages:
        page = Page(path, os.path.abspath(options.penstock))
        try:
            failed += not page.go()
        finally:
            page.close()
        count += page.count
        if page.lacks:
            left_out.append(f"{path}: LEFT OUT {page.lacks}")
    print("".join(line + "\n" for line in left_out), end="")
    print(f"pages: {count} blocks of {len(options.pages)} pages, {failed} pages failed, {len(left_out)} not tried or in part")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
