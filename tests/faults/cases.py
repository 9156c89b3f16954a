"""Cases of a script: each is run, prints one line, and is counted as held, wrong or skipped."""
import os
import re
import shutil
import sys
import tempfile
import time


class Skip(Exception):
    """The machine does not allow this; the text says why."""


class Cases:
    def __init__(self, only=""):
        self.only = only
        self.held, self.wrong, self.skipped = [], [], []
        self.folder = tempfile.mkdtemp(prefix="penstock-faults-")

    def run(self, name, function, *arguments):
        """The function returns (what is wrong, a note)."""
        if not re.search(self.only, name):
            return
        begun = time.monotonic()
        try:
            wrong, note = function(*arguments)
        except Skip as skip:
            self.skipped.append(name)
            print(f"skipped  {name:44s} {skip}", flush=True)
            return
        seconds = time.monotonic() - begun
        (self.wrong if wrong else self.held).append(name)
        print(f"{'WRONG' if wrong else 'ok':8s} {name:44s} {seconds:6.1f} s  {note}", flush=True)
        for text in wrong[:6]:
            print(f"           {text}")

    def end(self):
        """The exit code of the script: 77 when all was skipped."""
        print(f"{len(self.held)} held, {len(self.wrong)} wrong, {len(self.skipped)} skipped")
        if self.wrong:
            print(f"what processes said is in {self.folder}", file=sys.stderr)
            return 1
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self.held:
            print("nothing could be tried here")
            return 77
        return 0

    def at(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path
