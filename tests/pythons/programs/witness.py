"""What the programs beside this file share: an allocation that keeps Python's own account of its stack."""

import json
import sys

import torch

expected = {}
kept = []


def stack_here(frame):
    """[file, line, name, qualified name] of every frame, the innermost first."""
    result = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        result.append([code.co_filename, frame.f_lineno, code.co_name, name])
        frame = frame.f_back
    return result


def allocate(size):
    """Allocates `size` bytes, a size used nowhere else, and notes the stack of that very line."""
    kept.append(torch.empty(size, dtype=torch.uint8)); expected[size] = stack_here(sys._getframe())
    return size


def report():
    json.dump(expected, sys.stdout)
