"""libpenstock: where it is, and what it has. The structs are those of penstock.h; a test compares them."""
from __future__ import annotations

import ctypes
import logging
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t,
                    c_uint32, c_uint64, c_void_p)

from . import _errors

RANK_LIMIT = 8
LOSSES_LIMIT = 16

# By pen_array_element: names as NumPy and PyTorch have them.
ELEMENTS = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
            "float32", "float64"]


class Array(Structure):
    _c_name_ = "pen_array"
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("element", c_int), ("rank", c_uint32),
                ("shape", POINTER(c_int64)), ("data", c_void_p)]


class TensorInfo(Structure):
    _c_name_ = "pen_tensor_info"
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("element", c_int), ("rank", c_uint32),
                ("shape", c_int64 * RANK_LIMIT), ("bytes", c_uint64)]


class TrainingOptions(Structure):
    _c_name_ = "pen_training_options"
    _fields_ = [("struct_size", c_size_t), ("step_limit", c_uint64), ("parameters", c_char_p), ("job_text", c_char_p),
                ("arrays", POINTER(Array)), ("array_count", c_size_t), ("inference", c_bool), ("insecure", c_bool),
                ("continues", c_bool), ("overwrites", c_bool), ("worker_program", c_char_p), ("cancel", POINTER(c_int))]


class StepReport(Structure):
    _c_name_ = "pen_training_step_report"
    _fields_ = [("struct_size", c_size_t), ("step", c_uint64), ("epoch", c_uint64), ("loss", c_double),
                ("example_count", c_uint64), ("target_count", c_uint64), ("correct_count", c_uint64),
                ("learning_rate", c_double), ("seconds", c_double), ("wait_seconds", c_double), ("ends_epoch", c_bool),
                ("losses", c_double * LOSSES_LIMIT), ("is_evaluated", c_bool), ("is_best", c_bool), ("ends", c_bool),
                ("evaluation_loss", c_double), ("evaluation_example_count", c_uint64),
                ("evaluation_target_count", c_uint64), ("evaluation_correct_count", c_uint64),
                ("evaluation_seconds", c_double), ("evaluation_losses", c_double * LOSSES_LIMIT)]


class EvaluationReport(Structure):
    _c_name_ = "pen_training_evaluation"
    _fields_ = [("struct_size", c_size_t), ("example_count", c_uint64), ("loss", c_double), ("target_count", c_uint64),
                ("correct_count", c_uint64), ("seconds", c_double), ("losses", c_double * LOSSES_LIMIT)]


STRUCTS = [Array, TensorInfo, TrainingOptions, StepReport, EvaluationReport]
MESSAGE_TAKE = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)

# name: result, parameters. A pen_status is a pointer.
FUNCTIONS = {
    "pen_version": (c_char_p, []),
    "pen_messages_redirect": (None, [MESSAGE_TAKE, c_void_p]),
    "pen_training_open": (c_void_p, [c_char_p, POINTER(TrainingOptions), POINTER(c_void_p)]),
    "pen_training_close": (None, [c_void_p]),
    "pen_training_step_count": (c_uint64, [c_void_p]),
    "pen_training_loss_count": (c_uint32, [c_void_p]),
    "pen_training_loss_name": (c_char_p, [c_void_p, c_uint32]),
    "pen_training_get_metric": (c_char_p, [c_void_p, c_uint32, POINTER(c_double)]),
    "pen_training_get_step_metric": (c_char_p, [c_void_p, c_uint32, POINTER(c_double)]),
    "pen_training_step": (c_void_p, [c_void_p, POINTER(StepReport), POINTER(c_bool)]),
    "pen_training_keep": (c_void_p, [c_void_p]),
    "pen_training_evaluate": (c_void_p, [c_void_p, POINTER(EvaluationReport)]),
    "pen_training_describe_output": (c_void_p, [c_void_p, c_char_p, POINTER(Array), c_size_t, POINTER(TensorInfo)]),
    "pen_training_predict": (c_void_p, [c_void_p, c_char_p, POINTER(Array), c_size_t, c_void_p, c_uint64]),
    "pen_training_count_tensors": (c_void_p, [c_void_p, POINTER(c_uint32)]),
    "pen_training_describe_tensor": (c_void_p, [c_void_p, c_uint32, POINTER(TensorInfo)]),
    "pen_training_read_tensor": (c_void_p, [c_void_p, c_uint32, c_void_p, c_uint64]),
    "pen_training_write_tensor": (c_void_p, [c_void_p, c_uint32, c_void_p, c_uint64]),
    "pen_training_save": (c_void_p, [c_void_p, c_char_p]),
    "pen_training_export": (c_void_p, [c_void_p, c_char_p]),
    "pen_plan_describe": (c_void_p, [c_char_p, POINTER(TrainingOptions), POINTER(c_void_p)]),
    "pen_plan_text_destroy": (None, [c_void_p]),
    "pen_status_get_code": (c_int, [c_void_p]),
    "pen_status_message": (c_char_p, [c_void_p]),
    "pen_status_position": (c_char_p, [c_void_p, POINTER(c_uint32), POINTER(c_uint32)]),
    "pen_status_format": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "pen_status_ignore": (None, [c_void_p, c_char_p]),
}

