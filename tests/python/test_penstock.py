"""The Python module, against the library of this build. Needs NumPy, and neither PyTorch nor a network.

  PYTHONPATH=python PENSTOCK_LIBRARY=.../libpenstock.so python3 -m unittest discover -s tests/python
"""
import array
import ctypes
import gc
import html.parser
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import weakref
import zipfile

import numpy as np

import penstock
from penstock import _arrays, _job, _library

TOP = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("PENSTOCK", str(pathlib.Path(os.environ["PENSTOCK_LIBRARY"]).parent / "penstock"))


def make_data(count=24):
    random = np.random.default_rng(5)
    x = random.normal(size=(count, 6)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 1)


X, Y = make_data()


def make_job(inputs=X, labels=Y, evaluated=True, **settings):
    """A small job on arrays; settings replace those of `train`, but devices."""
    devices = settings.pop("devices", [{"name": "a", "threads": 1}])
    data = {"train": {"inputs": inputs, "labels": labels}}
    if evaluated:
        data["eval"] = {"inputs": {"x": X}, "labels": Y}
    train = {"loss": "softmax_cross_entropy", "optimizer": {"sgd": {"lr": 0.1, "momentum": 0.9}}, "batch": 8,
             "microbatches": 2, "epochs": 4, "seed": 3}
    return {"model": {"seed": 1, "inputs": {"x": {"shape": [6]}},
                      "layers": [{"dense": {"units": 5, "activation": "tanh"}}, {"dense": 3}]},
            "data": data, "train": {**train, **settings}, "devices": devices}


def losses(training):
    return [step.loss for step in training.steps]


