"""Penstock trains neural networks as a pipeline over devices and machines.

    import penstock
    penstock.export(model, example, "net.pt2")
    training = penstock.train({"model": "net.pt2",
                               "data": {"train": {"inputs": x, "labels": y}},
                               "train": {"loss": "softmax_cross_entropy", "batch": 64,
                                         "optimizer": {"adamw": {"lr": 1e-3}}}})
    model.load_state_dict(training.state_dict())
"""
from ._errors import (CancelledError, CorruptError, DeadlineError, DoesNotFitError, Error, ExportError,
                      InputOutputError, InternalError, InvalidInputError, LibraryError, NoStorageError, NotFiniteError,
                      NotFoundError, OutOfMemoryError, UnavailableError, UnsupportedError)
from ._version import __version__
from .export import export
from .plan import Device, Plan, Stage
from .training import Epoch, Evaluation, Step, Training, evaluate, plan, predict, train

__all__ = [
    "CancelledError", "CorruptError", "DeadlineError", "Device", "DoesNotFitError", "Epoch", "Error", "Evaluation",
    "ExportError", "InputOutputError", "InternalError", "InvalidInputError", "LibraryError", "NoStorageError",
    "NotFiniteError", "NotFoundError", "OutOfMemoryError", "Plan", "Stage", "Step", "Training", "UnavailableError", "UnsupportedError",
    "__version__", "evaluate", "export", "plan", "predict", "train",
]