FILE_NAME = "libpenstock.so.0"
_loaded: ctypes.CDLL | None = None
_log = logging.getLogger("penstock")
_LEVELS = {b"error": logging.ERROR, b"warning": logging.WARNING, b"note": logging.INFO, b"debug": logging.DEBUG}


@MESSAGE_TAKE
def _take_message(_context, kind, text):
    _log.log(_LEVELS.get(kind, logging.INFO), "%s", text.decode("utf-8", "replace"))


def _candidates() -> list[tuple[str, str]]:
    """(path, why there): the order in which the library is looked for."""
    given = os.environ.get("PENSTOCK_LIBRARY")
    if given:
        return [(given, "PENSTOCK_LIBRARY says so")]
    beside = os.path.dirname(os.path.abspath(__file__))
    return [(os.path.join(beside, FILE_NAME), "beside the module"), (FILE_NAME, "by the system's loader")]


def _load() -> ctypes.CDLL:
    # waiting threads sleep sooner than the OpenMP runtime would have it, as in the command
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    tried = []
    for path, why in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"  {path} ({why}): {error}")
    raise _errors.LibraryError("\n".join([
        "libpenstock is not found. Tried:", *tried,
        "`make install` puts it where the loader looks; `export PENSTOCK_LIBRARY=/path/to/libpenstock.so` names it."]))


def _check_version(library: ctypes.CDLL) -> None:
    from . import __version__
    found = library.pen_version().decode()
    if found.split(".")[:2] == __version__.split(".")[:2]:
        return
    raise _errors.LibraryError(f"libpenstock is of version {found}, this module of {__version__}: expected the same. "
                               f"It is {library._name}")


def get() -> ctypes.CDLL:
    """The library, loaded when first asked for."""
    global _loaded
    if _loaded is not None:
        return _loaded
    library = _load()
    for name, (result, parameters) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise _errors.LibraryError(f"{library._name} has no {name}: it is older than this module") from None
        function.restype, function.argtypes = result, parameters
    _check_version(library)
    library.pen_messages_redirect(_take_message, None)
    _loaded = library
    return library


def make_struct(kind: type[Structure], **members) -> Structure:
    return kind(struct_size=ctypes.sizeof(kind), **members)


def check(status: int | None, keys: dict[int, str] | None = None) -> None:
    """Raises what a status says; it is released."""
    if not status:
        return
    library = get()
    line, column = c_uint32(), c_uint32()
    length = library.pen_status_format(status, None, 0)
    text = ctypes.create_string_buffer(length + 1)
    library.pen_status_format(status, text, length + 1)
    file = library.pen_status_position(status, byref(line), byref(column))
    error = _errors.make(library.pen_status_get_code(status),
                         library.pen_status_message(status).decode("utf-8", "replace"),
                         text.value.decode("utf-8", "replace"), None if file is None else os.fsdecode(file), line.value,
                         column.value, keys)
    library.pen_status_ignore(status, b"raised")
    raise error
