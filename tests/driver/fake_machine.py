"""The environment of a machine with the fake driver, and what was recorded on it."""

import json
import os
from pathlib import Path

import harness
import pytest

HERE = Path(__file__).parent
FAKES = Path(os.environ.get("GPUMEMPROF_FAKES", Path(harness.ROOT) / "build" / "tests" / "fakes"))
BOARDS = Path(harness.ROOT) / "tests" / "fakes" / "nvml" / "boards"


def environment(folder, board="a100-80gb", driver=True, management=True):
    """Its state lies in `folder`; without a driver where `driver` is false."""
    if not (FAKES / "cuda").is_dir():
        pytest.skip(f"no fakes in {FAKES}: `make test` builds them")
    folders = [FAKES / "cuda"] if driver else []
    if management:
        folders.append(FAKES / "nvml-3")
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(map(str, folders)),
        "FAKE_NVML_BOARD": str(BOARDS / f"{board}.yaml"),
        "FAKE_GPU_STATE": str(folder / "machine"),
        "PYTHONPATH": str(HERE),
        "TMPDIR": str(folder),
    }


def hip_environment(folder):
    env = environment(folder, driver=False)
    return {**env, "LD_LIBRARY_PATH": f"{FAKES / 'hip'}:{env['LD_LIBRARY_PATH']}"}


def ze_environment(folder, machine="machine"):
    env = environment(folder, board="a100-pair", driver=False)
    return {**env, "LD_LIBRARY_PATH": f"{FAKES / 'level_zero'}:{env['LD_LIBRARY_PATH']}", "FAKE_GPU_STATE": str(folder / machine)}


ZE_BEGIN = """
import struct
torch, sycl = library("libc10_xpu.so"), library("libur_adapter.so")
torch.call("zeInit", 0)
driver, devices = ctypes.c_long(), (ctypes.c_long * 2)()
torch.call("zeDriverGet", ctypes.c_uint32(1), driver)
torch.call("zeDeviceGet", driver.value, ctypes.c_uint32(2), devices)
first, second = devices
"""


class Recorded:
    """A program that was recorded: what it printed, and what the recording says."""

    def __init__(self, folder, done, env):
        self.folder, self.done, self.env = Path(folder), done, env

    def said(self):
        return json.loads(self.done.stdout.splitlines()[-1])

    def analysis(self):
        argv = [harness.COMMAND, "analyze", str(self.folder), "--format", "json"]
        return json.loads(harness.execute(argv, env=self.env).ok().stdout)

    def lost_in_driver(self):
        """How many calls of the driver were lost; no other loss may be there."""
        reasons = self.analysis()["lost"]["reasons"]
        assert all(one["reason"] == "the memory of a driver call could not be determined" for one in reasons)
        return sum(one["events"] for one in reasons)

    def text(self):
        return harness.execute([harness.COMMAND, "analyze", str(self.folder)], env=self.env).ok().stdout.decode()

    def events(self):
        argv = [harness.COMMAND, "export", str(self.folder), "--to", "jsonl"]
        return [json.loads(line) for line in harness.execute(argv, env=self.env).ok().stdout.splitlines()]
