"""Rows of Spark and Ray as files; needs neither. Run by tests/end_to_end/python.sh."""
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import numpy as np

import penstock
from penstock import _rows, _tasks

COLUMNS = _rows.columns_of({"a/b:0": "x", "picture": "bytes"}, "y", {"a/b:0": [2, 2]})


class Vector:
    """As Spark ML has them."""

    def __init__(self, *values):
        self.values = values

    def toArray(self):
        return np.array(self.values, np.float64)


def rows(*numbers):
    return {"x": [Vector(number, 0, 1, 2) for number in numbers],
            "bytes": [bytes([number, 255]) for number in numbers], "y": list(numbers)}


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, index, *blocks):
        return _rows.write_part(self.folder, index, blocks, COLUMNS)

    def refuse(self, words, work, *arguments):
        with self.assertRaisesRegex(penstock.InvalidInputError, words):
            work(*arguments)

    def test_a_part_is_a_file_for_each_column(self):
        index, count, _ = self.write(7, rows(1, 2), rows(3))
        self.assertEqual((index, count), (7, 3))
        self.assertEqual(sorted(os.listdir(self.folder)), ["input-a%2Fb%3A0-00000007.npy", "input-picture-00000007.npy",
                                                           "label-00000007.npy", "part-00000007.sha256"])
        files = {path.name.split("-0000")[0]: np.load(path) for path in pathlib.Path(self.folder).glob("*.npy")}
        np.testing.assert_array_equal(files["input-a%2Fb%3A0"], np.float32([[[n, 0], [1, 2]] for n in (1, 2, 3)]))
        np.testing.assert_array_equal(files["input-picture"], np.uint8([[1, 255], [2, 255], [3, 255]]))
        np.testing.assert_array_equal(files["label"], [1, 2, 3])
        kinds = {name: array.dtype.str for name, array in files.items()}
        self.assertEqual(kinds, {"input-a%2Fb%3A0": "<f4", "input-picture": "|u1", "label": "<i8"})

    def test_a_part_may_come_again_with_the_same_rows_only(self):
        first = self.write(0, rows(1, 2, 3))
        self.assertEqual(self.write(0, rows(1), rows(2, 3)), first)
        for others in (rows(1, 2), rows(3, 2, 1), rows(1, 2, 4)):
            self.refuse("part 0 of the data came again with other rows", self.write, 0, others)
        self.refuse("part 0 of the data came again with other rows", self.write, 0)
        self.assertEqual(np.load(f"{self.folder}/label-00000000.npy").tolist(), [1, 2, 3])
        self.assertFalse([name for name in os.listdir(self.folder) if not name.endswith((".npy", ".sha256"))])

    def test_no_part_is_left_of_data_that_came_before(self):
        parts = [self.write(0, rows(1)), self.write(1, rows(2))]
        _rows.note_parts(self.folder, parts)
        _rows.note_parts(self.folder, reversed(parts))
        self.refuse("in other parts", _rows.note_parts, self.folder, parts[:1])

    def test_an_empty_part_has_no_files(self):
        self.assertEqual(self.write(3)[:2], (3, 0))
        self.assertEqual(os.listdir(self.folder), ["part-00000003.sha256"])

    def test_weights_are_a_file_of_numbers(self):
        columns = _rows.columns_of({"a": "x"}, "y", None, "w")
        self.assertEqual(columns.names(), ["x", "y", "w"])
        _rows.write_part(self.folder, 2, [{"x": [1.0, 2.0], "y": [0, 1], "w": [0.5, 2.0]}], columns)
        np.testing.assert_array_equal(np.load(f"{self.folder}/weight-00000002.npy"), np.float32([0.5, 2]))
        self.assertEqual(columns.dataset("f")["weights"], "f/weight-[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9].npy")
        self.assertNotIn("weights", COLUMNS.dataset("f"))
        self.refuse(r"column 'w': found rows of 2 numbers, expected 1", _rows.write_part, self.folder, 3,
                    [{"x": [1.0], "y": [0], "w": [[1.0, 2.0]]}], columns)

    def test_what_cannot_be_taken_is_named(self):
        self.assertEqual(_rows.array_of([True, False], "x").dtype.str, "|u1")
        for values, words in (([[1, 2], [1]], r"'x': found a row of shape \[1\], expected that of the first, \[2\]"),
                              ([1, None], "'x': found object"), (["a"], "'x': found <U1, expected numbers")):
            self.refuse(words, _rows.array_of, values, "x")
        self.refuse(r"'x': found rows of 3 numbers, expected 4, of the shape \[2, 2\]", _rows.array_of, [[1, 2, 3]],
                    "x", [2, 2])
        self.refuse("column 'bytes': found rows of uint8 .3., expected those before, of uint8 .2.", self.write, 0,
                    rows(1), {**rows(1), "bytes": [b"abc"]})
        self.assertEqual(os.listdir(self.folder), [])
        self.refuse("shapes: found 'q', expected one of inputs: a", _rows.columns_of, {"a": "x"}, "y", {"q": [1]})

    def test_a_job_has_the_files(self):
        self.folder += "/run"
        os.mkdir(self.folder)
        job = {"model": "/m.onnx", "train": {"loss": "l1"}, "data": {"train": {"label_type": "number"}}}
        training = _tasks.Training(job, COLUMNS, self.folder, 2, device={"memory": "1GiB"})
        self.refuse("have no rows", training.prepare, [(0, 0, "")])
        os.mkdir(f"{self.folder}/data")
        training.prepare([(0, 3, "hash")])
        text = pathlib.Path(f"{self.folder}/job.yaml").read_text(encoding="utf-8")
        for line in ("per: task", "memory: 1GiB", "label_type: number", "format: npy", "file: /m.onnx"):
            self.assertIn(line, text)
        self.assertIn('data/input-a%2Fb%3A0-[0-9]', text)
        self.refuse("workers: found 0", _tasks.Training, job, COLUMNS, self.folder, 0)
        self.refuse("folder: found run", _tasks.Training, job, COLUMNS, "run", 1)

    def test_a_process_that_signals_end_is_started_again(self):
        command = pathlib.Path(self.folder, "command")
        command.write_text('#!/bin/sh\n'
                           'echo "$PENSTOCK_RANK of $PENSTOCK_SIZE in $PENSTOCK_START at $PENSTOCK_ADDRESS"\n'
                           f'[ -e {self.folder}/again ] && exit 0\ntouch {self.folder}/again\nkill -9 $$\n')
        command.chmod(0o755)
        _tasks.Training({}, COLUMNS, self.folder, 2, command=str(command)).run(1, "start", lambda: "10.0.0.1")
        said = pathlib.Path(self.folder, "messages-1.txt").read_text(encoding="utf-8")
        self.assertEqual(said, "1 of 2 in start at 10.0.0.1\n" * 2)
        command.write_text("#!/bin/sh\necho no such model\nexit 2\n")
        with self.assertRaisesRegex(RuntimeError, r"task 0: exit code 2: no such model\n"):
            _tasks.Training({}, COLUMNS, self.folder, 2, command=str(command)).run(0, "start", lambda: "name")
        with self.assertRaises(RuntimeError) as raised: # what was said before is not said again
            _tasks.Training({}, COLUMNS, self.folder, 2, command=str(command)).run(0, "start", lambda: "name")
        self.assertEqual(str(raised.exception).count("no such model"), 1)

    def test_a_process_is_started_again_ten_times(self):
        command = pathlib.Path(self.folder, "command")
        command.write_text("#!/bin/sh\necho again\nkill -9 $$\n")
        command.chmod(0o755)
        with mock.patch.object(_tasks, "_RESTART_SECONDS", 0), self.assertRaisesRegex(
                RuntimeError, "task 0: SIGKILL, 10 restarts did not help: again\n"):
            _tasks.Training({}, COLUMNS, self.folder, 2, command=str(command)).run(0, "start", lambda: "name")
        self.assertEqual(pathlib.Path(self.folder, "messages-0.txt").read_text(encoding="utf-8"), "again\n" * 11)


if __name__ == "__main__":
    unittest.main()
