"""The command under its second name: the guide's lines, TensorFlow's devices, its page and its help."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import harness
import pytest

PAGE = harness.ROOT / "docs" / "tensorflow" / "commands.md"
GUIDE = harness.ROOT.parent / "shared" / "spec" / "guide.md"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
NO_GPU = not Path("/dev/nvidia0").exists() and not Path("/dev/kfd").exists()


@pytest.fixture(scope="module")
def tfmemprof(tmp_path_factory):
    link = tmp_path_factory.mktemp("bin") / "tfmemprof"
    link.symlink_to(harness.COMMAND)
    return link


def stopped(argv, folder, after_s=1.5):
    """Runs until SIGTERM; (exit code, stdout, stderr)."""
    pipe = subprocess.PIPE
    with subprocess.Popen([str(a) for a in argv], cwd=folder, stdout=pipe, stderr=pipe) as process:
        time.sleep(after_s)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
    return process.returncode, out.decode(), err.decode()


def test_it_speaks_of_tensorflow_under_its_own_name(tfmemprof):
    shown = harness.execute([tfmemprof, "--help"]).ok().stdout.decode()
    assert "TensorFlow program" in shown and "tfmemprof run -- python train.py" in shown
    assert harness.execute([tfmemprof, "--version"]).ok().stdout.startswith(b"tfmemprof ")
    wrong = harness.execute([tfmemprof, "analyze", "/nowhere"])
    assert wrong.rc == 2 and wrong.stderr.startswith(b"tfmemprof: /nowhere: ")
    assert harness.execute([harness.COMMAND, "--version"]).ok().stdout.startswith(b"gpumemprof ")


def test_the_guides_lines_run_as_written(tfmemprof, tmp_path):
    if not GUIDE.is_file():
        pytest.skip(f"no guide at {GUIDE}")
    lines = [line for line in GUIDE.read_text().splitlines() if line.startswith("tfmemprof ")]
    assert len(lines) == 3
    made = harness.execute([tfmemprof, "monitor", "--duration", "0", "--output", tmp_path / "tf_results.json"]).ok()
    assert b"Saved: " in made.stdout
    for line in lines:
        argv = [tfmemprof, *shlex.split(line)[1:]]
        if "3600" in line:
            code, out, err = stopped(argv, tmp_path)
            assert (code, err) == (0, "") and "highest sample" in out
        else:
            harness.execute(argv, cwd=tmp_path).ok()
    report = (tmp_path / "report.md").read_text()
    assert report.startswith("# Memory of tf_results.json\n") and "1 sample" in report


@pytest.mark.skipif(not NO_GPU, reason="this machine has a GPU")
@pytest.mark.parametrize("command", ["monitor", "track", "diagnose"])
def test_a_gpu_that_is_not_there_is_said_once_and_the_cpu_is_measured(tfmemprof, tmp_path, command):
    output = tmp_path / ("bundle" if command == "diagnose" else "out.json")
    duration = ["--duration", "0.3", "--interval", "0.05"]
    # else other recorded programs of this machine are measured, too, each from its first moment on
    one = ["--pid", str(os.getpid())]
    done = harness.execute([tfmemprof, command, "--device", "/GPU:0", *one, *duration, "--output", output], cwd=tmp_path)
    assert done.rc in (0, 2 if command == "diagnose" else 0)
    assert done.stdout.decode().count("/GPU:0 does not exist") == 1
    if command != "diagnose":
        samples = [e for e in json.loads(output.read_text()) if e["event_type"] == "sample"]
        assert len(samples) >= 3 and all(e["device_id"] == -1 and e["allocator_allocated_bytes"] > 0 for e in samples)


@pytest.mark.parametrize("name", ["/CPU:0", "cpu", "/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"])
def test_the_cpu_has_all_of_its_names(tfmemprof, name):
    assert b"Note" not in harness.execute([tfmemprof, "monitor", "--duration", "0", "--device", name]).ok().stdout


@pytest.mark.parametrize("name", ["/TPU:0", "GPU:", "", "GPU:-1", "99999", "/GPU:0x1"])
def test_what_names_no_device_is_a_usage_error_of_one_line(tfmemprof, name):
    done = harness.execute([tfmemprof, "monitor", "--duration", "0", "--device", name])
    if name == "":  # an empty name is none: everything is measured
        return
    assert done.rc == 2 and done.stderr.decode().count("\n") == 1 and b"write /GPU:0 or /CPU:0" in done.stderr


def test_info_names_the_tensorflow_of_the_environment_without_starting_it(tfmemprof, tmp_path):
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    for name in ("tensorflow_cpu-2.21.0", "keras-3.15.1", "jax-0.10.2", "numpy-2.0.0", "notensorflow"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    environment = dict(os.environ, VIRTUAL_ENV=str(tmp_path), TF_GPU_ALLOCATOR="cuda_malloc_async", SECRET="no")
    done = harness.execute([tfmemprof, "info", "--format", "json"], env=environment).ok()
    shown = json.loads(done.stdout)
    assert shown["schema"] == "gpumemprof.info/1"
    assert shown["tensorflow"]["packages"] == {
        "tensorflow_cpu": "2.21.0", "keras": "3.15.1", "jax": "0.10.2",
    }  # fmt: skip
    assert shown["tensorflow"]["folder"] == str(packages)
    assert shown["tensorflow"]["settings"]["TF_GPU_ALLOCATOR"] == "cuda_malloc_async"
    assert "SECRET" not in done.stdout.decode()
    text = harness.execute([tfmemprof, "info"], env=environment).ok().stdout.decode()
    (line,) = [line for line in text.splitlines() if line.startswith("TensorFlow: ")]
    assert line.removeprefix("TensorFlow: ").removesuffix(f", in {packages}").split(", ") in (
        ["tensorflow_cpu 2.21.0", "keras 3.15.1"], ["keras 3.15.1", "tensorflow_cpu 2.21.0"],
    )  # fmt: skip
    assert "Beside it: jax 0.10.2" in text.splitlines()
    assert "tensorflow" not in json.loads(harness.execute([harness.COMMAND, "info", "--format", "json"]).ok().stdout)


def test_a_threshold_is_told_once_and_is_in_the_file(tfmemprof, tmp_path):
    output = tmp_path / "out"
    one = ["--pid", str(os.getpid())]  # else other recorded programs of this machine are watched, too, each with its threshold
    argv = [tfmemprof, "track", *one, "--threshold", "1", "--interval", "0.05", "--duration", "0.3", "--output", output]
    done = harness.execute(argv).ok()
    told = [line for line in done.stdout.decode().splitlines() if "above the threshold of 1.00 MiB" in line]
    assert len(told) == 1
    # Without an ending the file is JSON.
    events = json.loads(output.read_text())
    assert [e["event_type"] for e in events if "above the threshold" in (e["context"] or "")] == ["warning"]


def test_a_report_is_not_written_over_the_input(tfmemprof, tmp_path):
    file = tmp_path / "samples.json"
    harness.execute([tfmemprof, "monitor", "--duration", "0", "--output", file]).ok()
    before = file.read_bytes()
    done = harness.execute([tfmemprof, "analyze", "--input", file, "--report", file])
    assert done.rc == 2 and file.read_bytes() == before


def test_json_on_standard_output_stays_json_alone(tfmemprof, tmp_path):
    file = tmp_path / "samples.json"
    harness.execute([tfmemprof, "monitor", "--duration", "0", "--output", file]).ok()
    done = harness.execute([tfmemprof, "analyze", "--input", file, "--optimize", "--format", "json"]).ok()
    assert json.loads(done.stdout)["schema"] == "gpumemprof.analysis/1"
    assert b"No suggestions" in done.stderr


def test_the_page_has_every_option_that_is_tensorflows_own(tfmemprof):
    page = set(OPTION.findall(PAGE.read_text()))
    own, all_of_ours = set(), set()
    for command in ("run", "info", "monitor", "track", "analyze", "diagnose", "export", "seal"):
        ours = set(OPTION.findall(harness.execute([tfmemprof, command, "--help"]).ok().stdout.decode()))
        theirs = set(OPTION.findall(harness.execute([harness.COMMAND, command, "--help"]).ok().stdout.decode()))
        own |= ours - theirs
        all_of_ours |= ours
    assert not own - page, "in the help, not on the page"
    assert not page - all_of_ours - {"--help"}, "on the page, in no command's help"
