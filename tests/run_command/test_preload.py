"""How the library gets into the program and what it starts."""

import os
import re
import shutil

import harness
from launching import PYTHON, compile_c, loaded_pids


def test_the_probe_is_told_what_was_asked(run, tmp_path, probe):
    source = "import os; print({k: v for k, v in os.environ.items() if k.startswith(('GPUMEMPROF_', 'LD_'))})"
    plain = eval(run(PYTHON, "-c", source, folder="a").stdout)
    # Which memory, and two processes that hold it with the number of their descriptor: `run` and its keeper.
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+\.\d+", plain.pop("GPUMEMPROF_ARENA"))
    assert plain == {"LD_PRELOAD": probe, "GPUMEMPROF_PROBE": probe, "GPUMEMPROF_STACKS": "python",
                     "GPUMEMPROF_DIR": str(tmp_path / "a"), "GPUMEMPROF_PACKAGE": str(harness.ROOT / "python")}
    options = ["--stacks", "both", "--free-stacks", "--no-cpu", "--no-attribution", "--max-disk", "20GiB"]
    every = eval(run(PYTHON, "-c", source, folder="b", options=options).stdout)
    every.pop("GPUMEMPROF_ARENA")
    assert every == plain | {"GPUMEMPROF_DIR": str(tmp_path / "b"), "GPUMEMPROF_STACKS": "both",
                             "GPUMEMPROF_FREE_STACKS": "1", "GPUMEMPROF_NO_CPU": "1",
                             "GPUMEMPROF_NO_ATTRIBUTION": "1",
                             # what is less is for samples of the machine, what is more is what sealing may be behind
                             "GPUMEMPROF_MAX_DISK": str((20 << 30) - (64 << 20) + (256 << 20))}


def test_it_is_loaded_in_the_program_and_what_it_starts(run, tmp_path):
    result = run("sh", "-c", f"echo $$; {PYTHON} -c 'import os; print(os.getpid())'")
    assert loaded_pids(tmp_path) >= {int(pid) for pid in result.stdout.split()}


def test_a_preloaded_library_stays_first(run, tmp_path, probe):
    other = compile_c(tmp_path, "libother.so", "int other;", "-shared", "-fPIC")
    result = run("sh", "-c", "echo $LD_PRELOAD", more_env={"LD_PRELOAD": other})
    assert result.stdout.decode().strip() == f"{other}:{probe}"


def test_a_library_in_a_folder_with_a_space_is_loaded(run, probe, tmp_path):
    odd = tmp_path / "a space: and a colon"
    odd.mkdir()
    shutil.copy(probe, odd)
    result = run("sh", "-c", "echo $$ $LD_PRELOAD",
                 more_env={"GPUMEMPROF_PROBE": str(odd / "libgpumemprof_probe.so"), "TMPDIR": str(tmp_path)})
    pid, link = result.stdout.decode().split()
    assert int(pid) in loaded_pids(tmp_path)
    assert not os.path.lexists(link) and not os.path.lexists(os.path.dirname(link))
    assert b"ld.so" not in result.stderr


def test_a_missing_library_is_an_error_before_the_start(run, tmp_path):
    result = run("touch", str(tmp_path / "started"), more_env={"GPUMEMPROF_PROBE": "/no/library.so"})
    assert result.returncode == 1
    assert result.stderr.count(b"\n") == 1 and b"/no/library.so" in result.stderr
    assert not (tmp_path / "started").exists() and not (tmp_path / "rec").exists()
