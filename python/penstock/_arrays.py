"""Arrays of any kind, as the library wants them: an address, an element type and a shape, kept alive.

Whatever gives its memory by Python's buffer protocol will do (NumPy arrays, array.array, memoryviews), and PyTorch's
tensors. Neither NumPy nor PyTorch is imported for that. What has gaps, or elements that the library does not take, is
copied where NumPy or PyTorch can do that.
"""
from __future__ import annotations

import ctypes
import sys
from typing import Any

from . import _errors, _library


class _Buffer(ctypes.Structure):
    """Py_buffer, as Python's stable interface has it."""
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


# Of memoryview.format, without byte order. The sizes of "l" and "L" are the machine's.
_FORMATS = {"?": "bool", "e": "float16", "f": "float32", "d": "float64"}
_SIGNED, _UNSIGNED = "bhilqn", "BHILQN"


def _address(view: memoryview) -> int:
    """Where a view's memory is; read-only memory has no other way to say so."""
    buffer = _Buffer()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
    release = ctypes.pythonapi.PyBuffer_Release
    release.argtypes = [ctypes.POINTER(_Buffer)]
    release.restype = None
    get(view, ctypes.byref(buffer), 0)
    address = buffer.buf
    release(ctypes.byref(buffer))
    return address or 0


def _element_of_format(text: str, size: int) -> str | None:
    order, code = (text[0], text[1:]) if text[:1] in "@=<>!" and text[:1] else ("@", text)
    if order in ">!" and size > 1 and sys.byteorder == "little" or order == "<" and sys.byteorder == "big":
        return None
    if code in _FORMATS:
        return _FORMATS[code]
    if code and code in _SIGNED:
        return f"int{size * 8}"
    return f"uint{size * 8}" if code and code in _UNSIGNED else None


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor of PyTorch, which is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: Any) -> bool:
    """Whether a value in a job is data, and not a setting."""
    if isinstance(value, (str, bytes, bytearray)):
        return False
    if is_tensor(value) or hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
        return getattr(value, "ndim", 1) != 0 or is_tensor(value)
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


class Data:
    """An array that the library may read while this object lives.

    `wanted`: the element type that it is converted to, for a parameter; else it is data, whose first dimension counts
    examples.
    """

    def __init__(self, value: Any, name: str, wanted: str | None = None) -> None:
        self.name = name
        self._wanted = wanted
        self._kept: list[Any] = []
        if is_tensor(value):
            self._take_tensor(value)
        else:
            self._take_buffer(value)
        if wanted is None and not 1 <= len(self.shape) <= _library.RANK_LIMIT:
            raise _errors.InvalidInputError(
                f"{name}: found {len(self.shape)} dimensions, expected 1 to {_library.RANK_LIMIT}, of which the first "
                "counts examples")
        self._shape = (ctypes.c_int64 * len(self.shape))(*self.shape)

    def _take_tensor(self, value: Any) -> None:
        torch = sys.modules["torch"]
        tensor = value.detach()
        if self._wanted is not None:
            tensor = tensor.to(getattr(torch, self._wanted))
        elif tensor.dtype in (torch.float16, torch.bfloat16):
            tensor = tensor.float()
        tensor = tensor.to("cpu").contiguous()
        if hasattr(tensor, "resolve_neg"):
            tensor = tensor.resolve_conj().resolve_neg().contiguous()
        self.element = self._check_element(str(tensor.dtype).replace("torch.", ""))
        self.shape = tuple(tensor.shape)
        self.address = tensor.data_ptr()
        self._kept.append(tensor)

    def _take_buffer(self, value: Any) -> None:
        view = self._view(value)
        element = None if view is None else _element_of_format(view.format, view.itemsize)
        wanted = self._wanted or ("float32" if element == "float16" else element)
        if view is None or not view.c_contiguous or element is None or element != wanted:
            value = self._convert(value, wanted)
            view = memoryview(value)
            element = _element_of_format(view.format, view.itemsize)
        self.element = self._check_element(element or f"type {view.format!r}")
        self.shape = view.shape
        self.address = _address(view) if view.nbytes > 0 else 0
        self._kept.append(view) # which holds the memory, and keeps it from being moved

    @staticmethod
    def _view(value: Any) -> memoryview | None:
        try:
            return memoryview(value)
        except (TypeError, ValueError, BufferError):
            return None

    def _convert(self, value: Any, element: str | None) -> Any:
        """What has gaps, another order of bytes, or is a list: a plain array, by NumPy."""
        try:
            import numpy
        except ImportError:
            raise _errors.InvalidInputError(
                f"{self.name}: found {type(value).__name__}, expected an array in C order of an element type that is "
                "taken as it is; with NumPy installed others are converted") from None
        array = numpy.asarray(value)
        if element is None and not array.dtype.isnative:
            element = array.dtype.newbyteorder("=")
        if array.dtype.kind in "OUSV":
            raise _errors.InvalidInputError(
                f"{self.name}: found {type(value).__name__} of {array.dtype}, expected an array of numbers")
        return numpy.ascontiguousarray(array, dtype=element)

    def _check_element(self, element: str) -> int:
        if element not in _library.ELEMENTS or self._wanted is None and element in ("uint64", "float16", "bfloat16"):
            raise _errors.InvalidInputError(
                f"{self.name}: found elements of {element}, expected bool, integers of at most 63 bits, float32 or "
                "float64")
        return _library.ELEMENTS.index(element)

    def struct(self, name: str) -> _library.Array:
        """As the library takes it; borrows from this object."""
        return _library.make_struct(_library.Array, name=name.encode(), element=self.element, rank=len(self.shape),
                                    shape=self._shape, data=self.address or None)


def pack(arrays: dict[str, Data]) -> ctypes.Array:
    """An array of the library's structs."""
    return (_library.Array * len(arrays))(*(data.struct(name) for name, data in arrays.items()))


def empty(element: int, shape: tuple[int, ...], bytes_count: int) -> tuple[Any, int]:
    """An array to be filled, and its address: NumPy's, or a memoryview where NumPy is not installed."""
    name = _library.ELEMENTS[element]
    try:
        import numpy
    except ImportError:
        memory = bytearray(max(bytes_count, 1))
        address = _address(memoryview(memory))
        code = {"bool": "?", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i",
                "uint64": "Q", "int64": "q", "float16": "e", "bfloat16": "H", "float32": "f", "float64": "d"}[name]
        view = memoryview(memory)[:bytes_count]
        return (view.cast(code, shape) if shape and 0 not in shape else view.cast(code)), address
    array = numpy.empty(shape, dtype="uint16" if name == "bfloat16" else name)
    return array, array.ctypes.data
