"""`gpumemprof run` seen from outside: the program must not notice, the caller must see its status.

A stand-in library takes the probe's place: what is tested here is launching, not recording.
"""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

BIN = os.environ.get("GPUMEMPROF_BIN", str(Path(__file__).parent.parent / ".venv/bin/gpumemprof"))
PYTHON = os.path.realpath(sys.executable)
NOBODY = 65534

STAND_IN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
  const char* folder = getenv("STAND_IN_DIR");
  if (!folder) return;
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
  FILE* file = fopen(path, "w");
  if (file) fclose(file);
}
"""

pytestmark = pytest.mark.skipif(not os.access(BIN, os.X_OK), reason=f"{BIN} is not built")


def compile_c(folder, name, source, *options):
    path = Path(folder) / (name + ".c")
    path.write_text(source)
    out = Path(folder) / name
    subprocess.run(["gcc", "-O1", "-o", out, path, *options], check=True)
    return str(out)


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("probe"), "libgpumemprof_probe.so", STAND_IN, "-shared", "-fPIC")


@pytest.fixture
def env(probe, tmp_path):
    loaded = tmp_path / "loaded"
    loaded.mkdir()
    result = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMPROF_", "LD_"))}
    return result | {"GPUMEMPROF_PROBE": probe, "STAND_IN_DIR": str(loaded), "LC_ALL": "C.UTF-8"}


@pytest.fixture
def run(env, tmp_path):
    """Runs a program under `gpumemprof run` and waits for it."""

    def call(*command, options=(), folder="rec", more_env=None, **kwargs):
        kwargs.setdefault("capture_output", True)
        words = [BIN, "run", "-o", str(tmp_path / folder), *options, "--", *command]
        return subprocess.run(words, env=env | (more_env or {}), timeout=60, **kwargs)

    return call


@pytest.fixture
def start(env, tmp_path):
    """Starts a Python program under `gpumemprof run`; it says "ready" when it is."""
    processes = []

    def call(source, *, options=(), **kwargs):
        words = [BIN, "run", "-o", str(tmp_path / "rec"), *options, "--", PYTHON, "-c", textwrap.dedent(source)]
        process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        processes.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process

    yield call
    for process in processes:
        process.terminate()  # goes on to the program
        process.communicate()


def meta_of(tmp_path, name="meta.json", folder="rec"):
    return json.loads((tmp_path / folder / name).read_text())


def loaded_pids(tmp_path):
    return {int(p.name) for p in (tmp_path / "loaded").iterdir()}


COUNT_SIGNALS = """
import signal, sys, time
got = []
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
    signal.signal(s, lambda number, frame: got.append(signal.Signals(number).name))
print("ready", flush=True)
deadline = time.monotonic() + 20
while not got and time.monotonic() < deadline:
    time.sleep(0.05)
time.sleep(0.5)  # for a second one, if there is one
print(*got, flush=True)
"""


# ---------------------------------------------------------------- status and streams


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
    assert run("sh", "-c", "exit 3", preexec_fn=odd).returncode == 3


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT"])
def test_a_signal_for_run_alone_goes_on_to_the_program(start, name):
    process = start(COUNT_SIGNALS, options=["-q"])
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert (out.decode().strip(), err, process.returncode) == (name, b"", 0)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGINT"])
def test_a_signal_for_the_group_arrives_once(start, name):
    process = start(COUNT_SIGNALS, options=["-q"], start_new_session=True)
    os.killpg(process.pid, getattr(signal, name))
    out, _ = process.communicate(timeout=60)
    assert out.decode().strip() == name


def test_a_second_group_signal_is_recognised_too(start):
    source = COUNT_SIGNALS.replace("while not got and", "while len(got) < 2 and")
    process = start(source, options=["-q"], start_new_session=True)
    os.killpg(process.pid, signal.SIGUSR1)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGUSR2)
    out, _ = process.communicate(timeout=60)
    assert out.decode().split() == ["SIGUSR1", "SIGUSR2"]


def test_a_graceful_end_keeps_its_exit_code(start, tmp_path):
    process = start("""
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        print("ready", flush=True)
        time.sleep(60)
    """)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 5
    assert meta_of(tmp_path)["exit"] == {"code": 5}


def test_the_program_goes_on_when_run_is_killed(start, tmp_path):
    mark = tmp_path / "went_on"
    process = start(f"""
        import time
        print("ready", flush=True)
        time.sleep(1)
        open({str(mark)!r}, "w").close()
    """)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert mark.exists()


def group_members(group):
    """Processes of a process group that are more than zombies."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            members.append(stat.parent.name)
    return members