class Scratch(unittest.TestCase):
    """Each test in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        before = os.getcwd()
        os.chdir(folder.name)
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, before)

    def run_python(self, text, **variables):
        """Runs a program of its own; what it printed."""
        text = "import os, sys\n" + textwrap.dedent(text)
        done = subprocess.run([sys.executable, "-c", text], env={**os.environ, **variables}, capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class Layout(Scratch):
    def test_structs_are_those_of_the_header(self):
        """A C program prints sizes and offsets: a member that is moved, added or renamed is noticed."""
        lines = ["#include <stdio.h>", '#include "scheduler/penstock.h"', "int main(void) {"]
        expected = []
        for kind in _library.STRUCTS:
            name = kind._c_name_
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            expected.append(f"{name} {ctypes.sizeof(kind)}")
            for field, _ in kind._fields_:
                lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                             f"sizeof((({name} *)0)->{field}));")
                place = getattr(kind, field)
                expected.append(f"{name}.{field} {place.offset} {place.size}")
        for number, element in enumerate(_library.ELEMENTS):
            lines.append(f'printf("{element} %d\\n", (int)PEN_ARRAY_{element.upper()});')
            expected.append(f"{element} {number}")
        codes = ["CODE_OK", "INVALID_INPUT", "NOT_FOUND", "UNSUPPORTED", "DOES_NOT_FIT", "OUT_OF_MEMORY", "IO",
                 "CORRUPT", "UNAVAILABLE", "DEADLINE", "CANCELLED", "NOT_FINITE", "INTERNAL", "NO_STORAGE"]
        for number, code in enumerate(codes):
            lines.append(f'printf("{code} %d\\n", (int)PEN_{code});')
            expected.append(f"{code} {number}")
        lines.append(f'printf("rank %d\\n", PEN_ARRAY_RANK_LIMIT); return 0; }}')
        expected.append(f"rank {_library.RANK_LIMIT}")
        pathlib.Path("layout.c").write_text("\n".join(lines), encoding="utf-8")
        subprocess.run(["gcc", "-std=c11", "-Wall", "-Werror", f"-I{TOP}", "layout.c", "-o", "layout"], check=True)
        found = subprocess.run(["./layout"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(found.splitlines(), expected)

    def test_every_member_is_known(self):
        """Sizes alone would not tell a member that fits into a gap."""
        header = (TOP / "scheduler/penstock.h").read_text(encoding="utf-8")
        header = re.sub(r"//[^\n]*", "", header)
        for kind in _library.STRUCTS:
            name = kind._c_name_
            body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), header, re.DOTALL).group(1)
            members = re.findall(r"(\w+)(?:\[\w+\])?;", body)
            self.assertEqual(members, [name for name, _ in kind._fields_])

    def test_functions_are_those_of_the_headers(self):
        kinds = {"uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32, "size_t": ctypes.c_size_t, "void": None,
                 "bool": ctypes.c_bool, "pen_status": ctypes.c_void_p, "pen_status_code": ctypes.c_int}
        text = "".join((TOP / name).read_text(encoding="utf-8") for name in ("scheduler/penstock.h", "base/status.h"))
        text = re.sub(r"//[^\n]*", "", text)

        def check(kind, written, what):
            written = written.replace("const ", "").strip()
            if "*" in written or written.startswith("pen_message_take"):
                self.assertTrue(kind is ctypes.c_char_p or kind is ctypes.c_void_p or hasattr(kind, "contents")
                                or issubclass(kind, ctypes._CFuncPtr), what)
            else:
                self.assertIs(kind, kinds[written.split(" ")[0]], what)

        for name, (result, parameters) in _library.FUNCTIONS.items():
            found = re.search(r"([\w ]+[ *]+)\b%s\(([^)]*)\)" % name, text)
            self.assertIsNotNone(found, name)
            written = [] if found.group(2).strip() == "void" else found.group(2).split(",")
            check(result, found.group(1).replace("PEN_NODISCARD", ""), name)
            self.assertEqual(len(parameters), len(written), name)
            for kind, parameter in zip(parameters, written):
                check(kind, " ".join(parameter.split()), f"{name}: {parameter}")


class Training(Scratch):
    def test_arrays_train_as_files_do(self):
        np.save("x.npy", X)
        np.save("y.npy", Y)
        files = make_job()
        files["data"] = {"train": {"format": "npy", "inputs": {"x": pathlib.Path("x.npy")}, "labels": "y.npy"}}
        with penstock.train(files) as expected, penstock.train(make_job()) as found:
            self.assertEqual(len(losses(expected)), 12)
            self.assertEqual(losses(found), losses(expected))
            self.assertLess(found.steps[-1].loss, found.steps[0].loss)
            self.assertIsNone(expected.evaluation)
            self.assertEqual(found.evaluation.examples, 24)

    def test_weights_are_arrays_too(self):
        weights = np.arange(len(X)) % 3
        weighted, repeated = make_job(batch=len(X), shuffle=False), make_job(
            inputs=np.repeat(X, weights, 0), labels=np.repeat(Y, weights, 0), batch=len(X), shuffle=False)
        weighted["data"]["train"]["weights"] = weights
        with penstock.train(weighted) as found, penstock.train(repeated) as expected:
            self.assertEqual(int(weights.sum()), len(X))
            np.testing.assert_allclose(losses(found), losses(expected), rtol=1e-5)

    def test_a_job_in_a_file_takes_arrays_by_name(self):
        data = {"train": {"format": "arrays", "inputs": {"x": "mine"}, "labels": "answers"}}
        job = _job.Job({**make_job(), "data": data})
        pathlib.Path("job.yaml").write_bytes(job.text)
        found = penstock.train("job.yaml", arrays={"mine": X, "answers": Y})
        with found, penstock.train(make_job()) as expected:
            self.assertEqual(losses(found), losses(expected))

    def test_any_array_will_do(self):
        """What has gaps, other types, another order of bytes or is a list gives the same numbers."""
        with penstock.train(make_job()) as training:
            expected = losses(training)
        wide = np.zeros((24, 12), np.float32)
        wide[:, ::2] = X
        frozen = X.copy()
        frozen.flags.writeable = False
        for inputs, labels in [(wide[:, ::2], Y.astype(np.int32)), (np.asfortranarray(X), Y.astype(np.uint8)),
                               (X.astype(">f4"), Y.astype(">i8")), (X.tolist(), Y.tolist()),
                               (frozen, Y.astype(np.int16)), (X.astype(np.float64), Y.astype(np.float32))]:
            job = make_job(inputs, labels)
            if labels is not None and getattr(labels, "dtype", None) == np.float32:
                job["data"]["train"]["label_type"] = "index"
            with penstock.train(job) as training:
                self.assertEqual(losses(training), expected)

    def test_steps_and_epochs_are_told(self):
        steps, epochs = [], []
        with penstock.train(make_job(epochs=3), on_step=steps.append, on_epoch=epochs.append) as training:
            self.assertEqual(steps, training.steps)
            self.assertEqual([(e.epoch, e.step, e.examples) for e in epochs], [(1, 3, 24), (2, 6, 24), (3, 9, 24)])
            first = training.steps[:3]
            self.assertAlmostEqual(epochs[0].loss, sum(s.loss for s in first) / 3)
            self.assertAlmostEqual(epochs[0].accuracy, sum(s.accuracy for s in first) / 3)
            self.assertEqual(training.step_count, 9)
            self.assertIsNone(training.step())
        with penstock.train(make_job(), on_epoch=lambda epoch: epoch.epoch < 2) as training:
            self.assertEqual(len(training.steps), 6)
        with penstock.train(make_job(), steps=2) as training:
            self.assertEqual(len(training.steps), 2)

    def test_evaluations_while_it_runs_are_told_and_the_best_is_saved(self):
        def judge(patience):
            job = make_job(epochs=30, optimizer={"sgd": {"lr": 2.0}})
            job["data"]["eval"]["labels"] = np.roll(Y, 5) # it gets worse
            return {**job, "evaluation": {"every": "2 steps", "patience": patience, "metric": "loss",
                                          "metrics": ["f1_micro", "top_2"]},
                    "checkpoint": {"dir": f"kept{patience}"}, "outputs": {"from": "best"}}

        with penstock.Training(judge(3)) as training:
            best, saved = None, None
            for step in training:
                self.assertEqual(step.evaluation is not None, step.step % 2 == 0)
                if step.evaluation is None:
                    continue
                asked = training.evaluate()
                self.assertEqual((step.evaluation.loss, step.evaluation.accuracy), (asked.loss, asked.accuracy))
                self.assertEqual(step.evaluation.metrics, asked.metrics)
                self.assertEqual(asked.metrics["f1_micro"], asked.accuracy)
                self.assertLessEqual(asked.accuracy, asked.metrics["top_2"])
                self.assertEqual(len(asked.metrics), 2)
                self.assertEqual(step.is_best, best is None or asked.loss < best)
                if step.is_best:
                    best, saved = asked.loss, training.parameters()
            told = [step for step in training.steps if step.evaluation]
            self.assertLess(training.steps[-1].step, training.step_count)
            self.assertEqual([step.is_best for step in told[-3:]], [False] * 3)
            training.save("best.safetensors")
        with penstock.Training(judge(0), parameters="best.safetensors", inference=True) as again:
            for name, value in again.parameters().items():
                np.testing.assert_array_equal(value, saved[name])
            self.assertEqual(again.evaluate().loss, best)

    def test_metrics_of_steps_are_those_of_what_it_predicts(self):
        def train(labels, loss, names, units):
            job = make_job(labels=labels, evaluated=False, loss=loss, batch=24, microbatches=3)
            job["model"]["layers"][-1] = {"dense": units}
            job["data"]["eval"] = job["data"]["train"]
            with penstock.Training({**job, "evaluation": {"every": "2 steps", "metrics": names}}) as training:
                while True:
                    before = training.predict(X).astype(float)
                    step = training.step()
                    if step is None:
                        return
                    self.assertEqual(list(step.metrics), names)
                    self.assertEqual(step.evaluation is not None, step.step % 2 == 0)
                    yield before, step

        for z, step in train(Y, "softmax_cross_entropy", ["top_2", "perplexity"], 3):
            among = (np.argsort(-z, axis=1)[:, :2] == Y[:, None]).any(1)
            self.assertEqual(step.metrics["top_2"], among.mean())
            entropy = np.log(np.exp(z).sum(1)) - z[np.arange(len(Y)), Y]
            self.assertAlmostEqual(step.metrics["perplexity"], np.exp(entropy.mean()), places=5)
        target = X[:, :1] + X[:, 1:2]
        errors = ["mean_absolute_error", "mean_squared_error", "root_mean_squared_error"]
        for z, step in train(target, "huber", errors, 1):
            square = ((z - target) ** 2).mean()
            for name, value in zip(errors, (abs(z - target).mean(), square, square ** 0.5)):
                self.assertAlmostEqual(step.metrics[name], value, places=5)
        with penstock.train(make_job()) as training:
            self.assertEqual(training.steps[0].metrics, {}) # nobody asked

    def test_accuracy_of_an_epoch_is_over_what_was_judged(self):
        labels = Y.copy()
        labels[:8] = 9 # of the first batch without shuffling, all
        labels[8:11] = 9
        job = make_job(labels=labels, loss="softmax_cross_entropy", ignore_index=9, shuffle=False)
        job["evaluation"] = {"metrics": ["perplexity", "top_2"]}
        with penstock.train(job) as training:
            first = training.steps[:3]
            self.assertIsNone(first[0].accuracy)
            self.assertEqual(first[0].metrics, {})
            self.assertEqual(sorted(first[1].metrics), ["perplexity", "top_2"])
            right = round(first[1].accuracy * 5) + round(first[2].accuracy * 8)
            self.assertEqual(training.epochs[0].accuracy, right / 13)

    def test_several_losses_are_told_one_by_one(self):
        folder = TOP / "tests" / "reference" / "losses"
        data = {"inputs": {"x": str(folder / "x.npy")}, "format": "npy",
                "labels": {"some": str(folder / "some.npy"), "boxes": str(folder / "boxes.npy")}}
        entries = [{"output": "logits", "labels": "some", "kind": "softmax_cross_entropy", "class_axis": 1,
                    "ignore_index": 255}, {"output": "boxes", "kind": "smooth_l1", "weight": 0.5},
                   {"output": "boxes", "kind": "l1", "weight": 0.25}]
        job = {"model": str(folder / "model.onnx"), "data": {"train": data, "eval": data},
               "train": {"losses": entries, "optimizer": {"adamw": {"lr": 0.01}}, "batch": 4, "epochs": 2, "seed": 2},
               "checkpoint": {"dir": "kept"}}
        names = ["logits", "boxes/smooth_l1", "boxes/l1"]

        def check(told):
            self.assertEqual(list(told.losses), names)
            whole = sum(told.losses[name] * weight for name, weight in zip(names, (1, 0.5, 0.25)))
            self.assertAlmostEqual(whole, told.loss, places=5)

        with penstock.Training(job, overwrite=True) as training:
            training.run()
            expected = [(step.loss, step.losses) for step in training.steps]
            for told in [*training.steps, *training.epochs, training.evaluate()]:
                check(told)
            training.save("trained.safetensors")
        check(penstock.evaluate(job, parameters="trained.safetensors"))
        with penstock.Training(job, overwrite=True) as training:
            training.run(on_step=lambda step: step.step < 2)
        with penstock.Training(job, continues=True) as training:
            training.run()
            self.assertEqual([(step.loss, step.losses) for step in training.steps], expected[2:])
        with penstock.Training(make_job()) as training:
            self.assertEqual(training.step().losses, {})

    def test_predictions_are_rows(self):
        with penstock.train(make_job()) as training:
            rows = training.predict()
            self.assertEqual((rows.shape, rows.dtype), ((24, 3), np.float32))
            for count in (1, 3, 8, 23):
                np.testing.assert_allclose(training.predict(X[:count]), rows[:count], rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(training.predict({"x": X}), rows)
            values = training.parameters()
            hidden = np.tanh(X @ values["dense/kernel"] + values["dense/bias"])
            np.testing.assert_allclose(rows, hidden @ values["dense_1/kernel"] + values["dense_1/bias"], rtol=1e-4,
                                       atol=1e-5)
            self.assertAlmostEqual(training.evaluation.accuracy, float((rows.argmax(1) == Y).mean()))
            with self.assertRaisesRegex(penstock.NotFoundError, "no output 'none'"):
                training.predict(X, output="none")
            with self.assertRaisesRegex(penstock.InvalidInputError, "nothing for the model's input 'x'"):
                training.predict({"z": X})
            with self.assertRaises(penstock.InvalidInputError):
                training.predict(X[:, :5])

    def test_first_rows_may_go(self):
        with penstock.train(make_job()) as trained:
            rows = trained.predict({"x": X})
            trained.save("first.safetensors")
        job = {key: value for key, value in make_job().items() if key != "data"}
        for _ in range(20):
            with penstock.Training({**job, "data": {"eval": {"inputs": {"x": X[:1]}}}}, parameters="first.safetensors",
                                   inference=True) as training:
                for count in (1, 2, 4, 8): # the model is compiled for each
                    found = training.predict({"x": X[:count].copy()})
                    np.testing.assert_allclose(found, rows[:count], rtol=1e-5, atol=1e-6)

    def test_parameters_go_round(self):
        with penstock.train(make_job()) as trained, penstock.Training(make_job()) as fresh:
            values = trained.parameters()
            self.assertEqual({name: value.shape for name, value in values.items()},
                             {"dense/kernel": (6, 5), "dense/bias": (5,), "dense_1/kernel": (5, 3),
                              "dense_1/bias": (3,)})
            self.assertTrue(all(np.shares_memory(np.from_dlpack(value), value) for value in values.values()))
            fresh.set_parameters({name: value.astype(np.float64) for name, value in values.items()})
            np.testing.assert_array_equal(fresh.predict(X), trained.predict(X))
            self.assertEqual(fresh.evaluate().loss, trained.evaluation.loss)
            fresh.set_parameters({"dense/bias": np.zeros(5)}, strict=False)
            self.assertFalse(fresh.parameters()["dense/bias"].any())
            for wrong, said in [({"dense/bias": values["dense/bias"]}, "no value for 'dense/kernel'"),
                                ({**values, "other": X}, "the model has no 'other'"),
                                ({**values, "dense/bias": X}, r"found the shape \[24, 6\], expected \[5\]"),
                                ({**values, "dense/bias": ["a"] * 5}, "dense/bias: ")]:
                with self.assertRaisesRegex(penstock.InvalidInputError, said):
                    fresh.set_parameters(wrong)

    def test_what_is_saved_evaluates_and_predicts(self):
        with penstock.train(make_job()) as training:
            training.save("trained.safetensors")
            training.export("trained.onnx")
            expected, rows = training.evaluation, training.predict()
        found = penstock.evaluate(make_job(), parameters="trained.safetensors")
        self.assertEqual((found.loss, found.accuracy), (expected.loss, expected.accuracy))
        np.testing.assert_array_equal(penstock.predict(make_job(), X, parameters="trained.safetensors"), rows)
        job = {**make_job(), "model": "trained.onnx"}
        np.testing.assert_allclose(penstock.predict(job), rows, rtol=1e-5, atol=1e-6)
        with penstock.Training(make_job(), parameters="trained.safetensors", inference=True) as training:
            with self.assertRaisesRegex(penstock.UnsupportedError, "it has no steps"):
                training.step()

    def test_checkpoints_are_gone_on_from(self):
        job = {**make_job(), "checkpoint": {"dir": "kept", "every": "2 steps"}}
        with penstock.train(make_job()) as training:
            expected = losses(training)
        with penstock.train(job, on_step=lambda step: step.step < 5) as training:
            self.assertEqual(losses(training), expected[:5])
        with self.assertRaises(penstock.InvalidInputError):
            penstock.train(job)
        with penstock.train(job, continues=True) as training:
            self.assertEqual([step.step for step in training.steps], list(range(6, 13)))
            self.assertEqual(losses(training), expected[5:])


class Workers(Scratch):
    def children(self):
        return pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="utf-8").split()

    def all_children(self):
        return [child for task in pathlib.Path("/proc/self/task").iterdir()
                for child in (task / "children").read_text(encoding="utf-8").split()]

    def test_processes_are_started_and_ended(self):
        before = self.all_children()
        devices = [{"name": name, "threads": 1, "host": "localhost"} for name in ("a", "b")]
        with penstock.train(make_job()) as expected:
            rows = expected.predict(X)
        training = penstock.Training(make_job(devices=devices), worker=COMMAND)
        self.assertEqual(len(self.all_children()) - len(before), 2)
        training.run()
        self.assertEqual(losses(training), losses(expected))
        np.testing.assert_allclose(training.predict(X), rows, rtol=1e-5, atol=1e-6)
        training.close()
        self.assertEqual(self.all_children(), before)

    def test_nobody_waits_for_workers_after_ctrl_c(self):
        devices = [{"name": "a", "threads": 1}, {"name": "b", "threads": 1, "host": "127.0.0.1:1"}]
        timer = threading.Timer(0.7, os.kill, (os.getpid(), 2))
        started = time.monotonic()
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            penstock.train(make_job(devices=devices))
        self.assertLess(time.monotonic() - started, 15)


class Interrupting(Scratch):
    def test_ctrl_c_leaves_a_training_that_goes_on(self):
        with penstock.train(make_job(epochs=400)) as training:
            expected = losses(training)
        for _ in range(5): # wherever it comes: within the library, between steps
            with penstock.Training(make_job(epochs=400)) as training:
                threading.Timer(0.02, os.kill, (os.getpid(), 2)).start()
                with self.assertRaises(KeyboardInterrupt):
                    training.run()
                    time.sleep(5)
                done = len(training.steps)
                training.evaluate()
                training.run()
                self.assertEqual(losses(training), expected)
                self.assertLessEqual(done, len(expected))

    def test_a_step_is_counted_when_ctrl_c_comes_right_after_it(self):
        with penstock.train(make_job()) as training:
            expected = losses(training)
        with penstock.Training(make_job()) as training:
            note = training._note_step

            def interrupt(report):
                training._note_step = note
                os.kill(os.getpid(), 2)
                return note(report)
            training._note_step = interrupt
            with self.assertRaises(KeyboardInterrupt):
                training.run()
                time.sleep(5)
            training.run()
            self.assertEqual(losses(training), expected)

    def test_errors_of_callbacks_come_through(self):
        def fail(step):
            raise RuntimeError(f"at {step.step}")
        before = threading.active_count()
        with self.assertRaisesRegex(RuntimeError, "at 1"):
            penstock.train(make_job(), on_step=fail)
        self.assertEqual(threading.active_count(), before)

    def test_a_program_may_end_in_the_middle(self):
        self.assertEqual(self.run_python(f"""
            sys.path.insert(0, {str(TOP / "tests/python")!r})
            import test_penstock as t
            training = t.penstock.Training(t.make_job())
            training.step()
            print("end")
            """), "end\n")


class Errors(Scratch):
    def test_a_dict_is_blamed_by_its_keys(self):
        for change, key, said in [
                ({"batch": "many"}, "train.batch", "expected an integer"),
                ({"optimizer": {"sgd": {}}}, "train.optimizer", "lr"), ({"loss": "none"}, "train.loss", "one of"),
                ({"lerning": 1}, "train.lerning", "lerning"), ({"warmup": float("nan")}, "train.warmup", "finite"),
                ({"freeze": object()}, "train.freeze", "found object")]:
            with self.assertRaisesRegex(penstock.InvalidInputError, said) as caught:
                penstock.train(make_job(**change))
            self.assertTrue(caught.exception.key.startswith(key), caught.exception.key)
            self.assertIn(f"job, at {caught.exception.key}", str(caught.exception))
            self.assertIsNone(caught.exception.line)
        job = make_job()
        job["devices"] = [{"name": "a"}, {"name": "b", "threads": -1}]
        with self.assertRaises(penstock.InvalidInputError) as caught:
            penstock.plan(job)
        self.assertEqual(caught.exception.key, "devices[1].threads")

    def test_a_file_is_blamed_by_its_line(self):
        pathlib.Path("job.yaml").write_text("version: 1\nmodel: {file: net.onnx}\n"
                                            "train: {batch: 0, loss: output, optimizer: {sgd: {lr: 1}}}\n"
                                            "data: {train: {format: npy, inputs: {x: x.npy}}}\n", encoding="utf-8")
        with self.assertRaises(penstock.InvalidInputError) as caught:
            penstock.train("job.yaml")
        error = caught.exception
        self.assertEqual((error.file, error.line, error.column, error.key), ("job.yaml", 3, 16, None))
        self.assertTrue(str(error).startswith("job.yaml:3:16: "))
        self.assertIsInstance(error, ValueError)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((type(again), str(again), again.line), (type(error), str(error), 3))

    def test_each_kind_has_its_class(self):
        with self.assertRaises(penstock.NotFoundError):
            penstock.train("nowhere.yaml")
        job = make_job()
        job["devices"][0]["memory"] = "1KiB"
        with self.assertRaises(penstock.DoesNotFitError):
            penstock.train(job)
        bad = X.copy()
        bad[3, 2] = np.nan
        with self.assertRaisesRegex(penstock.NotFiniteError, "example 3 .* has the value -?nan"):
            penstock.train(make_job(bad))
        with self.assertRaisesRegex(penstock.InvalidInputError, "'data.train.labels' has 23 labels"):
            penstock.train(make_job(X, Y[:-1]))
        with self.assertRaisesRegex(penstock.InvalidInputError, "class 7, expected 0 to 2"):
            penstock.train(make_job(X, Y * 0 + 7))
        for inputs, said in [(np.array(["a"] * 24), "numbers"), (X.astype(np.complex64), "complex64|Zf"),
                             (Y.astype(np.uint64), "uint64"), (np.zeros((2,) * 9), "9 dimensions")]:
            with self.assertRaisesRegex(penstock.InvalidInputError, f"data.train.inputs.*({said})"):
                penstock.train(make_job(inputs))
        with self.assertRaises(TypeError):
            penstock.train(3)
        with self.assertRaises(penstock.InvalidInputError):
            penstock.train(make_job(), steps=0)

    def test_a_training_that_is_closed_says_so(self):
        training = penstock.Training(make_job())
        training.close()
        training.close()
        with self.assertRaisesRegex(penstock.InvalidInputError, "closed"):
            training.step()
        self.assertIn("closed", repr(training))

    def test_a_library_that_is_not_there_is_told_with_what_was_tried(self):
        text = """
            import penstock
            try: penstock.train({})
            except penstock.LibraryError as error: print(error)
            """
        said = self.run_python(text, PENSTOCK_LIBRARY="/nowhere/libpenstock.so")
        self.assertRegex(said, r"not found. Tried:\n  /nowhere/libpenstock.so \(PENSTOCK_LIBRARY says so\): .*\n")
        self.assertIn("`make install`", said)
        said = self.run_python(text, PENSTOCK_LIBRARY="")
        if "Tried" in said: # none is installed
            self.assertRegex(said, r"\(beside the module\).*\n.*\(by the system's loader\)")

    def test_messages_are_logged(self):
        job = {**make_job(), "outputs": {"dir": "run"}}
        with self.assertLogs("penstock", "INFO") as logged:
            penstock.train(job).close()
        self.assertEqual(len(logged.output), 1)
        self.assertIn("WARNING:penstock:outputs: only the command writes them", logged.output[0])

    def test_exporting_needs_pytorch(self):
        self.assertIn("export needs PyTorch", self.run_python("""
            sys.modules["torch"] = None
            import penstock
            try: penstock.export(None, None, "net.pt2")
            except penstock.ExportError as error: print(error)
            """))


class Memory(Scratch):
    def test_arrays_live_as_long_as_the_training(self):
        x, y = make_data()
        alive = [weakref.ref(x), weakref.ref(y)]
        training = penstock.Training(make_job(x, y))
        del x, y
        gc.collect()
        noise = [np.full((24, 6), 1e9, np.float32) for _ in range(64)] # where freed memory would be
        self.assertTrue(all(reference() is not None for reference in alive))
        training.run()
        with penstock.train(make_job()) as expected:
            self.assertEqual(losses(training), losses(expected))
        del noise
        training.close()
        gc.collect()
        self.assertTrue(all(reference() is None for reference in alive))

    def test_memory_that_is_lent_cannot_be_moved(self):
        data = bytearray(X.tobytes())
        view = memoryview(data).cast("f", (24, 6))
        with penstock.Training(make_job(view)) as training:
            view.release()
            with self.assertRaises(BufferError):
                data.extend(b"more")
            training.run()
        data.extend(b"more")

    def test_what_nobody_refers_to_is_closed(self):
        before = threading.active_count()
        for _ in range(20):
            penstock.Training(make_job()).step()
        gc.collect()
        self.assertEqual(threading.active_count(), before)

    def test_several_trainings_at_once(self):
        with penstock.train(make_job()) as training:
            expected = losses(training)
        found = []

        def work():
            with penstock.train(make_job()) as training:
                found.append(losses(training))
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 3)


class WithoutNumPy(Scratch):
    def test_plain_python_will_do(self):
        """NumPy is hidden: arrays of Python's own in, memoryviews out."""
        said = self.run_python(f"""
            sys.modules["numpy"] = None
            import array, penstock
            x = memoryview(array.array("f", {X.ravel().tolist()!r})).cast("B").cast("f", (24, 6))
            y = array.array("q", {Y.tolist()!r})
            job = {{**{ {key: value for key, value in make_job().items() if key != "data"} !r},
                   "data": {{"train": {{"inputs": x, "labels": y}}}}}}
            training = penstock.train(job)
            print([step.loss for step in training.steps])
            rows, bias = training.predict(x), training.parameters()["dense/bias"]
            print(rows.shape, rows.format, bias.shape, len(rows.tolist()))
            training.set_parameters({{"dense/bias": array.array("f", [0] * 5)}}, strict=False)
            print(training.parameters()["dense/bias"].tolist())
            try: penstock.train({{**job, "data": {{"train": {{"inputs": [[1.0]], "labels": y}}}}}})
            except penstock.InvalidInputError as error: print(error)
            """).splitlines()
        with penstock.train(make_job()) as expected:
            self.assertEqual(said[0], repr(losses(expected)))
        self.assertEqual(said[1], "(24, 3) f (5,) 24")
        self.assertEqual(said[2], "[0.0, 0.0, 0.0, 0.0, 0.0]")
        self.assertIn("with NumPy installed others are converted", said[3])


