"""What cannot be recorded runs all the same and is named."""

import os
import shutil
import subprocess
import tempfile
import time

import pytest
from launching import BIN, NOBODY, PYTHON, UNTIL_SEEN, compile_c, loaded_pids, meta_of


def says_at_start(result, what):
    first = result.stderr.decode().splitlines()[0]
    assert first.startswith("gpumemprof: not recorded: ") and what in first, first


def test_a_static_program_runs_and_what_it_starts_is_recorded(run, tmp_path):
    source = '#include <stdlib.h>\n#include <stdio.h>\nint main(void){puts("hi");fflush(stdout);return system("true")+4;}'
    program = compile_c(tmp_path, "static", source, "-static")
    result = run(program)
    assert (result.returncode, result.stdout) == (4, b"hi\n")
    says_at_start(result, "static program")
    assert len(loaded_pids(tmp_path)) >= 1
    assert meta_of(tmp_path)["not_recorded"][0]["reason"] == "it is a static program"


def test_an_address_sanitizer_program_runs_without_the_library(run, tmp_path):
    program = compile_c(tmp_path, "asan", "int main(void){return 6;}", "-fsanitize=address")
    result = run(program)
    assert result.returncode == 6
    says_at_start(result, "AddressSanitizer")
    assert b"runtime does not come first" not in result.stderr
    assert loaded_pids(tmp_path) == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a setuid program")
def test_a_setuid_program_of_another_user_runs_without_the_library(env):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        command = shutil.copy(BIN, folder)  # where that user can read it
        library = shutil.copy(env["GPUMEMPROF_PROBE"], folder)
        source = '#include <stdio.h>\n#include <unistd.h>\nint main(void){printf("%d\\n",geteuid());return 9;}'
        program = compile_c(folder, "suid", source)
        os.chmod(program, 0o4755)
        words = [command, "run", "-o", f"{folder}/rec", "--", program]
        more = {"GPUMEMPROF_PROBE": library, "STAND_IN_DIR": folder}
        result = subprocess.run(words, env=env | more, user=NOBODY, group=NOBODY, extra_groups=[],
                                capture_output=True, cwd=folder, timeout=60)
        assert (result.returncode, result.stdout) == (9, b"0\n")
        says_at_start(result, "setuid")
        again = subprocess.run(words, env=env | more, capture_output=True, cwd=folder, timeout=60)
        assert b"not recorded" not in again.stderr  # for root nothing changes


def test_a_program_that_loads_torch_without_the_probe_is_named(run, tmp_path):
    library = compile_c(tmp_path, "libtorch_cpu.so", "int torch;", "-shared", "-fPIC")
    program = tmp_path / "program.py"
    program.write_text(f"import ctypes\nctypes.CDLL({library!r})\n{UNTIL_SEEN}")
    result = run("sh", "-c", f"env -i {PYTHON} {program}; true")
    named = meta_of(tmp_path)["not_recorded"]
    assert len(named) == 1 and "without LD_PRELOAD" in named[0]["reason"]
    assert PYTHON in named[0]["command"]
    last = result.stderr.decode().splitlines()[-1]
    assert f"pid {named[0]['pid']}" in last and "without LD_PRELOAD" in last


def test_torch_with_the_probe_but_without_events_is_named(run, tmp_path):
    library = compile_c(tmp_path, "libtorch_cpu.so", "int torch;", "-shared", "-fPIC")
    run(PYTHON, "-c", f"import ctypes\nctypes.CDLL({library!r})\n{UNTIL_SEEN}")
    named = meta_of(tmp_path)["not_recorded"]
    assert len(named) == 1 and "no event arrived" in named[0]["reason"]


@pytest.mark.parametrize("link, named", [([], []), (["-Wl,-Bsymbolic"], ["no event arrived"])], ids=["by_name", "symbolic"])
def test_a_process_whose_allocations_would_have_arrived_is_not_named(run, tmp_path, link, named):
    """A parent that only starts workers, as torchrun and mp.spawn are."""
    source = "void* _ZN3c109alloc_cpuEm(unsigned long n) { return 0; } void* other(void) { return _ZN3c109alloc_cpuEm(1); }"
    library = compile_c(tmp_path, "libc10.so", source, "-shared", "-fPIC", *link)
    result = run(PYTHON, "-c", f"import ctypes\nctypes.CDLL({library!r})\n{UNTIL_SEEN}")
    reasons = [one["reason"] for one in meta_of(tmp_path)["not_recorded"]]
    assert len(reasons) == len(named) and all(part in reason for part, reason in zip(named, reasons))
    says = named[0] if named else "PyTorch was loaded and no tensor was allocated"
    assert says in result.stderr.decode().splitlines()[-1]


def test_without_tensors_of_the_cpu_only_those_of_an_accelerator_are_missed(run, tmp_path):
    source = "void* _ZN3c109alloc_cpuEm(unsigned long n) { return 0; } void* other(void) { return _ZN3c109alloc_cpuEm(1); }"
    library = compile_c(tmp_path, "libc10.so", source, "-shared", "-fPIC")
    result = run(PYTHON, "-c", f"import ctypes\nctypes.CDLL({library!r})\n{UNTIL_SEEN}", options=["--no-cpu"])
    says = "no tensor was allocated on an accelerator; --no-cpu records no others"
    assert result.stderr.decode().splitlines()[-1].endswith(f": {says}")


def test_an_empty_recording_says_why(run):
    assert b"no process loaded PyTorch" in run("true").stderr
