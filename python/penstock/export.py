"""Models of PyTorch as .pt2 files, which a job names as its model."""
from __future__ import annotations

import contextlib
import logging
import os
import re
from typing import Any, Iterator

from . import _errors

# What PyTorch's messages mean, in plain words: looked for in the exception's class and text.
_MEANINGS = [
    (r"GuardOnDataDependentSymNode|data.dependent|Could not guard on|unbacked",
     "the model decides by values that it computes (an `if`, a loop or a size that depends on the data). Take the "
     "decision out of forward, or write it with torch.where or torch.cond"),
    (r"ConstraintViolation|specialized|constraints violated|Not all values of",
     "the model fixes a size that was to stay open, as a rule the batch: by a number in a reshape, an `assert`, or "
     "int(x.shape[0]). Use x.shape[0] as it is, or export with dynamic_batch=False"),
    (r"missing .*argument|takes .* positional arguments|too many positional|unexpected keyword|number of (arguments|inputs)",
     "`args` are not what the model's forward takes: give a tuple with its positional arguments, and the others as "
     "kwargs={...}"),
    (r"FakeTensor|fake tensor|mixing fake|device.*mismatch|different devices",
     "forward uses a tensor that is neither an argument nor a parameter nor a buffer of the model. Register it with "
     "register_buffer"),
    (r"Unsupported|graph break|torch\.compiler|not supported|does not support",
     "forward does something that PyTorch's exporter cannot follow: often a call of NumPy, a generator, or a "
     "library in C"),
]


def _explain(error: BaseException) -> str:
    said = f"{type(error).__name__}: {error}"
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, said, re.IGNORECASE | re.DOTALL):
            return meaning
    return "PyTorch's exporter does not say why in words that are known here"


def _fails_alone(torch: Any, model: Any, args: tuple, kwargs: dict) -> BaseException | None:
    """Whether it is no matter of exporting: forward fails on these arguments anyway."""
    model.eval() # which leaves running statistics alone
    try:
        with torch.no_grad():
            model(*args, **kwargs)
    except Exception as error:
        return error
    return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What PyTorch logs of an export that fails is for its own developers."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def _find_batch(torch: Any, values: Any) -> int | None:
    """The first dimension of the first tensor that has one."""
    for leaf in torch.utils._pytree.tree_leaves(values):
        if isinstance(leaf, torch.Tensor) and leaf.ndim > 0:
            return leaf.shape[0]
    return None


def _double(torch: Any, values: Any) -> Any:
    """A batch of one stands for a constant there, so each example comes twice."""
    def twice(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.ndim > 0 and leaf.shape[0] == 1:
            return torch.cat([leaf, leaf])
        return leaf
    return torch.utils._pytree.tree_map(twice, values)


def _batch_shapes(torch: Any, values: Any, batch: int) -> Any:
    size = torch.export.Dim("batch", min=1)

    def shape(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return None
        return {0: size} if leaf.ndim > 0 and leaf.shape[0] == batch else {}
    return torch.utils._pytree.tree_map(shape, values)


def _dynamic_shapes(torch: Any, model: Any, args: tuple, kwargs: dict, batch: int) -> Any:
    """By the names of forward's parameters, as torch.export takes them whatever the arguments are."""
    import inspect
    bound = inspect.signature(model.forward).bind(*args, **kwargs)
    return {name: _batch_shapes(torch, value, batch) for name, value in bound.arguments.items()}


def _import_torch() -> Any:
    try:
        import torch
        import torch.export
    except ImportError as error:
        raise _errors.ExportError(f"export needs PyTorch: {error}") from error
    if not hasattr(torch.export, "save"):
        raise _errors.ExportError(f"export needs torch.export.save, which PyTorch {torch.__version__} has not: "
                                  "expected 2.9 or later")
    return torch


def _check_arguments(torch: Any, model: Any, args: Any, path: str) -> tuple:
    if not isinstance(model, torch.nn.Module):
        raise _errors.ExportError(f"model: found {type(model).__name__}, expected a torch.nn.Module")
    if not path.endswith(".pt2"):
        raise _errors.ExportError(f"path: found \"{path}\", expected a name that ends in .pt2")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise _errors.ExportError(f"path: there is no folder {folder}")
    return args if isinstance(args, tuple) else (args,)


def export(model: Any, args: Any, path: str | os.PathLike, *, kwargs: dict[str, Any] | None = None,
           dynamic_batch: bool = True, dynamic_shapes: Any = None) -> str:
    """Writes a model of PyTorch, with its parameters, as a .pt2 file that a job can name, and returns the path.

    It is exported in training mode, so that dropout and batch normalization are kept as they train; the model's own
    mode stays. `args` are one example of forward's arguments, a tensor or a tuple; `kwargs` those that go by name.

    dynamic_batch   the first dimension of every tensor that has the size of the first one's stays open
    dynamic_shapes  what stays open, as torch.export.export takes it, in place of that
    """
    torch = _import_torch()
    path = os.path.expanduser(os.fspath(path))
    args = _check_arguments(torch, model, args, path)
    kwargs = dict(kwargs or {})
    was_training = model.training
    model.train()
    try:
        if dynamic_batch and dynamic_shapes is None:
            if _find_batch(torch, (args, kwargs)) == 1:
                args, kwargs = _double(torch, (args, kwargs))
            batch = _find_batch(torch, (args, kwargs))
            if batch is None:
                raise _errors.ExportError("args: found no tensor with a dimension, expected one whose first counts "
                                          "examples; or dynamic_batch=False")
            dynamic_shapes = _dynamic_shapes(torch, model, args, kwargs, batch)
        with _quiet():
            program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
    except _errors.ExportError:
        raise
    except Exception as error:
        own = _fails_alone(torch, model, args, kwargs)
        if own is not None:
            raise _errors.ExportError(f"{type(model).__name__} itself fails on these `args`: {type(own).__name__}: "
                                      f"{_first_line(own)}") from own
        raise _errors.ExportError(f"{type(model).__name__} cannot be exported: {_explain(error)}.\n"
                                  f"PyTorch says: {_first_line(error)}") from error
    finally:
        model.train(was_training)
    torch.export.save(program, path)
    return path
