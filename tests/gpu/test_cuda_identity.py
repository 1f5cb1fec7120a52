"""The sum of a real device: what it uses is what the recording says it is made of. Part of `make gpu-test`."""

import sys

import pytest
from test_cuda_recording import cuda  # noqa: F401

from harness import analysis

pytestmark = pytest.mark.gpu
MIB = 1 << 20

# A step that uses cuBLAS, and then nothing changes for some samples.
TRAINING = """
import time, torch
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(256, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
torch.cuda.mem_get_info()
time.sleep(3.5)
"""


def test_what_no_part_explains_is_at_most_64_mib(record, tmp_path, record_property):
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    driver = analysis(record([sys.executable, program]).ok().folder)["driver"]
    assert driver is not None, "the driver was not recorded"
    (device,) = driver["devices"]
    if device["sampled"] is None:
        pytest.skip("no sample tells what the process uses: NVML does not list it (another PID namespace, WSL)")
    sampled, of = device["sampled"], device["sampled"]["framework"]
    for name in ("process_used", "contexts", "modules", "libraries", "unexplained"):
        record_property(name, f"{sampled[name + '_bytes'] / MIB:+.1f} MiB" if sampled[name + "_bytes"] is not None else "unknown")
    assert of["allocated_bytes"] + of["cached_bytes"] + of["beside_bytes"] == of["bytes"]
    assert abs(sampled["unexplained_bytes"]) <= 64 * MIB
