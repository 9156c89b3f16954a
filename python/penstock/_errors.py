"""What goes wrong, as exceptions: a class for each status code of the library."""
from __future__ import annotations

import os


class Error(Exception):
    """An error of Penstock.

    `message` says what is wrong. `file`, `line` and `column` say where, when that is known: `line` and `column` count
    from 1. `key` is the place in a job that was given as a dict: "train.batch".
    """

    def __init__(self, message: str, text: str | None = None, file: str | None = None, line: int | None = None,
                 column: int | None = None, key: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.text = message if text is None else text
        self.file = file
        self.line = line
        self.column = column
        self.key = key

    def __str__(self) -> str:
        return self.text

    def __reduce__(self):
        return type(self), (self.message, self.text, self.file, self.line, self.column, self.key)


class InvalidInputError(Error, ValueError):
    """Something in the job, the model, the data or an argument is wrong."""


class NotFoundError(Error, LookupError):
    """A file, name or entry is not there."""


class UnsupportedError(Error):
    """It is well-formed, but not something Penstock can do."""


class DoesNotFitError(Error, MemoryError):
    """There is no placement or memory plan within the limits."""


class OutOfMemoryError(Error, MemoryError):
    """The system refused memory."""


class InputOutputError(Error):
    """The system refused an operation on a file or socket."""


class NoStorageError(InputOutputError):
    """A disk or place is full, away or read-only now; worth trying again later."""


class CorruptError(Error, ValueError):
    """Bytes contradict themselves: a file is cut short, or a checksum differs."""


class UnavailableError(Error, ConnectionError):
    """A worker is not there now; worth trying again."""


class DeadlineError(Error, TimeoutError):
    """It was waited as long as was allowed."""


class CancelledError(Error):
    """Somebody asked to stop, or another training has taken the workers over."""


class NotFiniteError(Error, ArithmeticError):
    """A loss or gradient is infinite or not a number."""


class InternalError(Error, RuntimeError):
    """Penstock's own mistake."""


class LibraryError(Error, ImportError):
    """libpenstock is not found, or is of another version."""


class ExportError(Error):
    """PyTorch cannot export the model; the cause is PyTorch's own exception."""


# By pen_status_code, in the order of base/status.h.
BY_CODE: list[type[Error] | None] = [
    None, InvalidInputError, NotFoundError, UnsupportedError, DoesNotFitError, OutOfMemoryError, InputOutputError,
    CorruptError, UnavailableError, DeadlineError, CancelledError, NotFiniteError, InternalError,
    NoStorageError]


def make(code: int, message: str, text: str, file: str | None, line: int, column: int,
         keys: dict[int, str] | None) -> Error:
    """An exception of what the library says. `keys` are the places in a job that was a dict, by line."""
    text = text.rstrip("\n")
    text = text[len("error: "):] if text.startswith("error: ") else text
    key = None
    if keys is not None and file is not None and os.path.basename(file) == "job" and line in keys:
        key = keys[line]
        head = f"{file}:{line}:{column}: error: " if column else f"{file}:{line}: error: "
        text = f"job, at {key}: {text[len(head):]}" if text.startswith(head) else text
        file, line, column = None, 0, 0
    kind = BY_CODE[code] if code < len(BY_CODE) else None
    return (kind or Error)(message, text, file, line or None, column or None, key)
