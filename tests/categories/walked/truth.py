"""What PyTorch's own objects hold, walked whenever an optimizer has stepped: told beside a recording, which knows the
moment by a phase that is open for nothing."""

import json

import torch

import gpumemprof

WALKS = []
MAPPED = set()  # addresses of storages in mapped files, which are no allocations


def storages(tensors):
    """Bytes of the storages of dense tensors in the host's memory, by address."""
    found = {}
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "cpu":
            continue
        parts = [tensor._indices(), tensor._values()] if tensor.is_sparse else [tensor]
        for part in parts:
            storage = part.untyped_storage()
            if storage.nbytes() and storage.data_ptr() not in MAPPED:
                found[storage.data_ptr()] = storage.nbytes()
    return found


def flat(value):
    """The tensors in lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from flat(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from flat(inner)


def walk(models, optimizers, parameters=(), copies=(), data=(), kept=()):
    """Takes down what there is now. `copies`, `data`, `kept`: containers of copies of weights, of the program's data,
    and of what else it keeps."""
    with torch.no_grad():
        weights = [p for model in models for p in model.parameters()] + list(flat(list(parameters)))
        # What an optimizer steps is a parameter, also of a part that its model has no more.
        weights += [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
        kinds = {
            "parameter": weights,
            "buffer": [b for model in models for b in model.buffers()],
            "gradient": [p.grad for p in weights],
            "optimizer state": [t for o in optimizers for state in o.state.values() for t in flat(state)],
            "weight copy": list(flat(list(copies))),
            "input": list(flat(list(data))),
            "kept": list(flat(list(kept))),
        }
        seen, figures = set(), {}
        for kind, tensors in kinds.items():
            new = {address: size for address, size in storages(tensors).items() if address not in seen}
            seen.update(new)
            figures[kind] = sum(new.values())
    with gpumemprof.phase(f"walk {len(WALKS)}"):
        pass
    WALKS.append(figures)


def watch(models, optimizers, **more):
    """Walks after every step of each of the optimizers."""
    for optimizer in optimizers:
        optimizer.register_step_post_hook(lambda *_: walk(models, optimizers, **more))


def loop(models, optimizer, loss_of, steps=6, set_to_none=True, **more):
    """Trains: `loss_of()` makes the loss."""
    watch(models, [optimizer], **more)
    for _ in range(steps):
        loss_of().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)


def write(path):
    with open(path, "w") as file:
        json.dump(WALKS, file)
