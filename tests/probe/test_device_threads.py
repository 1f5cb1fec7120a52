"""Modules and nodes of a backward that runs on a device's own thread of autograd, as a GPU's does: one without Python.

The device is made here: PrivateUse1 in the host's memory. Building it takes a compiler and half a minute.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

import harness
from probe.test_attribution import BATCH, named, recorded

SOURCE = Path(__file__).with_name("device_backend.cc")
assert recorded  # a fixture


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    torch = pytest.importorskip("torch")
    folder = Path(torch.__file__).parent
    compiler = shutil.which("g++")
    if compiler is None or not (folder / "include" / "ATen" / "EmptyTensor.h").exists():
        pytest.skip("needs g++ and the headers of PyTorch")
    out = tmp_path_factory.mktemp("backend") / "backend.so"
    include = [f"-I{folder / 'include'}", f"-I{folder / 'include/torch/csrc/api/include'}"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    argv = [compiler, "-std=c++20", "-O0", "-w", "-fPIC", "-shared", abi, *include, SOURCE, "-o", out,
            f"-L{folder / 'lib'}", "-lc10", "-ltorch_cpu"]  # fmt: skip
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("attach", [False, True], ids=["preloaded", "attached"])
def test_a_devices_thread_puts_every_block_down_to_its_module_and_node(recorded, backend, attach):
    said, raw = recorded("device_thread", attach=attach, DEVICE_BACKEND=str(backend))
    m = said["modules"]
    first, relu, second, tanh = m["0"], m["1"], m["2.0"], m["2.1"]
    wide, narrow = 4 * BATCH * 56, 4 * BATCH * 36
    on_device = [e for e in raw.events if e["action"] == "alloc" and e["device"] != "cpu"]
    print(on_device)
    found = [(e["size_bytes"], named(e, "<torch module>"), named(e, "<torch backward>")) for e in on_device]
    assert found == []
    assert harness
