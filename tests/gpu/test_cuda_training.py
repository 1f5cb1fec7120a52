"""Training on a real GPU in the forms that memory takes there: expandable segments, the driver's own pools, CUDA graphs,
and another profiler beside us. Part of `make gpu-test`."""

import json
import os
import sys

import harness
import pytest
from test_cuda_recording import cuda  # noqa: F401

pytestmark = pytest.mark.gpu

MODEL = """
import json, sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
def step(rows):
    optimizer.zero_grad()
    loss = model(torch.randn(rows, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    return loss
"""
TRAINING = MODEL + """
losses = [step(rows).item() for rows in (100, 700, 3000, 200, 5000, 5001)]
torch.cuda.synchronize()
counters = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_allocated(),
            torch.cuda.memory_reserved()]
print(json.dumps([counters, losses]))
"""


@pytest.fixture
def training(record, tmp_path):
    """training(source, settings): what the program printed without us and with us, and the recording's folder."""

    def run(source, settings=""):
        program = tmp_path / "train.py"
        program.write_text(source)
        env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=settings, PYTORCH_ALLOC_CONF=settings)
        if not settings:
            del env["PYTORCH_CUDA_ALLOC_CONF"], env["PYTORCH_ALLOC_CONF"]
        argv = [sys.executable, program]
        plain = json.loads(harness.execute(argv, env=env, timeout=120).ok().stdout)
        done = record(argv, env=env, timeout=120).ok()
        return plain, done.printed()[0], done.folder

    return run


def cuda_of(folder):
    return next(d for d in harness.analysis(folder)["devices"] if d["device"] == "cuda:0")


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_both_peaks_are_pytorchs_and_losses_the_same(training, settings, record_property):
    plain, recorded, folder = training(TRAINING, settings)
    assert recorded == plain, "counters and losses, bit for bit"
    device = cuda_of(folder)
    allocated, reserved, _, _ = recorded[0]
    assert device["peak_allocated"]["allocated_bytes"] == allocated
    assert device["peak_reserved"]["reserved_bytes"] == reserved
    assert bool(device["events"]["segment_map"]) == bool(settings)
    record_property("peak_allocated_bytes", allocated)
    record_property("peak_reserved_bytes", reserved)


def test_pools_of_the_driver_hold_what_the_allocator_says(training, record_property):
    _, recorded, folder = training(TRAINING, "backend:cudaMallocAsync")
    driver = harness.analysis(folder)["driver"]
    assert driver is not None, "the driver was not recorded"
    (device,) = driver["devices"]
    pools = device["peak"]["by_kind"].get("pools", 0)
    record_property("pools_bytes", pools)
    record_property("max_memory_reserved", recorded[0][1])
    assert pools >= recorded[0][0], "at least what tensors had"


def test_memory_of_a_cuda_graph_is_recorded_once_and_its_replays_allocate_nothing(training):
    source = MODEL + """
import gpumemprof
rows = torch.randn(256, 1024, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side), torch.no_grad():
    model(rows)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(graph):
    out = model(rows)
torch.cuda.synchronize()
with gpumemprof.phase("replays"):
    for _ in range(10):
        graph.replay()
    torch.cuda.synchronize()
print(json.dumps([torch.cuda.memory_allocated(), out.double().sum().item()]))
sys.stdout.flush()
"""
    plain, recorded, folder = training(source)
    assert recorded == plain
    moments = {m["kind"]: m for m in harness.analysis(folder)["moments"] if m.get("phase") == "replays"}
    begin, end = moments["phase_begin"]["time_ns"], moments["phase_end"]["time_ns"]
    live = 0
    for event in harness.events(folder):
        if event["device"] != "cuda:0" or event["action"] not in ("alloc", "free_completed", "free_requested"):
            continue
        assert not begin <= event["time_ns"] <= end, event
        if event["time_ns"] < begin:
            live += event["size_bytes"] if event["action"] == "alloc" else 0
            live -= event["size_bytes"] if event["action"] == "free_completed" else 0
    assert live == recorded[0]


def test_pytorchs_profiler_sees_the_same_operators_and_bytes_beside_us(training):
    source = MODEL + """
from torch.profiler import ProfilerActivity, profile
step(64)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as session:
    step(64)
    torch.cuda.synchronize()
rows = [[r.key, r.count, r.self_device_memory_usage, r.self_cpu_memory_usage] for r in session.key_averages()
        if r.key.startswith("aten::")]
print(json.dumps(sorted(rows)))
"""
    plain, recorded, _ = training(source)
    assert recorded == plain and len(plain) > 10
