"""`gpumemprof calibrate` on this machine's GPU: `make gpu-test`. Held against PyTorch's own counters and cuBLAS's word."""

import json

import pytest
from test_cuda_recording import why_no_cuda

import harness

pytestmark = pytest.mark.gpu
MIB = 1 << 20


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    if reason := why_no_cuda():
        pytest.skip(reason)
    path = tmp_path_factory.mktemp("calibrate") / "gpu.json"
    done = harness.execute([harness.COMMAND, "calibrate", "-o", path], timeout=120).ok()
    assert "CUDA context" in done.stdout.decode()
    return path


def test_what_is_measured_is_plausible_and_whole(calibration):
    import torch

    found = json.loads(calibration.read_text())
    assert found["device"] == torch.cuda.get_device_name(0) and found["torch"] == torch.__version__
    # A context is hundreds of MiB on every board since Volta, libraries' handles are less than a GiB.
    assert 100 * MIB < found["context_bytes"] < 2048 * MIB
    assert 0 <= found["cublas_bytes"] < 1024 * MIB and 0 <= found["cudnn_bytes"] < 1024 * MIB
    # PyTorch's own default: one workspace of 32 MiB on Hopper, else of 8,519,680 bytes.
    major = torch.cuda.get_device_capability(0)[0]
    assert found["product_workspace_bytes"] == (32 * MIB if major == 9 else 8_519_680) or major > 9
    assert found["convolution"]["output_bytes"] == 8 * 64 * 56 * 56 * 4


def test_it_is_the_same_the_second_time(calibration, tmp_path):
    first = json.loads(calibration.read_text())
    harness.execute([harness.COMMAND, "calibrate", "-o", tmp_path / "again.json"], timeout=120).ok()
    second = json.loads((tmp_path / "again.json").read_text())
    for name in ("context_bytes", "cublas_bytes", "cudnn_bytes"):
        assert abs(first[name] - second[name]) <= 4 * MIB, name  # pages of 2 MiB


def test_an_estimate_uses_it(calibration, tmp_path):
    trace = tmp_path / "one.trace"
    trace.write_text('gpumemprof-estimate 1\n{"batch":2,"torch":"2.6.0"}\np forward\na 0 1048576 0 - 0\ne 2\n')
    words = [harness.COMMAND, "estimate", "--trace", trace, "--calibration", calibration, "--format", "json"]
    peaks = json.loads(harness.execute(words).ok().stdout)["peaks"]
    found = json.loads(calibration.read_text())
    constant = sum(found[name] for name in ("context_bytes", "cublas_bytes", "cudnn_bytes"))
    assert peaks["device"]["expected_bytes"] - peaks["reserved"]["expected_bytes"] == constant
