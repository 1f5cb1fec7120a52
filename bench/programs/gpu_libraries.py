"""Uses one of the libraries and forms of memory that a device's sum has to explain, then rests while `run` samples.

gpu_libraries.py plain|cudnn|nccl|graphs|pools|expandable|cufft|triton|jax|cupy
"""

import os
import sys
import time

WHAT = sys.argv[1]
SETTINGS = {"pools": "backend:cudaMallocAsync", "expandable": "expandable_segments:True"}
if WHAT in SETTINGS:
    os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = SETTINGS[WHAT]

if WHAT not in ("jax", "cupy"):
    import torch


def train():
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(6)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for rows in (256, 1024, 700, 300):
        optimizer.zero_grad()
        model(torch.randn(rows, 2048, device="cuda")).square().mean().backward()
        optimizer.step()
    return model


def cudnn():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 7, 2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(64, 256, 3),
        torch.nn.ReLU(),
        torch.nn.Conv2d(256, 64, 1),
    ).cuda()
    model(torch.randn(32, 3, 224, 224, device="cuda")).mean().backward()
    return model


def nccl():
    import torch.distributed as dist

    dist.init_process_group(
        "nccl", init_method="tcp://127.0.0.1:29533", rank=0, world_size=1, device_id=torch.device("cuda:0")
    )
    values = torch.ones(1 << 24, device="cuda")
    for _ in range(3):
        dist.all_reduce(values)
    return values


def graphs():
    model, rows = train(), torch.randn(256, 2048, device="cuda")
    with torch.no_grad(), torch.cuda.graph(graph := torch.cuda.CUDAGraph()):
        out = model(rows)
    for _ in range(10):
        graph.replay()
    return model, graph, out


def triton():
    work = torch.compile(lambda x: (x.sin() + x.cos()).relu().sum(0))
    return work(torch.randn(1 << 12, 1 << 12, device="cuda"))


def cufft():
    return torch.fft.fft2(torch.randn(64, 512, 512, device="cuda"))


def jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax

    values = jax.random.normal(jax.random.key(0), (4096, 4096))
    return (values @ values).block_until_ready()


def cupy():
    import cupy

    values = cupy.random.rand(4096, 4096, dtype=cupy.float32)
    out = values @ values
    cupy.cuda.runtime.deviceSynchronize()
    return out


USES = {"cudnn": cudnn, "nccl": nccl, "graphs": graphs, "triton": triton, "cufft": cufft, "jax": jax, "cupy": cupy}
kept = USES.get(WHAT, train)()
if WHAT not in ("jax", "cupy"):
    torch.cuda.synchronize()
    torch.cuda.mem_get_info()
time.sleep(2.6)
if WHAT == "nccl":
    torch.distributed.destroy_process_group()
