"""Has the recorded process say now and then who holds its tensors (`gpumemprof run --explain-leaks`): after 64 of its
allocations and frees, after twice as many, and so on, and when it ends. What variables of functions hold is gone by the
end; whatever the length of the run, the last look comes after half of it."""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import sys
import threading
from typing import Any

from ._process_start import start_ticks

_FIRST_EVENTS = 64
_MOST_S = 2.0
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class _Looking:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.events = _FIRST_EVENTS
        self.looks: list[dict[str, Any]] = []
        self.call = _CALL(self._called)  # the probe has its address: it must live as long as the process
        self.process = os.getpid()

    def begin(self) -> None:
        self._ask()
        atexit.register(self._look_once)
        os.register_at_fork(after_in_child=self._begin_in_child)

    def _begin_in_child(self) -> None:
        self.events, self.looks, self.process = _FIRST_EVENTS, [], os.getpid()
        self._ask()

    def _ask(self) -> None:
        ask = ctypes.CDLL(None).gpumemprof_call_after
        ask.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        ask.restype = None
        add = ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p)
        ask(self.events, add, ctypes.cast(self.call, ctypes.c_void_p), None)

    def _called(self, argument: object) -> int:
        try:
            self._look_once()
            self.events *= 2
            self._ask()
        except BaseException as error:  # nobody above us could take it
            _raise_later(error)
        return 0

    def _look_once(self) -> None:
        collects = gc.isenabled()
        gc.disable()  # else our own objects would have the program's garbage collected earlier
        try:
            from ._holders_look import look

            self.looks.append(look(_MOST_S))
            # A look may fall into the end of the program, when all is gone: the one that saw most is kept, too.
            most = max(self.looks, key=lambda one: len(one["storages"]))
            self.looks = [one for one in self.looks if one is most or any(one is late for late in self.looks[-2:])]
            self._write()
        except Exception as error:
            _raise_later(error)
        finally:
            if collects:
                gc.enable()

    def _write(self) -> None:
        ticks = start_ticks()
        path = os.path.join(self.folder, f"holders.{self.process}.{ticks}.json")
        text = json.dumps(
            {
                "schema": "gpumemprof.holders/1",
                "pid": self.process,
                "start_ticks": ticks,
                "worker": _is_worker(),
                "looks": self.looks,
            }
        )
        descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(path + ".new", path)
        except OSError:
            os.unlink(path + ".new")


def _is_worker() -> bool:
    """Whether multiprocessing started this process; without it there is no such process."""
    module = sys.modules.get("multiprocessing.process")
    return module is not None and module.parent_process() is not None


def _raise_later(error: BaseException) -> None:
    """What the program's own signal handler raised while we looked is the program's: it comes again where it goes on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_filename.startswith(_OURS):
        return
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(threading.main_thread().ident or 0), ctypes.py_object(type(error))
    )


_looking: _Looking | None = None


def arm(folder: str) -> None:
    """Once a process. Does nothing where the probe is not in it."""
    global _looking
    if _looking is not None or not hasattr(ctypes.CDLL(None), "gpumemprof_call_after"):
        return
    _looking = _Looking(folder)
    _looking.begin()
