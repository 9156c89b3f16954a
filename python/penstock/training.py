"""Trainings, and what one asks of a model: steps, evaluations, predictions, parameters."""
from __future__ import annotations

import atexit
import ctypes
import json
import os
import queue
import threading
import weakref
from ctypes import byref
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping

from . import _arrays, _errors, _job, _library
from .plan import Plan


@dataclass(frozen=True)
class Evaluation:
    """Loss and, where it is over classes, accuracy over the evaluation data; `losses` as a step's.

    `metrics` has what the job's `evaluation` asks for besides, by name.
    """
    loss: float
    accuracy: float | None
    examples: int
    seconds: float
    losses: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One step of a training. `loss` is the mean over its examples, before the update.

    `losses` has each of several losses by itself, before its weight, under the name of its output; it is empty where
    the job has one. `evaluation` is that after the step, where the job's `evaluation` says that there is one.
    `metrics` has what that names and a loss can tell of the step's own examples, by name: `top_5`,
    `mean_absolute_error`; none where nothing of them counts, as `accuracy` is None then.
    """
    step: int
    epoch: int
    loss: float
    accuracy: float | None
    examples: int
    learning_rate: float
    seconds: float
    wait_seconds: float
    ends_epoch: bool
    losses: Mapping[str, float] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    is_best: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Epoch:
    """All steps of an epoch, as they went: losses are means over its examples, accuracy over what was judged."""
    epoch: int
    step: int
    loss: float
    accuracy: float | None
    examples: int
    learning_rate: float
    seconds: float
    losses: Mapping[str, float] = field(default_factory=dict)


class _Call:
    """Something to be done on the thread of a training."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None


class _Thread:
    """The one thread that a training is used by, from opening it to closing it.

    Its worker processes end with it, and Ctrl-C reaches Python's main thread, which waits, while the library works.
    """

    def __init__(self) -> None:
        self.cancel = ctypes.c_int(0)
        self.handle = ctypes.c_void_p()
        self.kept: list[Any] = [] # what the library borrows
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
        self._is_over = False
        self._thread.start()

    def _run(self) -> None:
        for call in iter(self._calls.get, None):
            if call.done.is_set():
                continue # Ctrl-C came while it was queued, and it was queued again
            try:
                call.result = call.work()
            except BaseException as error: # noqa: B902 - it is raised where the call was made
                call.error = error
            call.work = None
            call.done.set()
            del call
        if self.handle:
            _library.get().pen_training_close(self.handle)
        self.kept.clear()

    def do(self, work: Callable[[], Any]) -> Any:
        """Does it there, and waits. Ctrl-C asks the library to stop, and is raised once it has."""
        if self._is_over:
            raise _errors.InvalidInputError("the training is closed")
        call = _Call(work)
        interrupt = None
        is_queued = False
        while not call.done.is_set():
            try:
                if not is_queued:
                    self._calls.put(call)
                    is_queued = True
                call.done.wait()
            except BaseException as error:
                self.cancel.value = 1
                interrupt = interrupt or error
        self.cancel.value = 0
        if interrupt is not None:
            raise interrupt
        if call.error is not None:
            raise call.error
        return call.result

    def stop(self) -> None:
        """Closes the training, and waits for that."""
        if self._is_over:
            return
        self._is_over = True
        self.cancel.value = 1
        self._calls.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()


_open: "weakref.WeakSet[_Thread]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for thread in list(_open):
        thread.stop()
    if _library._loaded is not None:
        _library._loaded.pen_messages_redirect(_library.MESSAGE_TAKE(), None)


def _fraction(correct: int, targets: int) -> float | None:
    return correct / targets if targets > 0 else None


def _options(job: _job.Job, **members: Any) -> _library.TrainingOptions:
    options = _library.make_struct(_library.TrainingOptions, job_text=job.text, **members)
    packed = _arrays.pack(job.arrays)
    options.arrays, options.array_count = packed, len(job.arrays)
    options.kept = packed
    return options


def _path(path: str | os.PathLike | None) -> bytes | None:
    return None if path is None else os.fsencode(os.path.expanduser(path))


