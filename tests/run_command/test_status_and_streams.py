"""The program must not notice `run`, the caller must see its status."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from launching import BIN, PYTHON, meta_of


@pytest.mark.parametrize("code", [0, 1, 2, 77, 255])
def test_exit_code_is_the_programs_own(run, tmp_path, code):
    assert run("sh", "-c", f"exit {code}").returncode == code
    assert meta_of(tmp_path)["exit"] == {"code": code}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT, signal.SIGABRT])
def test_death_by_signal_is_seen_as_such(run, tmp_path, number):
    assert run("sh", "-c", f"kill -{int(number)} $$").returncode == -number
    assert meta_of(tmp_path)["exit"] == {"signal": int(number), "signal_name": number.name}


def test_streams_are_the_programs_own(run):
    data = bytes(range(256)) * 1000
    result = run("sh", "-c", "cat; echo err >&2", input=data)
    assert result.stdout == data
    lines = result.stderr.decode().splitlines()
    assert lines[0] == "err"
    assert len(lines) == 2 and lines[1].startswith("gpumemprof: nothing recorded")


def test_quiet_says_nothing(run):
    result = run("sh", "-c", "echo out", options=["--quiet"])
    assert (result.stdout, result.stderr) == (b"out\n", b"")


def test_arguments_arrive_as_they_were_typed(run):
    arguments = ["-o", "--", "[a,b]", "", "x y", "--stacks=none", "-h", "a=b", "%%", "analyze"]
    result = run(PYTHON, "-c", "import sys; print(sys.argv[1:])", *arguments)
    assert result.stdout.decode().strip() == str(arguments)


def test_a_program_named_like_a_subcommand_is_a_program(run, tmp_path):
    tool = tmp_path / "bin"
    tool.mkdir()
    (tool / "seal").write_text("#!/bin/sh\necho mine $1\n")
    (tool / "seal").chmod(0o755)
    assert run("seal", "x", more_env={"PATH": f"{tool}:/bin"}).stdout == b"mine x\n"


def test_a_script_without_interpreter_line_is_run_by_the_shell(run, tmp_path):
    script = tmp_path / "plain"
    script.write_text("echo from $0 $1\n")
    script.chmod(0o755)
    assert run(str(script), "x").stdout.decode() == f"from {script} x\n"


def test_a_pipe_ends_when_the_program_lets_go_of_it(start):
    process = start("import os, time; print('ready', flush=True); os.close(1); time.sleep(60)")
    assert process.stdout.read() == b""  # would block for a minute if the parent held it
    assert process.poll() is None


def test_a_closed_reader_ends_the_program(run, env, tmp_path):
    line = f"{BIN} run -q -o {tmp_path}/rec -- yes | head -n 1; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", line], env=env, capture_output=True, timeout=60)
    assert result.stdout == b"y\n141\n"


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1 2"])
def test_closed_descriptors_stay_closed(env, tmp_path, closed):
    source = "import os, sys; open(sys.argv[1], 'w').write(' '.join(sorted(os.listdir('/proc/self/fd'))))"
    listing = []
    for name, prefix in (("with", f"{BIN} run -o {tmp_path}/rec --"), ("without", "")):
        out = tmp_path / name
        redirect = " ".join(f"{fd}>&-" for fd in closed.split())
        line = f'{prefix} {PYTHON} -c "$1" {out} {redirect}'
        assert subprocess.run(["bash", "-c", line, "x", source], env=env, timeout=60,
                              stdin=subprocess.DEVNULL).returncode == 0
        listing.append(out.read_text())
    assert listing[0] == listing[1]
    assert meta_of(tmp_path)["exit"] == {"code": 0}


def test_signal_state_is_inherited_as_it_was(run):
    source = """
    import signal
    print(sorted(int(s) for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN))
    print(sorted(int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    """

    def odd():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    program = [PYTHON, "-c", textwrap.dedent(source)]
    plain = subprocess.run(program, preexec_fn=odd, capture_output=True)
    assert run(*program, preexec_fn=odd).stdout == plain.stdout
    assert run("sh", "-c", "exit 3", folder="rec2", preexec_fn=odd).returncode == 3
