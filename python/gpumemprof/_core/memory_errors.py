"""Whether an exception means that memory ran out, and which one ended the main thread, decided without running code of
the program: no `__str__`, no property, no metaclass of it is called."""

from __future__ import annotations

import sys

PATTERNS = (
    "cuda out of memory", "hip out of memory", "out of memory", "resource exhausted", "failed to allocate",
    "allocation failed", "not enough memory", "can't allocate memory", "cannot allocate memory",
)  # fmt: skip
_MAX_CAUSES = 8
_KEPT = ("message", "_message")
_TYPE, _EXCEPTION = type.__dict__, BaseException.__dict__
_printed = 0  # id of the exception that Python printed last
_names_of = _TYPE["__mro__"].__get__, _TYPE["__name__"].__get__, _TYPE["__module__"].__get__


def oom_reason(error: BaseException | None) -> str | None:
    """By its type (PyTorch's OutOfMemoryError, TensorFlow's ResourceExhaustedError, Python's MemoryError), else by the words
    that it was made with, else by the exception that it was raised from. A KeyboardInterrupt says nothing of memory."""
    error = oom_error(error)
    return None if error is None else _reason(error)


def oom_error(error: BaseException | None) -> BaseException | None:
    """Of an exception and those that it was raised from, the first that means that memory ran out."""
    for _ in range(_MAX_CAUSES):
        if not issubclass(type(error), Exception):
            break
        if _reason(error) is not None:
            return error
        error = _EXCEPTION["__cause__"].__get__(error)
    return None


def message_of(error: BaseException) -> str:
    """The texts that it was made with; of an error that has none, as TensorFlow's, the text that it keeps as its message."""
    texts = [one for one in _EXCEPTION["args"].__get__(error) if type(one) is str]
    if not texts:
        kept = _EXCEPTION["__dict__"].__get__(error)  # `message` is a property there: it would run
        texts = [text for key, text in kept.items() if type(key) is str and key in _KEPT and type(text) is str][:1]
    return " ".join(texts)


def _reason(error: BaseException | None) -> str | None:
    mro_of, name_of, module_of = _names_of
    for kind in mro_of(type(error)):
        name, module = name_of(kind), module_of(kind)
        if name == "OutOfMemoryError" and type(module) is str and module.split(".")[0] == "torch":
            return "torch.cuda.OutOfMemoryError"
        if name.lower().endswith("resourceexhaustederror"):
            return "tensorflow.ResourceExhaustedError"
        if kind is MemoryError:
            return "MemoryError"
    message = message_of(error).lower()  # type: ignore[arg-type]
    found = next((pattern for pattern in PATTERNS if pattern in message), None)
    return f"message_pattern:{found}" if found else None


def note_printed(error: BaseException) -> None:
    """Python is about to print it, as nobody in the main thread caught it."""
    global _printed
    _printed = id(error)


def ended_by() -> BaseException | None:
    """To be asked as the process ends. Python keeps it, and the variables of the functions that it left, as `sys.last_value`
    until the process is gone. None where it ends without one; what a notebook keeps there of its cells was not printed by Python."""
    error: BaseException | None = sys.__dict__.get("last_value")
    return error if error is not None and id(error) == _printed else None
