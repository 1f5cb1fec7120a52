"""Two processes that train one model. Arguments: which, a folder.

`ddp` keeps all of it in each, `views` has the gradients in the buckets; `fsdp` keeps half, `flat` half as one group.
"""

import contextlib
import os
import sys
import threading
import time

# Before PyTorch, and before anything is started: with other arguments a child would take itself for the one that starts it.
HOW, FOLDER, RANK = (sys.argv[1:] + [""] * 3)[:3]
if len(sys.argv) > 4 or HOW not in ("ddp", "views", "fsdp", "flat") or not os.path.isdir(FOLDER) or RANK not in ("", "0", "1"):
    print("usage: two_ranks.py ddp|views|fsdp|flat FOLDER", file=sys.stderr)
    sys.exit(2)

import torch
import torch.distributed as dist
from torch import nn

import gpumemprof


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lower = nn.Linear(256, 512)
        self.upper = nn.Linear(512, 128)

    def forward(self, x):
        return self.upper(torch.relu(self.lower(x)))


def spread(model, how):
    if how in ("ddp", "views"):
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=how == "views")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    for part in (model,) if how == "flat" else (model.lower, model.upper, model):
        fully_shard(part, mesh=mesh)
    return model


def let_other_threads_finish():
    """Until they all have slept for a while: one of gloo's holds what it sent or received for a moment longer."""
    slept = 0
    while slept < 5:
        states = set()
        for task in set(os.listdir("/proc/self/task")) - {str(threading.get_native_id())}:
            with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/stat") as stat:  # it may have ended
                states.add(stat.read().rpartition(") ")[2][0])
        slept = slept + 1 if states <= {"S"} else 0
        time.sleep(0.002)


def rank(number, how, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=number, world_size=2)
    torch.manual_seed(0)
    model = spread(Net(), how)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for step in range(4):
        loss = model(torch.randn(64, 256)).square().mean()
        loss.backward()
        if step == 3:
            let_other_threads_finish()
            with gpumemprof.phase("end of backward"):
                pass
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    if RANK:
        rank(int(RANK), HOW, FOLDER)
        sys.exit()
    arguments = [sys.executable, __file__, HOW, FOLDER]
    children = [os.spawnv(os.P_NOWAIT, sys.executable, [*arguments, str(number)]) for number in range(2)]
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