class Training:
    """A training that is open: a job with its model, data and devices.

    Iterating does its steps. It may be evaluated, asked for predictions and parameters, and saved at any time. Close
    it, or use it in a `with` statement, and its memory and worker processes are gone; so they are when nobody refers to
    it any more.

    job         the path of a job, or a dict that says what a job says; arrays may stand for files in it
    arrays      by name, for a job that has `format: arrays`
    parameters  a safetensors file to start from, in place of those in the model's file
    steps       stop after so many, whatever the job says
    continues   go on from the newest checkpoint in the job's folder of those
    overwrite   forget the checkpoints there
    insecure    reach workers on other machines without TLS
    worker      the command `penstock` that is started for devices with `host: localhost`
    folder      what paths in a dict are relative to, in place of the current folder
    inference   no steps: needs no training data, and no memory for gradients
    """

    def __init__(self, job: str | os.PathLike | Mapping[str, Any], *, arrays: Mapping[str, Any] | None = None,
                 parameters: str | os.PathLike | None = None, steps: int | None = None, continues: bool = False,
                 overwrite: bool = False, insecure: bool = False, worker: str | os.PathLike | None = None,
                 folder: str | os.PathLike | None = None, inference: bool = False) -> None:
        self._thread: _Thread | None = None
        if steps is not None and steps < 1:
            raise _errors.InvalidInputError(f"steps: found {steps}, expected at least 1")
        library = _library.get()
        described = _job.Job(job, arrays, folder)
        self._keys = described.keys
        self.steps: list[Step] = []
        self._judged: list[tuple[int, int]] = [] # of each step: right answers, and predictions judged
        self.epochs: list[Epoch] = []
        self.evaluation: Evaluation | None = None
        self._names: dict[str, tuple[int, _library.TensorInfo]] | None = None
        self._losses: list[str] | None = None
        thread = _Thread()
        options = _options(described, parameters=_path(parameters), step_limit=steps or 0, continues=continues,
                           overwrites=overwrite, insecure=insecure, worker_program=_path(worker), inference=inference,
                           cancel=ctypes.pointer(thread.cancel))
        thread.kept += [described, options]

        def work() -> None:
            _library.check(library.pen_training_open(described.path, byref(options), byref(thread.handle)), self._keys)

        try:
            thread.do(work)
        except BaseException:
            thread.stop()
            raise
        self._thread = thread
        _open.add(thread)
        self._finalizer = weakref.finalize(self, thread.stop)
        self._finalizer.atexit = False # _close_all does that

    # ---- life

    def close(self) -> None:
        """Ends it: threads, memory and worker processes. What was computed stays."""
        self._finalizer()

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._finalizer.alive else "closed"
        return f"<penstock.Training: {len(self.steps)} steps done, {state}>"

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(_library.get(), name)
        thread = self._thread
        thread.do(lambda: _library.check(function(thread.handle, *arguments), self._keys))

    # ---- steps

    @property
    def step_count(self) -> int:
        """How many steps there are in all."""
        thread = self._thread
        return thread.do(lambda: _library.get().pen_training_step_count(thread.handle))

    def step(self) -> Step | None:
        """Does one step; None when all are done. A step that Ctrl-C comes in is done, and is one of `steps`."""
        thread = self._thread

        def work() -> Step | None: # notes it there, too, where no Ctrl-C comes between
            report = _library.make_struct(_library.StepReport)
            more = ctypes.c_bool()
            status = _library.get().pen_training_step(thread.handle, byref(report), byref(more))
            step = self._note_step(report) if more.value and report.step > 0 else None
            _library.check(status, self._keys)
            return step
        return thread.do(work)

    def _note_step(self, report: _library.StepReport) -> Step:
        step = Step(step=report.step, epoch=report.epoch, loss=report.loss,
                    accuracy=_fraction(report.correct_count, report.target_count), examples=report.example_count,
                    learning_rate=report.learning_rate, seconds=report.seconds, wait_seconds=report.wait_seconds,
                    ends_epoch=report.ends_epoch, losses=self._name_losses(report.losses),
                    evaluation=self._name_evaluation(report), is_best=report.is_best,
                    metrics=self._read_metrics("pen_training_get_step_metric"))
        self.steps.append(step)
        self._judged.append((report.correct_count, report.target_count))
        if step.ends_epoch:
            self.epochs.append(self._sum_epoch(step))
        return step

    def _name_evaluation(self, report: _library.StepReport) -> Evaluation | None:
        if not report.is_evaluated:
            return None
        return Evaluation(loss=report.evaluation_loss,
                          accuracy=_fraction(report.evaluation_correct_count, report.evaluation_target_count),
                          examples=report.evaluation_example_count, seconds=report.evaluation_seconds,
                          losses=self._name_losses(report.evaluation_losses), metrics=self._read_metrics())

    def _read_metrics(self, function: str = "pen_training_get_metric") -> dict[str, float]:
        """Those of the last evaluation, or of the last step. On the training's thread."""
        metrics, value, get = {}, ctypes.c_double(), getattr(_library.get(), function)
        while (name := get(self._thread.handle, len(metrics), byref(value))):
            metrics[name.decode()] = value.value
        return metrics

    def _name_losses(self, losses: Any) -> dict[str, float]:
        """The losses of a report by name. On the training's thread."""
        if self._losses is None:
            library, handle = _library.get(), self._thread.handle
            self._losses = [library.pen_training_loss_name(handle, i).decode()
                            for i in range(library.pen_training_loss_count(handle))]
        return dict(zip(self._losses, losses))

    def _sum_epoch(self, last: Step) -> Epoch:
        steps = []
        for step in reversed(self.steps):
            if step.epoch != last.epoch:
                break
            steps.append(step)
        examples = sum(step.examples for step in steps)
        correct, judged = map(sum, zip(*self._judged[-len(steps):]))
        losses = {name: sum(step.losses[name] * step.examples for step in steps) / examples for name in last.losses}
        return Epoch(epoch=last.epoch, step=last.step, examples=examples, losses=losses,
                     accuracy=_fraction(correct, judged),
                     loss=sum(step.loss * step.examples for step in steps) / examples,
                     learning_rate=last.learning_rate, seconds=sum(step.seconds + step.wait_seconds for step in steps))

    def __iter__(self) -> Iterator[Step]:
        while True:
            step = self.step()
            if step is None:
                return
            yield step

    def run(self, on_step: Callable[[Step], Any] | None = None, on_epoch: Callable[[Epoch], Any] | None = None) -> None:
        """Does all steps that are left. A callback that returns False ends it early.

        On Ctrl-C the step under way is finished, a checkpoint is kept if the job has a folder for them, and
        KeyboardInterrupt is raised. The training stays open: it may be evaluated, saved, and run on.
        """
        try:
            for step in self:
                if on_step is not None and on_step(step) is False:
                    break
                if step.ends_epoch and on_epoch is not None and on_epoch(self.epochs[-1]) is False:
                    break
            else:
                return
        except KeyboardInterrupt:
            self._call("pen_training_keep")
            raise
        self._call("pen_training_keep")

    # ---- what comes of it

    def evaluate(self) -> Evaluation:
        """Loss and accuracy over the job's evaluation data, with the parameters as they are now."""
        thread = self._thread

        def work() -> Evaluation:
            report = _library.make_struct(_library.EvaluationReport)
            _library.check(_library.get().pen_training_evaluate(thread.handle, byref(report)), self._keys)
            return Evaluation(loss=report.loss, accuracy=_fraction(report.correct_count, report.target_count),
                              examples=report.example_count, seconds=report.seconds,
                              losses=self._name_losses(report.losses), metrics=self._read_metrics())
        return thread.do(work)

    def predict(self, inputs: Any = None, output: str | None = None) -> Any:
        """The model's output, a row for each example, as a NumPy array (without NumPy, a memoryview).

        inputs  an array, or a dict of arrays by the model's inputs; None: the job's evaluation data. The job's
                normalization is applied to them, as to its training data
        output  its name; None: the first
        """
        named = inputs if isinstance(inputs, Mapping) else {} if inputs is None else {"": inputs}
        data = {name: _arrays.Data(value, f"inputs['{name}']" if name else "inputs") for name, value in named.items()}
        packed = _arrays.pack(data)
        name = None if output is None else output.encode()
        info = _library.make_struct(_library.TensorInfo)
        self._call("pen_training_describe_output", name, packed, len(data), byref(info))
        rows, address = _arrays.empty(info.element, tuple(info.shape[:info.rank]), info.bytes)
        self._call("pen_training_predict", name, packed, len(data), address, info.bytes)
        return rows

    def _tensors(self) -> dict[str, tuple[int, _library.TensorInfo]]:
        if self._names is None:
            count = ctypes.c_uint32()
            self._call("pen_training_count_tensors", byref(count))
            names = {}
            for index in range(count.value):
                info = _library.make_struct(_library.TensorInfo)
                self._call("pen_training_describe_tensor", index, byref(info))
                names[info.name.decode()] = (index, info)
            self._names = names
        return self._names

    def parameters(self) -> dict[str, Any]:
        """All parameters and running statistics as they are now, by name: NumPy arrays (without NumPy, memoryviews).

        They are copies: where a plan has put them, they lie on several devices, maybe of other machines, and the next
        step moves them in place. `torch.from_dlpack` and the like take the arrays without a further copy.
        """
        values = {}
        for name, (index, info) in self._tensors().items():
            values[name], address = _arrays.empty(info.element, tuple(info.shape[:info.rank]), info.bytes)
            self._call("pen_training_read_tensor", index, address, info.bytes)
        return values

    def state_dict(self) -> dict[str, Any]:
        """The same as PyTorch's tensors, which share the memory of the arrays, for `load_state_dict`."""
        import torch
        values = {}
        for name, (index, info) in self._tensors().items():
            kind = getattr(torch, _library.ELEMENTS[info.element])
            values[name] = torch.empty(tuple(info.shape[:info.rank]), dtype=kind)
            self._call("pen_training_read_tensor", index, values[name].data_ptr(), info.bytes)
        return values

    def set_parameters(self, values: Mapping[str, Any], strict: bool = True) -> None:
        """Sets parameters by name, from arrays or tensors. `strict`: all of them, and nothing else."""
        tensors = self._tensors()
        unknown = [name for name in values if name not in tensors]
        missing = [name for name in tensors if name not in values]
        if unknown or (strict and missing):
            said = [f"the model has no {', '.join(map(repr, unknown[:5]))}"] if unknown else []
            said += [f"there is no value for {', '.join(map(repr, missing[:5]))}"] if strict and missing else []
            raise _errors.InvalidInputError(f"{'; '.join(said)}{'' if strict else ' (strict is False)'}")
        taken = {name: self._check_value(name, value) for name, value in values.items()} # all, before the first is set
        for name, data in taken.items():
            index, info = tensors[name]
            self._call("pen_training_write_tensor", index, data.address or None, info.bytes)

    def _check_value(self, name: str, value: Any) -> _arrays.Data:
        _, info = self._tensors()[name]
        shape = tuple(info.shape[:info.rank])
        data = _arrays.Data(value, name, _library.ELEMENTS[info.element])
        if data.shape != shape:
            raise _errors.InvalidInputError(f"{name}: found the shape {list(data.shape)}, expected {list(shape)}")
        return data

    def save(self, path: str | os.PathLike) -> None:
        """Writes all parameters and running statistics as a safetensors file: the last, or, as `outputs: {from: best}`
        of the job says, those of the best evaluation."""
        self._call("pen_training_save", _path(path))

    def export(self, path: str | os.PathLike) -> None:
        """Writes the trained model; the end of the name says as what: .onnx, .pb, or .pt2 for what came from one."""
        self._call("pen_training_export", _path(path))