class Plans(Scratch):
    class Markup(html.parser.HTMLParser):
        """Whether what is opened is closed, in order."""

        def __init__(self):
            super().__init__()
            self.open, self.texts = [], []

        def handle_starttag(self, tag, attributes):
            self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag, tag

        def handle_data(self, data):
            self.texts.append(data)

    def test_a_plan_tells_stages_memory_and_times(self):
        devices = [{"name": name, "threads": 1, "memory": "1GiB"} for name in ("<a>", "b & c")]
        job = {**make_job(devices=devices), "placement": {"strategy": "round_robin"}}
        plan = penstock.plan(job)
        self.assertEqual(sum(device.nodes for device in plan.devices), sum(stage.nodes for stage in plan.stages))
        self.assertEqual({stage.device for stage in plan.stages}, {"<a>", "b & c"})
        self.assertEqual(plan.devices[0].bytes_limit, 2 ** 30)
        self.assertTrue(all(device.bytes > 0 for device in plan.devices) and plan.step_seconds > 0)
        values = plan.to_dict()
        values["stages"].clear()
        self.assertEqual(len(plan.to_dict()["stages"]), len(plan.stages))
        self.assertIn("round_robin", repr(plan))
        page = self.Markup()
        page.feed(plan._repr_html_())
        self.assertEqual(page.open, [])
        self.assertIn("<a>", page.texts)
        self.assertIn("b & c", page.texts)


