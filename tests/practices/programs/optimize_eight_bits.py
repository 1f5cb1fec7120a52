"""AdamW in eight bits by the library of the first argument, where a step has an optimizer's state and little else."""

import importlib
import json
import sys

import gpumemprof
import torch

library = sys.argv[1]
importlib.import_module(library)
for other in {"torchao", "bitsandbytes"} - {library}:
    sys.modules[other] = None  # as if it were not installed
gpumemprof.attach()
torch.manual_seed(0)
model = torch.nn.Linear(1024, 1024, bias=False)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
batch = torch.randn(2, 1024)
result = gpumemprof.optimize(
    model,
    lambda data: torch.nn.functional.mse_loss(model(data), data),
    1,
    batch=batch,
    optimizer=optimizer,
    optimizer_state="8bit",
)


def live(step, count=3):
    """Bytes of state that stay, by the recorder: what a step after the first ones leaves behind the gradients."""
    for _ in range(count):
        step(batch)
    return sum(value.nbytes if type(value) is torch.Tensor else parts(value) for value in tensors(result.optimizer))


def tensors(optimizer):
    return [value for entries in optimizer.state.values() for value in entries.values() if torch.is_tensor(value)]


def parts(value):
    """Of a tensor that is kept in pieces."""
    return sum(getattr(value, name).nbytes for name in value.tensor_attrs)


(measure,) = [one for one in result.measures if one.name == "optimizer state: 8bit"]
before = [parameter.detach().clone() for parameter in model.parameters()]
state = live(result.step)
print(
    json.dumps(
        {
            "applied": measure.applied,
            "saved": measure.saved_bytes,
            "reason": measure.reason,
            "kind": type(result.optimizer).__module__.split(".")[0],
            "state": state,
            "moved": not torch.equal(before[0], next(model.parameters())),
            "text": str(result),
        }
    )
)