def test_nothing_of_ours_outlives_a_killed_run(start):
    process = start("import time; print('ready', flush=True); time.sleep(1)", start_new_session=True)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while group_members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert group_members(process.pid) == []


JOB_CONTROL = r"""
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
try:
    os.setpgid(pid, pid)
except OSError:
    pass
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(0, os.getpgrp())
    print("STOPPED", os.WSTOPSIG(status), flush=True)
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
os.tcsetpgrp(0, os.getpgrp())
print("ENDED", os.waitstatus_to_exitcode(status), flush=True)
"""


class Terminal:
    """A terminal with a shell that runs one job in it."""

    def __init__(self, words, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(PYTHON, [PYTHON, "-c", JOB_CONTROL, *words], env)
        self.text = ""

    def wait_for(self, word):
        deadline = time.monotonic() + 30
        while word not in self.text:
            assert time.monotonic() < deadline, self.text
            try:
                self.text += os.read(self.fd, 4096).decode()
            except OSError:  # the terminal's other end is closed
                assert word in self.text, self.text

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(env, tmp_path):
    made = []

    def call(source):
        words = [BIN, "run", "-q", "-o", str(tmp_path / "rec"), "--", PYTHON, "-c", textwrap.dedent(source)]
        made.append(Terminal(words, env))
        return made[-1]

    yield call
    for one in made:
        one.close()


def test_ctrl_c_reaches_the_program_once(terminal):
    term = terminal(COUNT_SIGNALS)
    term.wait_for("ready")
    os.write(term.fd, b"\x03")
    term.wait_for("ENDED 0")
    assert term.text.count("SIGINT") == 1


def test_ctrl_c_that_kills_the_program_is_what_the_shell_sees(terminal):
    term = terminal("""
        import signal, time
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print("ready", flush=True)
        time.sleep(60)
    """)
    term.wait_for("ready")
    os.write(term.fd, b"\x03")
    term.wait_for("ENDED -2")


def test_ctrl_z_stops_the_job_and_fg_continues_it(terminal):
    term = terminal("""
        import time
        print("ready", flush=True)
        input()
        print("read a line")
    """)
    term.wait_for("ready")
    os.write(term.fd, b"\x1a")
    term.wait_for(f"STOPPED {int(signal.SIGTSTP)}")
    time.sleep(0.3)
    os.write(term.fd, b"hello\n")
    term.wait_for("ENDED 0")
    assert "read a line" in term.text


# ---------------------------------------------------------------- the probe


def test_the_probe_is_told_what_was_asked(run, tmp_path, probe):
    source = "import os; print({k: v for k, v in os.environ.items() if k.startswith(('GPUMEMPROF_', 'LD_'))})"
    plain = eval(run(PYTHON, "-c", source, folder="a").stdout)
    assert plain == {"LD_PRELOAD": probe, "GPUMEMPROF_PROBE": probe, "GPUMEMPROF_STACKS": "python",
                     "GPUMEMPROF_DIR": str(tmp_path / "a")}
    options = ["--stacks", "both", "--free-stacks", "--no-cpu", "--max-disk", "20GiB"]
    every = eval(run(PYTHON, "-c", source, folder="b", options=options).stdout)
    assert every == plain | {"GPUMEMPROF_DIR": str(tmp_path / "b"), "GPUMEMPROF_STACKS": "both",
                             "GPUMEMPROF_FREE_STACKS": "1", "GPUMEMPROF_NO_CPU": "1",
                             "GPUMEMPROF_MAX_DISK": str(20 << 30)}


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


# ---------------------------------------------------------------- what cannot be recorded


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
    source = f"import ctypes, time; ctypes.CDLL(\"{library}\"); time.sleep(2)"
    result = run("sh", "-c", f"env -i {PYTHON} -c '{source}'; true")
    named = meta_of(tmp_path)["not_recorded"]
    assert len(named) == 1 and "without LD_PRELOAD" in named[0]["reason"]
    assert PYTHON in named[0]["command"]
    last = result.stderr.decode().splitlines()[-1]
    assert f"pid {named[0]['pid']}" in last and "without LD_PRELOAD" in last


def test_torch_with_the_probe_but_without_events_is_named(run, tmp_path):
    library = compile_c(tmp_path, "libtorch_cpu.so", "int torch;", "-shared", "-fPIC")
    run(PYTHON, "-c", f"import ctypes, time; ctypes.CDLL({library!r}); time.sleep(3)")
    named = meta_of(tmp_path)["not_recorded"]
    assert len(named) == 1 and "no event arrived" in named[0]["reason"]


def test_an_empty_recording_says_why(run):
    assert b"no process was seen loading PyTorch" in run("true").stderr


# ---------------------------------------------------------------- the folder


def test_folder_and_meta_are_private_and_complete(run, tmp_path):
    run("true", more_env={"CUDA_VISIBLE_DEVICES": "1", "NCCL_DEBUG": "WARN", "HF_TOKEN": "secret"})
    assert os.stat(tmp_path / "rec").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "rec/meta.json").st_mode & 0o777 == 0o600
    meta = meta_of(tmp_path)
    assert meta["schema"] == "gpumemprof.recording/1"
    assert meta["command"] == ["true"]
    assert meta["working_directory"] == os.getcwd()
    assert meta["environment"] | {"CUDA_VISIBLE_DEVICES": "1", "NCCL_DEBUG": "WARN"} == meta["environment"]
    assert "secret" not in (tmp_path / "rec/meta.json").read_text()
    assert meta["start_time"] <= meta["end_time"]


