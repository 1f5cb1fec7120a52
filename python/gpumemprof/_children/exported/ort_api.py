"""ONNX Runtime by its C API: its Python module does not tell what its arena holds.

The API is a table of functions whose places never change: what was shipped stays where it is, and new ones come behind.
The places below are those of version 23, the first that tells of an arena's statistics."""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
from collections.abc import Sequence
from typing import Any

from ..error import NoAnswer

_VERSION = 23
_Pointer = ctypes.c_void_p
_Out = ctypes.POINTER(ctypes.c_void_p)
_Names = ctypes.POINTER(ctypes.c_char_p)
_Sizes = ctypes.POINTER(ctypes.c_int64)
_size_t, _int = ctypes.c_size_t, ctypes.c_int

# Place in the table, what it returns (None: a status, or nothing), its arguments.
_FUNCTIONS: dict[str, tuple[int, Any, tuple[Any, ...]]] = {
    "GetErrorMessage": (2, ctypes.c_char_p, (_Pointer,)),
    "CreateEnv": (3, _Pointer, (_int, ctypes.c_char_p, _Out)),
    "CreateSession": (7, _Pointer, (_Pointer, ctypes.c_char_p, _Pointer, _Out)),
    "Run": (9, _Pointer, (_Pointer, _Pointer, _Names, _Out, _size_t, _Names, _size_t, _Out)),
    "CreateSessionOptions": (10, _Pointer, (_Out,)),
    "CreateTensorWithDataAsOrtValue": (49, _Pointer, (_Pointer, _Pointer, _size_t, _Sizes, _size_t, _int, _Out)),
    "CreateCpuMemoryInfo": (69, _Pointer, (_int, _int, _Out)),
    "ReleaseValue": (96, None, (_Pointer,)),
    "CreateAllocator": (131, _Pointer, (_Pointer, _Pointer, _Out)),
    "GetKeyValuePairs": (
        298, None, (_Pointer, ctypes.POINTER(_Names), ctypes.POINTER(_Names), ctypes.POINTER(_size_t)),
    ),
    "ReleaseKeyValuePairs": (300, None, (_Pointer,)),
    "AllocatorGetStats": (319, _Pointer, (_Pointer, _Out)),
}  # fmt: skip
_WARNING = 3  # as ORT_LOGGING_LEVEL_ERROR: what it says below that is nobody's concern here
_ARENA, _DEFAULT_MEMORY = 1, 0

_NEEDED = "install it with pip install onnxruntime"


class _Base(ctypes.Structure):
    _fields_ = [
        ("GetApi", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
        ("GetVersionString", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    ]


def _library() -> str:
    """Found without importing the package, whose module is a runtime of its own and would only take memory."""
    found = importlib.util.find_spec("onnxruntime")
    if found is None or not found.origin:
        raise NoAnswer(f"ONNX Runtime is not installed in this Python, so nothing was measured: {_NEEDED}")
    libraries = glob.glob(os.path.join(glob.escape(os.path.dirname(found.origin)), "capi", "libonnxruntime.so*"))
    if not libraries:
        raise NoAnswer("this ONNX Runtime has no libonnxruntime.so beside its module; 1.23 or newer has one")
    return sorted(libraries)[0]


class Api:
    def __init__(self) -> None:
        library = ctypes.CDLL(_library())
        library.OrtGetApiBase.restype = ctypes.POINTER(_Base)
        base = library.OrtGetApiBase().contents
        self.version = base.GetVersionString().decode(errors="replace")
        # It prints a line of its own where it does not have the version.
        if tuple(int(part) for part in self.version.split(".")[:2] if part.isdigit()) < (1, _VERSION):
            raise NoAnswer(f"ONNX Runtime {self.version} does not report its arena: 1.{_VERSION} is needed")
        table = base.GetApi(_VERSION)
        if not table:
            raise NoAnswer(f"ONNX Runtime {self.version} does not have version {_VERSION} of its C API")
        self._table = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))

    def call(self, name: str, *arguments: Any) -> Any:
        """Raises NoAnswer with the runtime's own words where it returns a status."""
        place, result, types = _FUNCTIONS[name]
        returned = ctypes.CFUNCTYPE(result, *types)(self._table[place])(*arguments)
        if result is not _Pointer:
            return returned
        if returned:
            said = self.call("GetErrorMessage", returned) or b""
            raise NoAnswer(f"ONNX Runtime: {said.decode(errors='replace')}")
        return None

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """What a function makes that returns it through its last argument."""
        out = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(out))
        return out


class Session:
    """A model on the CPU with the runtime's own settings; it lives as long as the process."""

    def __init__(self, api: Api, path: str) -> None:
        self._api = api
        environment = api.made("CreateEnv", _WARNING, b"gpumemprof")
        options = api.made("CreateSessionOptions")
        self._session = api.made("CreateSession", environment, os.fsencode(path), options)
        self._memory = api.made("CreateCpuMemoryInfo", _ARENA, _DEFAULT_MEMORY)
        self._allocator = api.made("CreateAllocator", self._session, self._memory)

    def statistics(self) -> dict[str, int]:
        pairs = self._api.made("AllocatorGetStats", self._allocator)
        keys, values, count = _Names(), _Names(), ctypes.c_size_t()
        references = (ctypes.byref(keys), ctypes.byref(values), ctypes.byref(count))
        self._api.call("GetKeyValuePairs", pairs, *references)
        read = {(keys[i] or b"").decode(): int(values[i] or b"0") for i in range(count.value)}
        self._api.call("ReleaseKeyValuePairs", pairs)
        return read

    def tensor(self, element_type: int, shape: Sequence[int], size_bytes: int) -> tuple[ctypes.c_void_p, Any]:
        """Zeros, and the memory under them, which is the caller's to keep and not the arena's."""
        memory = ctypes.create_string_buffer(max(1, size_bytes))
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        where = ctypes.cast(memory, ctypes.c_void_p)
        kind = "CreateTensorWithDataAsOrtValue"
        return self._api.made(kind, self._memory, where, size_bytes, sizes, len(shape), element_type), memory

    def run(self, inputs: dict[str, ctypes.c_void_p], outputs: Sequence[str]) -> None:
        names = (ctypes.c_char_p * len(inputs))(*(name.encode() for name in inputs))
        values = (ctypes.c_void_p * len(inputs))(*(value.value for value in inputs.values()))
        wanted = (ctypes.c_char_p * len(outputs))(*(name.encode() for name in outputs))
        results = (ctypes.c_void_p * len(outputs))()
        arguments = (names, values, len(inputs), wanted, len(outputs), results)
        self._api.call("Run", self._session, None, *arguments)
        for result in results:
            self._api.call("ReleaseValue", result)
