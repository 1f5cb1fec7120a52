"""Modules and nodes of a backward that runs on a device's own thread of autograd, as a GPU's does: one without Python.

The device is made here, PrivateUse1 in the host's memory. Building it takes a compiler and some seconds.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness

SOURCE = Path(__file__).with_name("device_backend.cc")
BATCH = 40
PROGRAM = """
import os, sys, threading, types
import torch
from torch import nn

class Own(types.ModuleType):
    is_available = is_initialized = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    current_device = staticmethod(lambda: 0)
    _lazy_init = staticmethod(lambda: None)

torch.ops.load_library(sys.argv[1])
torch.utils.rename_privateuse1_backend("own")
torch._register_device_module("own", Own("torch.own"))
model = nn.Sequential(nn.Linear(24, 56), nn.ReLU(), nn.Sequential(nn.Linear(56, 36), nn.Tanh())).to("own:0")
out = model(torch.randn(40, 24).to("own:0"))
out.backward(torch.ones_like(out))
print(threading.get_native_id(), flush=True)
os._exit(0)  # the interpreter's end ends the device's thread in PyTorch's own frames, at times with std::terminate
"""


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    torch = pytest.importorskip("torch")
    folder = Path(torch.__file__).parent
    compiler = shutil.which("g++")
    if compiler is None or not (folder / "include" / "ATen" / "detail" / "PrivateUse1HooksInterface.h").exists():
        pytest.skip("needs g++ and the headers of PyTorch")
    out = tmp_path_factory.mktemp("backend") / "backend.so"
    include = [f"-I{folder / 'include'}", f"-I{folder / 'include/torch/csrc/api/include'}"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    argv = [compiler, "-std=c++20", "-O0", "-w", "-fPIC", "-shared", abi, *include, SOURCE, "-o", out,
            f"-L{folder / 'lib'}", "-lc10", "-ltorch_cpu"]  # fmt: skip
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this release's headers differ: " + next(l for l in done.stderr.splitlines() if "error" in l))
    return out


def label(event, place):
    """The name in the frame of that kind that the recorder adds; None without one."""
    names = [line.removeprefix(place + " ") for line in event["stack"] if line.startswith(place + " ")]
    assert len(names) <= 1, event
    return names[0] if names else None


def test_a_devices_thread_puts_every_block_down_to_its_module_and_node(backend, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    recording = tmp_path / "recording"
    done = harness.record(recording, [sys.executable, program, backend], timeout=300).ok()
    main = int(done.stdout.split()[0])
    events = [e for e in harness.allocs(harness.events(recording)) if e["device"] == "privateuse1:0"]
    other = {e["thread"] for e in events} - {main}
    assert len(other) == 1
    wide, narrow, weights = 4 * BATCH * 56, 4 * BATCH * 36, (4 * 24 * 56, 4 * 56 * 36)
    forward = [(e["size_bytes"], label(e, "<torch module>")) for e in events if e["thread"] == main]
    assert [e for e in forward if e[1]] == [(wide, "Sequential.0"), (wide, "Sequential.1"), (narrow, "Sequential.2.0"), (narrow, "Sequential.2.1")]
    backward = [e for e in events if e["thread"] != main]
    assert not [line for e in backward for line in e["stack"] if ".py:" in line]
    found = [(e["size_bytes"], label(e, "<torch module>"), label(e, "<torch backward>")) for e in backward]
    assert found == [
        (narrow, "Sequential.2.1", "TanhBackward0"),
        (wide, "Sequential.2.0", "AddmmBackward0"), (weights[1], "Sequential.2.0", "AddmmBackward0"),
        (4 * 36, "Sequential.2.0", "AddmmBackward0"),
        (wide, "Sequential.1", "ReluBackward0"),
        (weights[0], "Sequential.0", "AddmmBackward0"), (4 * 56, "Sequential.0", "AddmmBackward0"),  # the input needs no gradient
    ]  # fmt: skip