def test_the_default_folder_is_named_after_the_program(env, tmp_path):
    subprocess.run([BIN, "run", "--", "true"], env=env, cwd=tmp_path, timeout=60, capture_output=True)
    folders = list(tmp_path.glob("gpumemprof-true-*"))
    assert len(folders) == 1 and (folders[0] / "meta.json").exists()


def test_two_runs_may_share_a_folder(run, tmp_path):
    run("sh", "-c", "exit 1")
    run("sh", "-c", "exit 2")
    others = list((tmp_path / "rec").glob("meta.*.json"))
    assert len(others) == 1
    assert meta_of(tmp_path)["exit"] == {"code": 1}
    assert json.loads(others[0].read_text())["exit"] == {"code": 2}


@pytest.mark.parametrize("folder", ["file", "file/below", "other", "\0proc"])
def test_a_folder_that_cannot_be_used_is_exit_2_before_the_start(env, tmp_path, folder):
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("x")
    path = "/proc/gpumemprof" if folder == "\0proc" else str(tmp_path / folder)
    result = subprocess.run([BIN, "run", "-o", path, "--", "touch", str(tmp_path / "started")],
                            env=env, capture_output=True, timeout=60)
    assert result.returncode == 2
    assert result.stderr.startswith(b"gpumemprof: ") and result.stderr.count(b"\n") == 1
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("command", ["no-such-program", "/no/such/program", "/etc", "/etc/passwd"])
def test_a_command_that_cannot_run_is_exit_2_and_leaves_nothing(run, tmp_path, command):
    result = run(command)
    assert result.returncode == 2
    assert result.stderr.startswith(b"gpumemprof: ") and result.stderr.count(b"\n") == 1
    assert not (tmp_path / "rec").exists()


def test_a_file_that_exec_refuses_is_exit_2_and_leaves_nothing(run, tmp_path):
    program = tmp_path / "damaged"
    program.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
    program.chmod(0o755)
    result = run(str(program))
    # The kernel refuses the format, so the shell gets it, as execvp does; its answer is 126, 127 or 2.
    assert result.returncode in (2, 126, 127)


@pytest.mark.parametrize("words", [["run"], ["run", "--"], ["run", "--stacks", "some", "--", "true"],
                                   ["run", "--max-disk", "12Q", "--", "true"], ["run", "ls", "-l"]])
def test_wrong_words_are_usage_errors(env, tmp_path, words):
    result = subprocess.run([BIN, *words], env=env, cwd=tmp_path, capture_output=True, timeout=60)
    assert result.returncode == 2 and result.stderr
    assert list(tmp_path.glob("gpumemprof-*")) == []


def test_seal_refuses_what_is_no_recording(env, tmp_path):
    (tmp_path / "file").write_text("x")
    for folder in ("none", "file", "."):
        result = subprocess.run([BIN, "seal", folder], env=env, cwd=tmp_path, capture_output=True, timeout=60)
        assert result.returncode == 2 and result.stderr.startswith(b"gpumemprof: "), folder


def test_seal_takes_a_recording_without_files(run, env, tmp_path):
    run("true")
    result = subprocess.run([BIN, "seal", "rec"], env=env, cwd=tmp_path, capture_output=True, timeout=60)
    assert (result.returncode, result.stdout) == (0, b"rec: 0 files, 0 events, 0 B before, 0 B after\n")
