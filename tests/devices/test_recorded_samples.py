"""What `run` samples of the machine: the figures of the fake driver's board, or why there are none."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import harness
import jsonschema
import pytest
from carried_page import CarriedPage

MIB = 1 << 20
BALLAST = 96 * MIB
SCHEMA = json.loads((harness.ROOT / "docs" / "schemas" / "analysis.schema.json").read_text())

# Becomes a user of the GPU: its own PID stands on the board, and it has a file of the name of NVIDIA's library mapped.
# Then it waits until what the driver says is in the file of samples. The driver is asked as soon as such a file is
# mapped, which a PyTorch for CUDA does by itself, so what the samples are to say is there before.
PROGRAM = """
import mmap, os, pathlib, sys, time
board, library = map(pathlib.Path, sys.argv[1:3])
board.write_text(board.read_text().replace("pid: 4101\\n", f"pid: {os.getpid()}\\n"))
ballast = bytearray(int(sys.argv[3]))
import torch
kept = torch.ones(1 << 20)
with open(library, "r+b") as file:
    kept = mmap.mmap(file.fileno(), 4096)
deadline = time.monotonic() + 60
(samples,) = pathlib.Path(sys.argv[4]).glob("*.gms")
while b"NVML" not in samples.read_bytes() and time.monotonic() < deadline:
    time.sleep(0.05)
"""


def analyzed(folder):
    done = harness.execute([harness.COMMAND, "analyze", "--format", "json", folder])
    assert done.rc == 0, repr(done)
    said = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(said)
    return said["device_samples"]


MADE = {}


@pytest.fixture
def gpu_run(machine, tmp_path):
    """A recorded program that uses the GPU of the A100's board; a copy for each test."""
    pytest.importorskip("torch")
    if "gpu_run" in MADE:
        return Path(shutil.copytree(MADE["gpu_run"], tmp_path / "recording"))
    env = machine("a100-80gb")
    library = tmp_path / "libcuda.so.1"
    library.write_bytes(bytes(4096))
    folder = tmp_path / "recording"
    program = [harness.PYTHON, "-c", PROGRAM, str(tmp_path / "board.yaml"), str(library), str(BALLAST), str(folder)]
    done = harness.execute(harness.run_argv(folder, program, ["--quiet"]), env=env)
    assert done.rc == 0, repr(done)
    MADE["gpu_run"] = shutil.copytree(folder, tmp_path / "kept")
    return folder


def test_the_samples_have_the_figures_of_the_board(gpu_run):
    said = analyzed(gpu_run)
    assert said["missing_samples"] == 0 and said["samples"] >= 2 and said["no_devices_because"] is None
    (device,) = said["devices"]
    assert (device["device"], device["name"], device["source"]) == ("nvidia:0", "NVIDIA A100-SXM4-80GB", "NVML")
    assert device["total_bytes"] == 81920 * MIB
    assert device["highest"]["used_bytes"] == (20314 + 633) * MIB
    assert device["highest_of_run"]["run_bytes"] == 17822 * MIB
    assert device["at_peak"]["used_bytes"] == (20314 + 633) * MIB and device["at_refusals"] == []
    assert set(device["timeline"]["used_bytes"]) == {(20314 + 633) * MIB}
    (host,) = said["hosts"]
    assert host["source"] == "/proc" and host["highest_of_run"]["run_bytes"] > BALLAST
    assert said["first_time_ns"] <= host["at_peak"]["time_ns"] <= said["last_time_ns"]


def test_the_samples_in_words_and_on_a_page(gpu_run):
    text = harness.execute([harness.COMMAND, "analyze", gpu_run]).ok().stdout.decode()
    assert "The machine during the run\n  nvidia:0, NVIDIA A100-SXM4-80GB, 80.0 GiB in " in text
    assert "highest: used 20.5 GiB, by this run 17.4 GiB; " in text
    page = CarriedPage(harness.execute([harness.COMMAND, "analyze", "--format", "html", gpu_run]).ok().stdout)
    (section,) = [one for one in page.files[0]["document"]["sections"] if one["title"] == "The machine during the run"]
    charts = {one["title"]: one for one in section["parts"] if one["kind"] == "chart"}
    assert set(charts) == {"nvidia:0", "host"} and charts["nvidia:0"]["limit_bytes"] == 80 << 30
    everybody, own = charts["nvidia:0"]["lines"]
    assert (everybody["name"], own["name"]) == ("used by all processes", "used by this run")
    assert set(everybody["bytes"]) == {(20314 + 633) * MIB}


def test_no_driver_is_asked_for_a_program_that_loads_none(machine, tmp_path):
    torch = pytest.importorskip("torch")
    if torch.version.cuda:
        pytest.skip("this PyTorch has CUDA's run time")
    env = {**machine("a100-80gb"), "FAKE_NVML_BOARD": "/nowhere"}  # the fake says so on stderr when it is opened
    source = "import torch\nkept = torch.ones(1 << 20)"
    done = harness.execute(harness.run_argv(tmp_path / "r", [harness.PYTHON, "-c", source], ["--quiet"]), env=env)
    assert done.rc == 0 and b"fake NVML" not in done.stderr, repr(done)
    said = analyzed(tmp_path / "r")
    assert said["devices"] == []
    assert said["no_devices_because"] == (
        "no process of this run loaded a GPU driver")
    (host,) = said["hosts"]
    assert host["at_refusals"] == [] and host["total_bytes"] > 0


# PyTorch's allocators say it with this function, whose device is two bytes: CPU, no index.
REFUSED = """
import torch
kept = torch.ones(1 << 20)
try:
    torch.empty(1 << 50, dtype=torch.uint8)
except RuntimeError:
    pass
"""


def test_a_refused_request_is_sampled(tmp_path):
    pytest.importorskip("torch")
    done = harness.execute(harness.run_argv(tmp_path / "r", [harness.PYTHON, "-c", REFUSED], ["--quiet"]))
    assert done.rc == 0, repr(done)
    (host,) = analyzed(tmp_path / "r")["hosts"]
    (look,) = host["at_refusals"]
    assert 0 < look["used_bytes"] < host["total_bytes"]
    text = harness.execute([harness.COMMAND, "analyze", tmp_path / "r"]).ok().stdout.decode()
    assert "  after memory was refused: used " in text


def test_a_killed_run_loses_no_sample_that_was_written(tmp_path):
    folder = tmp_path / "r"
    source = "import torch, sys\nkept = torch.ones(1 << 20)\nprint('ready', flush=True)\nsys.stdin.read()"
    waiting = harness.run_argv(folder, [harness.PYTHON, "-c", source], ["--quiet"])
    pytest.importorskip("torch")
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 60
        while (before := analyzed(folder)) is None or before["samples"] < 2:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        run.send_signal(signal.SIGKILL)
        run.wait()
        after = analyzed(folder)
        assert after["samples"] >= before["samples"] and after["missing_samples"] == 0
        run.stdin.close()


def test_a_damaged_file_is_told_and_the_rest_is_shown(gpu_run):
    (samples,) = gpu_run.glob("*.gms")
    data = bytearray(samples.read_bytes())
    data[:8] = b"nonsense"
    os.chmod(samples, 0o600)
    samples.write_bytes(data)
    done = harness.execute([harness.COMMAND, "analyze", "--format", "json", gpu_run])
    said = json.loads(done.stdout)
    assert done.rc == 0 and said["device_samples"] is None and said["devices"]
    assert any("not a gpumemprof recording (at byte 0)" in one["reason"] for one in said["lost"]["reasons"])
