"""Trains a little with PyTorch where there is one, and prints all that a program can see of its interpreter and process, one
JSON object: what it sees by its name. Paths and addresses are left out, as they differ from run to run."""

import atexit
import faulthandler
import gc
import importlib.util
import json
import logging
import os
import pathlib
import random
import resource
import signal
import sys
import threading
import time
import types
import warnings

if importlib.util.find_spec("torch"):
    import torch

    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 16)).sum().backward()
        optimizer.step()
    kept = [torch.empty(100) for _ in range(200)]
    del kept
else:
    torch = None


def text(path):
    return pathlib.Path(path).read_text()


def of_kind(value):
    return f"{type(value).__module__}.{type(value).__name__}"


def named(value):
    return f"{of_kind(value)} {getattr(value, '__module__', None)}.{getattr(value, '__qualname__', None)}"


def threads_of_the_kernel():
    return sorted(text(f"/proc/self/task/{task}/comm") for task in os.listdir("/proc/self/task"))


def open_files():
    kinds = []
    for name in os.listdir("/proc/self/fd"):
        try:
            kinds.append((int(name), os.readlink(f"/proc/self/fd/{name}").partition(":")[0]))
        except OSError:
            continue  # the one of the listing
    return sorted(number for number, kind in kinds if number < 3 or kind != "pipe")


def masks():
    return [line for line in text("/proc/self/status").splitlines() if line.startswith(("SigB", "SigI", "SigC", "Cap", "NoNewPrivs", "Seccomp", "Umask"))]


def handled():
    return {number: str(signal.getsignal(number)) for number in range(1, signal.NSIG)}


def hooks_of_optimizers():
    found = sys.modules.get("torch.optim.optimizer")
    return {name: len(value) for name, value in vars(found).items() if name.startswith("_global_optimizer")} if found else {}


def hooks_of_modules():
    found = sys.modules.get("torch.nn.modules.module")
    return {name: len(value) for name, value in vars(found).items() if name.startswith("_global") and hasattr(value, "__len__")} if found else {}


def functions_of_classes():
    if torch is None:
        return []
    classes = torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.optim.Optimizer, torch.optim.SGD, torch.autograd.Function
    return [[f"{kind.__qualname__}.{name} {named(value)}" for name, value in vars(kind).items()] for kind in classes]


def after_fork():
    return sorted(map(str, (one[0] for one in sys.modules["multiprocessing.util"]._afterfork_registry))) \
        if "multiprocessing.util" in sys.modules else []


class Passes(Exception):
    pass


try:
    raise Passes
except Passes as error:
    handling = [str(sys.exc_info()[0]), error.__context__ is None, error.__traceback__.tb_next is None]

SEEN = {
    "sys.excepthook": [sys.excepthook is sys.__excepthook__, named(sys.excepthook), repr(sys.excepthook), sys.excepthook.__doc__],
    "threading.excepthook": [threading.excepthook is threading.__excepthook__, named(threading.excepthook), threading.excepthook.__doc__],
    "sys.unraisablehook": [sys.unraisablehook is sys.__unraisablehook__, named(sys.unraisablehook)],
    "sys.breakpointhook": [sys.breakpointhook is sys.__breakpointhook__, named(sys.displayhook)],
    "sys.meta_path": [named(one) for one in sys.meta_path],
    "sys.path_hooks": [named(one) for one in sys.path_hooks],
    "sys.path": sys.path,
    "sys.path_importer_cache": sorted(sys.path_importer_cache),
    "sys.modules": sorted(sys.modules),
    "sys": sorted(vars(sys)),
    "builtins": [f"{name} {named(value)}" for name, value in sorted(vars(sys.modules["builtins"]).items())],
    "sys.flags": [str(sys.flags), sys.argv[1:], sys.orig_argv[1:], sys.warnoptions, sys._xoptions],
    "sys.exc_info": handling,
    "sys.last_type": [getattr(sys, name, None) for name in ("last_type", "last_value", "last_traceback", "last_exc")],
    "sys.gettrace": [sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile(), sys.getrecursionlimit(),
                     sys.getswitchinterval(), sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth()],
    "sys.monitoring": [sys.monitoring.get_tool(tool) for tool in range(6)] if hasattr(sys, "monitoring") else [],
    "sys._current_frames": [len(sys._current_frames()), sys._getframe().f_back is None],
    "atexit": atexit._ncallbacks(),
    "gc.callbacks": len(gc.callbacks),
    "gc.isenabled": [gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.get_freeze_count(), len(gc.garbage)],
    "gc.get_objects": len(gc.get_objects()),
    "warnings": [[str(one) for one in warnings.filters], sorted(name for name, module in list(sys.modules.items())
                 if isinstance(module, types.ModuleType) and vars(module).get("__warningregistry__"))],
    "logging": [len(logging.root.handlers), logging.root.level, sorted(logging.root.manager.loggerDict)],
    "signal.getsignal": [handled(), signal.getitimer(signal.ITIMER_REAL), faulthandler.is_enabled()],
    "threading.enumerate": [[one.name for one in threading.enumerate()], len(threading._dangling)],
    "threads of the process": threads_of_the_kernel(),
    "open files": open_files(),
    "masks": masks(),
    "limits": [resource.getrlimit(number) for number in range(16)],
    "multiprocessing": after_fork(),
    "random": random.Random(1).random() == random.Random(1).random(),
    "time": time.get_clock_info("monotonic").implementation,
    "os.environ": sorted(os.environ.items()),
    "/proc/self/maps": sorted({line.split()[-1] for line in text("/proc/self/maps").splitlines() if ".so" in line and "/proc" not in line}),
    "hooks of optimizers": hooks_of_optimizers(),
    "hooks of modules": hooks_of_modules(),
    "PyTorch's classes": functions_of_classes(),
    "parent process": text(f"/proc/{os.getppid()}/comm").strip(),
}  # fmt: skip
print(json.dumps(SEEN, default=str))