class Installing(Scratch):
    def test_the_wheel_has_all_and_its_version(self):
        self.run_python(f"sys.path.insert(0, {str(TOP / 'python')!r}); import build_backend as b; b.build_wheel('.')")
        makefile = (TOP / "Makefile").read_text(encoding="utf-8")
        version = re.search(r"^VERSION := (\S+)$", makefile, re.MULTILINE).group(1)
        with zipfile.ZipFile(f"penstock-{version}-py3-none-any.whl") as wheel:
            names = set(wheel.namelist())
            wheel.extractall("installed")
        self.assertTrue({f"penstock/{path.name}" for path in (TOP / "python/penstock").glob("*.py")} <= names)
        self.assertIn("penstock/py.typed", names)
        said = self.run_python("import penstock; print(penstock.__version__, penstock.__file__)",
                               PYTHONPATH=os.path.abspath("installed"))
        self.assertEqual(said.split()[0], version)
        self.assertIn("installed", said)


class Documents(Scratch):
    def test_recipes_of_the_manual_run(self):
        """All blocks of docs/python.md, one after another; those of PyTorch where one that exports is there."""
        text = (TOP / "docs/python.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertGreater(len(blocks), 5)
        try:
            import torch.export
            has_torch = hasattr(torch.export, "save")
        except ImportError:
            has_torch = False
        names = {"__name__": "__main__"}
        for block in blocks:
            if "torch" in block and not has_torch:
                continue
            exec(compile(block, "docs/python.md", "exec"), names) # pylint: disable=exec-used
        for value in names.values():
            if isinstance(value, penstock.Training):
                value.close()


if __name__ == "__main__":
    unittest.main()