def train(job: str | os.PathLike | Mapping[str, Any], *, on_step: Callable[[Step], Any] | None = None,
          on_epoch: Callable[[Epoch], Any] | None = None, **options: Any) -> Training:
    """Trains the model of a job to the end, and evaluates it if the job has evaluation data.

    The result has `steps`, `epochs` and `evaluation`, and may be asked for more. A callback that returns False ends the
    training early. On Ctrl-C KeyboardInterrupt is raised, and nothing is left running. Options are those of Training.
    """
    training = Training(job, **options)
    try:
        training.run(on_step, on_epoch)
        training.evaluation = _evaluate_if_possible(training)
    except BaseException:
        training.close()
        raise
    return training


def _evaluate_if_possible(training: Training) -> Evaluation | None:
    try:
        return training.evaluate()
    except _errors.NotFoundError: # the job has no evaluation data; what is missing was told when it was opened
        return None


def evaluate(job: str | os.PathLike | Mapping[str, Any], **options: Any) -> Evaluation:
    """Loss and accuracy of a job's model over its evaluation data, with `parameters=`. Options: as Training."""
    with Training(job, inference=True, **options) as training:
        return training.evaluate()


def predict(job: str | os.PathLike | Mapping[str, Any], inputs: Any = None, output: str | None = None,
            **options: Any) -> Any:
    """What a job's model, with `parameters=`, gives for inputs, or for the evaluation data. As Training.predict."""
    with Training(job, inference=True, **options) as training:
        return training.predict(inputs, output)


def plan(job: str | os.PathLike | Mapping[str, Any], *, arrays: Mapping[str, Any] | None = None,
         folder: str | os.PathLike | None = None) -> Plan:
    """Which device would run what, and what a step would take. No machine is touched for that."""
    library = _library.get()
    described = _job.Job(job, arrays, folder)
    options = _options(described)
    thread = _Thread()
    text = ctypes.c_void_p()

    def work() -> str:
        _library.check(library.pen_plan_describe(described.path, byref(options), byref(text)), described.keys)
        found = ctypes.string_at(text).decode()
        library.pen_plan_text_destroy(text)
        return found

    try:
        return Plan(json.loads(thread.do(work)))
    finally:
        thread.stop()
