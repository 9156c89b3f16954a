"""What came of the runs of a script that kills: a line for each, and how long it took to the next loss."""
import os
import shutil
import statistics
import sys
import tempfile


class Runs:
    def __init__(self, fault, widths):
        """`fault` is the word for what is done; `widths` are those of the two texts of a group, as in a line."""
        self.fault, self.widths = fault, widths
        self.times, self.failed, self.count = {}, [], 0

    def texts(self, group):
        return " ".join(f"{text:{width}s}" for text, width in zip(group, self.widths))

    def note(self, group, case, told, training, result):
        """Prints the line; keeps the training's folder where anything did not hold. `told` is the rest of the case."""
        self.count += 1
        time_text = "     -" if result.to_next_loss is None else f"{result.to_next_loss:6.2f}"
        if result.to_next_loss is not None:
            self.times.setdefault(group, []).append(result.to_next_loss)
        held = "ok" if not result.wrong else "WRONG: " + "; ".join(result.wrong[:3])
        print(f"{told} {time_text} s  of {result.seconds:5.2f} s  {held}", flush=True)
        if result.wrong:
            self.failed.append(f"{case}: {training.folder}")
        else:
            shutil.rmtree(training.folder, ignore_errors=True)

    def table(self):
        print(f"\nseconds from the {self.fault} to the next loss")
        print(f"{self.texts(('', ''))} {'runs':>5s} {'median':>7s} {'max':>7s}")
        for group, times in sorted(self.times.items()):
            print(f"{self.texts(group)} {len(times):5d} {statistics.median(times):7.2f} {max(times):7.2f}")
        print(f"{self.count} runs, {len(self.failed)} wrong")


def judge(folder, work):
    """The exit code of a script: work(FOLDER, a temporary one where None is given) runs all and returns the Runs."""
    path = folder or tempfile.mkdtemp(prefix="penstock-faults-")
    os.makedirs(path, exist_ok=True)
    runs = work(path)
    runs.table()
    if runs.failed:
        print("what processes said is in:\n  " + "\n  ".join(runs.failed), file=sys.stderr)
    elif folder is None:
        shutil.rmtree(path, ignore_errors=True)
    return 1 if runs.failed or runs.count == 0 else 0
