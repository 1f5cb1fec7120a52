"""Runs a training loop and says from PyTorch itself what memory is there, or only runs it.

Two moments of the last step count: the end of its forward and the end of its backward. With the argument `count` the
last forward runs with hooks that see what autograd saves, and the figures are printed; without it no hook is there, and
the moments are phases, so that a recording knows them.
"""

import contextlib
import json
import sys

import torch

import gpumemprof

COUNTING = sys.argv[1:] == ["count"]


def storages(tensors):
    """By address, the bytes of the storages of what are tensors."""
    found = {}
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().nbytes():
            found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    return found


def state_of(optimizer):
    """All tensors that an optimizer keeps."""
    flat, more = [], [list(state.values()) for state in optimizer.state.values()]
    while more:
        for value in more.pop():
            flat.append(value) if isinstance(value, torch.Tensor) else None
            more.append(value) if isinstance(value, (list, tuple)) else None
    return flat


def train(model, optimizer, batch, loss_of, steps=4, parts=1, context=contextlib.nullcontext):
    """`batch()` makes a tuple of tensors, `loss_of(model, *batch)` the loss; gradients of `parts` batches add up."""
    figures = {}
    for step in range(steps):
        for part in range(parts):
            is_measured = step == steps - 1 and part == parts - 1
            data = batch()
            saved = {}

            def keep(tensor):
                saved.update(storages([tensor]))
                return tensor

            hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
            with hooks if COUNTING and is_measured else contextlib.nullcontext():
                with context():
                    loss = loss_of(model, *data)
            if is_measured:
                with gpumemprof.phase("end of forward"):
                    parameters, buffers = storages(model.parameters()), storages(model.buffers())
                    inputs = storages(data)
                    for known in (*parameters, *buffers, *inputs):
                        saved.pop(known, None)
                    figures = {
                        "parameter": sum(parameters.values()),
                        "buffer": sum(buffers.values()),
                        "optimizer state": sum(storages(state_of(optimizer)).values()),
                        "activation": sum(saved.values()),
                    }
            loss.backward()
            if is_measured:
                with gpumemprof.phase("end of backward"):
                    figures["gradient"] = sum(storages(p.grad for p in model.parameters()).values())
            del data
        optimizer.step()
        optimizer.zero_grad()
    print(json.dumps(figures) if COUNTING else float(loss))
