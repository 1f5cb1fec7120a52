"""explain-oom as a user calls it. What the wordings are and what is concluded is tested beside the sources."""

import json
import pickle
import subprocess
import sys

import harness
import pytest
from schema_test import validator

FRAGMENTED = (
    "CUDA out of memory. Tried to allocate 304.00 MiB. GPU 2 has a total capacity of 94.97 GiB of which 218.81 MiB is "
    "free. Including non-PyTorch memory, this process has 93.84 GiB memory in use. Of the allocated memory 81.19 GiB is "
    "allocated by PyTorch, and 10.73 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
    "large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.")


def explain(text, *options, path="-"):
    return subprocess.run([harness.COMMAND, "explain-oom", path, *options], input=text, capture_output=True, timeout=60)


def test_the_verdict_comes_first_and_the_line_to_type(tmp_path):
    log = tmp_path / "train.log"
    log.write_text(f"epoch 1\n[rank1]: torch.OutOfMemoryError: {FRAGMENTED}\n")
    done = explain(b"", path=log)
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "Fragmentation: enough is free, but not in one piece."
    assert lines[1] == f"  CUDA device 2: 304.00 MiB refused ({log}, line 2, rank 1)"
    assert "       export PYTORCH_ALLOC_CONF=expandable_segments:True" in lines


def test_a_device_full_of_live_tensors_is_said_to_be_full():
    text = ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 22.71 GiB already "
            "allocated; 20.00 MiB free; 22.85 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
            "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF")
    lines = explain(text.encode()).stdout.decode().splitlines()
    assert lines[0] == "The device is full: 22.71 GiB of 23.69 GiB are live tensors."
    advice = [line for line in lines if "export PYTORCH_CUDA_ALLOC_CONF" in line or "gpumemprof run" in line]
    assert "gpumemprof run" in advice[0] and "max_split_size_mb" in advice[-1]


def test_the_json_follows_its_schema():
    done = explain((FRAGMENTED + "\nRuntimeError: CUDA error: out of memory\n").encode(), "--format", "json")
    document = json.loads(done.stdout)
    check = validator("oom-message.schema.json")
    check.validate(document)
    assert [m["verdict"]["cause"] for m in document["messages"]] == ["fragmentation", "cannot_tell"]
    assert document["messages"][0]["figures"]["requested"]["bytes"] == 304 * 2**20
    document["messages"][0]["verdict"]["cause"] = "bad luck"
    assert not check.is_valid(document)


@pytest.mark.parametrize("text", [b"", b"all went well\n", b"out of memory", bytes(range(256)) * 4000])
def test_a_text_without_a_message_is_one_line_and_exit_2(text):
    done = explain(text)
    assert done.returncode == 2 and done.stdout == b""
    assert done.stderr.decode().count("\n") == 1 and f"found in {len(text):,} bytes: " in done.stderr.decode()


def test_what_is_no_text_is_refused(tmp_path):
    assert explain(b"", path=tmp_path).returncode == 2
    assert explain(b"", path=tmp_path / "missing").returncode == 2


def test_what_the_installed_pytorch_prints_for_the_host_is_understood():
    """A real refusal: more than the address space."""
    pytest.importorskip("torch")
    program = "import torch; torch.empty(2**46, dtype=torch.uint8)"
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=100)
    if failed.returncode == 0 or b"allocate" not in failed.stderr:
        pytest.skip("this system gives out 64 TiB")
    document = json.loads(explain(failed.stderr, "--format", "json").stdout)
    assert document["messages"][0]["backend"] == "CPU"
    assert document["messages"][0]["figures"]["requested"]["bytes"] == 2**46
    at = document["messages"][0]["asked_at"]
    assert (at["file"], at["line"], at["function"]) == ("<string>", 1, "<module>")


def test_what_the_installed_numpy_prints_is_understood():
    """More than an address space of 47 bits has."""
    done = subprocess.run(
        [sys.executable, "-c", "import numpy; numpy.ones((1 << 45, 8))"], capture_output=True, check=False
    )
    assert b"Unable to allocate 2.00 PiB" in done.stderr
    said = explain(done.stderr).stdout.decode()
    assert said.startswith("More than an ordinary host has, 2.00 PiB, was asked for at once: a shape or a size is probably wrong.\n")
    assert "1. Check the shapes and sizes that the request is made of, at the line that asked for it.\n" in said
    assert "Asked for at <string>:1 <module>" in said and "float64 of shape (35184372088832, 8)" in said
    assert "gpumemprof run --host -- python" in said


@pytest.mark.parametrize("said", [
    "RuntimeError: unable to write to file </torch_4321_1234567_0>: No space left on device (28)",
    "RuntimeError: unable to resize file </torch_4321_1234567_0> to the right size: No space left on device (28)",
    "RuntimeError: unable to allocate shared memory(shm) for file </torch_4321_1234567_0>: No space left on device (28)",
    "RuntimeError: DataLoader worker (pid 41) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
])
def test_shared_memory_that_is_full_is_explained(said):
    document = json.loads(explain(f"epoch 1\n{said}\n".encode(), "--format", "json").stdout)
    validator("oom-message.schema.json").validate(document)
    (message,) = document["messages"]
    assert (message["wording"], message["line"], message["verdict"]["cause"]) == ("shared memory", 2, "own_limit")
    text = explain(said.encode()).stdout.decode()
    assert text.startswith("/dev/shm is full: it holds the tensors that processes share.") and "docker run --shm-size=8g\n" in text


@pytest.mark.parametrize("said", ["unable to write to file </torch_1_2_0>: Permission denied (13)", "ERROR:  out of shared memory",
                                  "tar: unable to write to file out.tar: No space left on device (28)"])
def test_a_file_elsewhere_is_no_shared_memory(said):
    assert explain(said.encode()).returncode == 2


def test_memory_stays_small_on_a_log_of_any_length():
    """200 MB of noise with a message in the middle, through a pipe."""
    program = ("import sys\nnoise = b'x' * 999 + b'\\n'\nfor i in range(200_000):\n    sys.stdout.buffer.write(noise)\n"
               f"    if i == 100_000: print({FRAGMENTED!r}, flush=True)")
    writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    limited = f"ulimit -v 200000; exec {harness.COMMAND} explain-oom - --format json"
    done = subprocess.run(["bash", "-c", limited], stdin=writer.stdout, capture_output=True, timeout=100)
    assert writer.wait() == 0
    assert done.returncode == 0, done.stderr
    (message,) = json.loads(done.stdout)["messages"]
    assert message["line"] == 100_002


def test_of_a_log_with_the_summary_of_run_alone_the_recording_is_named():
    said = (b"gpumemprof: The kernel's OOM killer ended the program.\ngpumemprof: Peak 509 MiB on cpu, 97 s after the first event\n"
            b"gpumemprof: Next: gpumemprof analyze runs/a\n")  # fmt: skip
    done = explain(said)
    assert done.returncode == 2
    assert done.stderr.decode().endswith("bytes: the program was recorded, see gpumemprof analyze runs/a\n")


def test_a_memory_snapshot_is_named_with_the_command_that_explains_it(tmp_path):
    snapshot = tmp_path / "snapshot.pickle"
    snapshot.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    done = explain(b"", path=snapshot)
    assert done.returncode == 2
    assert done.stderr.decode() == (f"gpumemprof: {snapshot}: is a memory snapshot of PyTorch, not a message: gpumemprof analyze "
                                    "explains its out-of-memory events\n")
