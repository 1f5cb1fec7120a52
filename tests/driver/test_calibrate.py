"""What `gpumemprof calibrate` measures with, on the fake driver: PyTorch is stood in for by calls of the driver.

The fake has its own books of what it handed out, so every figure is known to the byte."""

import json
import sys
import textwrap

import harness
import pytest

MIB = 1 << 20

PROGRAM = """
from driver_calls import *
from gpumemprof._children.calibrate.measure import Meter, measure
from gpumemprof._children.error import NoAnswer

runtime = library("libcudart.so.12")
blas, dnn = library("libcublas.so.12"), library("libcudnn.so.9")
held = [0]  # what an allocator like PyTorch's has

def context():
    runtime.begin()

def products():
    held[0] += 64 * MIB
    runtime.malloc(64 * MIB)  # the allocator's: none of cuBLAS's
    blas.malloc(34 * MIB)

def convolutions():
    image = ctypes.create_string_buffer(b"FAKE-MODULE 3145728")
    dnn.make("cuModuleLoadData", image)
    dnn.malloc(6 * MIB)

order = [("context", context), ("cublas", products), ("cudnn", convolutions)]
try:
    meter = Meter(0)
    readings = measure(order, meter, lambda: held[0])
    end(readings=readings, basis=meter.basis, name=meter.name)
except NoAnswer as error:
    print(json.dumps({"error": str(error)}))
"""


@pytest.fixture
def measured(tmp_path, libraries, machine):
    def run(**options):
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent(PROGRAM))
        done = harness.execute([sys.executable, program, libraries], env=machine(**options)).ok()
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_each_step_has_what_it_took_outside_of_the_allocator(measured):
    said = measured()
    books = said["books"]
    assert said["basis"] == "process" and said["name"].startswith("NVIDIA A100")
    assert said["readings"]["context"] == books["contexts"] > 0
    assert said["readings"]["cublas"] == 34 * MIB
    assert said["readings"]["cudnn"] == 3145728 + 6 * MIB
    assert sum(said["readings"].values()) == said["management"]["process"] - 64 * MIB


def test_without_the_drivers_word_there_is_no_figure(measured):
    assert "libnvidia-ml" in measured(management=False)["error"]


CALIBRATION = {
    "schema": "gpumemprof.calibration/1",
    "device": "NVIDIA X",
    "total_bytes": None,
    "driver": "580.1",
    "torch": "2.13.0",
    "cuda": "13.0",
    "basis": "process",
    "context_bytes": 500 * MIB,
    "cublas_bytes": 34 * MIB,
    "cudnn_bytes": 6 * MIB,
    "product_workspace_bytes": 32 * MIB,
    "convolution": {},
}
SOURCE = "measured by calibrate on NVIDIA X, PyTorch 2.13.0, CUDA 13.0"


def estimate(*words):
    return harness.execute([harness.COMMAND, "estimate", *words])


@pytest.fixture
def calibration(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(CALIBRATION))
    return path


def test_an_estimate_names_the_calibration_as_its_source(tmp_path, calibration):
    trace = tmp_path / "one.trace"
    trace.write_text('gpumemprof-estimate 1\n{"batch":2,"torch":"2.6.0"}\np forward\nm\na 0 1048576 0 - 0\ne 3\n')
    found = json.loads(estimate("--trace", trace, "--calibration", calibration, "--format", "json").ok().stdout)
    # The workspace at the first product is the calibration's, and so is what is added to the allocator's memory.
    assert found["peaks"]["allocated"]["expected_bytes"] == 33 * MIB
    reserved, device = (found["peaks"][name]["expected_bytes"] for name in ("reserved", "device"))
    assert device - reserved == 540 * MIB
    assert [one["source"] for one in found["assumptions"]].count(SOURCE) == 2


def test_a_closed_form_takes_it_as_well(tmp_path, calibration):
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 100})
    )
    found = json.loads(estimate("--config", config, "--calibration", calibration, "--format", "json").ok().stdout)
    peaks = found["peaks"]
    # A context of an unknown size is no more in the interval.
    assert peaks["device"]["low_bytes"] - peaks["reserved"]["low_bytes"] == 540 * MIB
    assert peaks["device"]["high_bytes"] - peaks["reserved"]["high_bytes"] == 540 * MIB
    assert any(SOURCE in one["source"] for one in found["assumptions"])
    assert any("64 MiB" in one["what"] and SOURCE in one["source"] for one in found["assumptions"])


def test_a_file_that_is_no_calibration_is_one_line(tmp_path, calibration):
    for text, said in (("{", "byte"), ("{}", "not a file of gpumemprof calibrate")):
        (tmp_path / "bad.json").write_text(text)
        done = estimate("--model", "timm:resnet18", "--calibration", tmp_path / "bad.json")
        assert done.rc == 2 and said in done.stderr.decode() and done.stderr.count(b"\n") == 1
    both = estimate("--model", "timm:resnet18", "--calibration", calibration, "--device-constant", "1GiB")
    assert both.rc == 2 and "give only one" in both.stderr.decode()


def test_without_a_gpu_it_says_so(tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here: tests/gpu measures on it")
    done = harness.execute([harness.COMMAND, "calibrate", "-o", tmp_path / "out.json"])
    assert done.rc == 2 and done.stdout == b"" and not (tmp_path / "out.json").exists()
    assert done.stderr.decode() == (
        "gpumemprof: calibrate: PyTorch here sees no CUDA device, so there is nothing to calibrate\n"
    )
