"""Two processes that train one model: `ddp` keeps all of it in each, `fsdp` half. Arguments: which, a folder."""

import os
import sys

# Before PyTorch, and before anything is started: with other arguments a child would take itself for the one that starts it.
HOW, FOLDER, RANK = (sys.argv[1:] + [""] * 3)[:3]
if len(sys.argv) > 4 or HOW not in ("ddp", "fsdp") or not os.path.isdir(FOLDER) or RANK not in ("", "0", "1"):
    print("usage: two_ranks.py ddp|fsdp FOLDER", file=sys.stderr)
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
    if how == "ddp":
        return nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=False)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    for part in (model.lower, model.upper, model):
        fully_shard(part, mesh=mesh)
    return model


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
            with gpumemprof.phase("end of backward"):
                pass
        optimizer.step()
        if step < 3:
            optimizer.zero_grad()
    dist.destroy_process_group()
    with gpumemprof.phase("end of training"):
        pass


if __name__ == "__main__":
    if RANK:
        rank(int(RANK), HOW, FOLDER)
        sys.exit()
    arguments = [sys.executable, __file__, HOW, FOLDER]
    children = [os.spawnv(os.P_NOWAIT, sys.executable, [*arguments, str(number)]) for number in range(2)]
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
