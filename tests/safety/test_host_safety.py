"""The profiled program never notices: same exit code, same stdout, same stderr, same files, with and without us."""
import contextlib
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import harness

HOSTILE = harness.PROGRAMS / "hostile.py"


def compare(tmp_path, argv, *, options=(), stderr_is_the_same=True, folder=None, **popen):
    """Runs argv twice, each in an empty directory of its own, and holds one against the other."""
    rooms = [tmp_path / "without", tmp_path / "with"]
    for room in rooms:
        room.mkdir()
    folder = folder or tmp_path / "recording"
    arguments = [[str(a).replace("RECORDING", str(f)) for a in argv] for f in (tmp_path / "no recording", folder)]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(harness.execute, arguments[0], cwd=rooms[0], **popen)
        second = pool.submit(harness.record, folder, arguments[1], options, cwd=rooms[1], **popen)
        without, with_us = first.result(), second.result()
    assert with_us.rc == without.rc, f"without: {without}\nwith: {with_us}"
    assert with_us.stdout == without.stdout, f"without: {without}\nwith: {with_us}"
    if stderr_is_the_same:
        assert len(harness.without_summary(with_us, without).splitlines()) <= 12, with_us
    assert contents(rooms[1]) == contents(rooms[0])
    return without, with_us


def contents(room):
    return {str(p.relative_to(room)): p.read_bytes() if p.is_file() else None for p in sorted(room.rglob("*"))
            if p.name != "fault"}


def python(mode, allocator="light"):
    return [harness.PYTHON, HOSTILE, allocator, mode, "RECORDING"]


# Modes that need a recording of at least something, and how the program ends.
MODES = {
    "closes_descriptors_from_3": 0, "closes_descriptors_from_0": 0, "closes_descriptors_first": 0, "takes_every_descriptor": 0,
    "no_descriptor_left": 0, "file_size_limit": 0, "file_size_limit_first": 0, "no_file_at_all": 0, "address_space_limit": 0,
    "daemon": 0, "forks_in_a_storm": 0, "subprocesses": 0, "folder_is_deleted": 0,
    "seccomp_kills_writers": 6, "seccomp_kills_writers_first": 6, "seccomp_refuses_writers": 6, "seccomp_refuses_mappings": 0,
    "shutdown": 0, "daemon_threads": 0, "threads_die_while_others_allocate": 0, "small_thread_stacks": 0, "alarms": 0,
    "deep_recursion": 0, "collector": 0, "fault_handler": 139, "subinterpreter": 0, "broken_pipe": 141, "raises": 77,
}
ROOT_MODES = {"chroot": 0, "chroot_first": 0, "drops_privileges": 0}


@pytest.mark.parametrize("mode, rc", [*MODES.items(), *ROOT_MODES.items()])
def test_python_program(tmp_path, light, mode, rc):
    if mode in ROOT_MODES and os.geteuid() != 0:
        pytest.skip("needs root")
    without, _ = compare(tmp_path, python(mode), env=light.env)
    assert without.rc == rc, without


def test_a_file_that_somebody_cuts_short(tmp_path, light):
    compare(tmp_path, python("file_is_truncated"), env=light.env)


@pytest.mark.parametrize("mode", ["closes_descriptors_from_3", "seccomp_kills_writers", "shutdown", "daemon_threads", "alarms"])
def test_pytorch_program(tmp_path, light, mode):
    compare(tmp_path, python(mode, "torch"), env=light.env)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*MODES, *ROOT_MODES])
def test_every_pytorch_program(tmp_path, light, mode):
    if mode == "subinterpreter":
        pytest.skip("PyTorch cannot be loaded into a second interpreter")
    compare(tmp_path, python(mode, "torch"), env=light.env)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["daemon_threads", "shutdown", "alarms"])
def test_the_end_of_the_interpreter_many_times(tmp_path, light, mode):
    for number in range(50):
        (tmp_path / str(number)).mkdir()
        compare(tmp_path / str(number), python(mode), env=light.env)


@pytest.mark.slow
def test_a_long_storm_of_forks(tmp_path, light):
    # A thousand files to seal after the program, each with several syncs: beside a compiler a disk takes a minute.
    compare(tmp_path, python("forks_in_a_storm"), env=dict(light.env, STORM="1000"), timeout=600)


@pytest.mark.parametrize("extra", [{"BY_SYSCALL": "1"}, {"WITH_THREAD": "1"}, {"WITH_THREAD": "1", "BY_SYSCALL": "1"}])
def test_seccomp_filter(tmp_path, light, extra):
    """The filter may come by prctl or by syscall(), and a thread may begin behind it."""
    env = dict(light.env, **extra)
    without, _ = compare(tmp_path, python("seccomp_kills_writers"), env=env)
    assert without.rc == 6, without


@pytest.mark.parametrize("mode, rc", [("strict", 5), ("strict_by_syscall", 5), ("fsize", 0), ("fsize_first", 0), ("small_stack", 0),
                                      ("threads", 0), ("vfork", 0), ("errno", 0), ("masked", 0)])
def test_c_program(tmp_path, light, mode, rc):
    without, _ = compare(tmp_path, [light.hostile, mode])
    assert without.rc == rc, without


@pytest.mark.parametrize("end, rc", [("return", 0), ("fail", 3), ("_exit", 7), ("segfault", 139), ("abort", 134), ("sigpipe", 141),
                                     ("trap", 132 if os.uname().machine == "x86_64" else 133)])
def test_every_way_to_end_keeps_the_exit_code_and_the_events(tmp_path, light, end, rc):
    without, with_us = compare(tmp_path, [light.program, 500, end], stderr_is_the_same=False)
    assert without.rc == rc
    sizes = sorted(e["size_bytes"] for e in harness.allocs(harness.events(with_us.folder)))
    assert sizes == list(range(1000, 1500))


@pytest.mark.parametrize("argv, rc", [
    (["true"], 0), (["false"], 1), (["sh", "-c", "exit 255"], 255), (["sh", "-c", "kill -9 $$"], 137), (["cat"], 0),
    (["sh", "-c", "kill -SEGV $$"], 139), (["sh", "-c", "ulimit -f 1; echo small > file; cat file"], 0),
    (["sh", "-c", "echo $LD_AUDIT$PYTHONPATH; pwd -P | wc -l; umask; ulimit -a; ls"], 0)])
def test_a_program_without_pytorch(tmp_path, argv, rc):
    without, _ = compare(tmp_path, argv)
    assert without.rc == rc


def test_stdin_reaches_the_program(tmp_path):
    text = tmp_path / "text"
    text.write_bytes(os.urandom(300_000))
    with open(text, "rb") as one, open(text, "rb") as two:
        without = harness.execute(["cat"], stdin=one)
        with_us = harness.record(tmp_path / "recording", ["cat"], stdin=two)
    assert with_us.stdout == without.stdout == text.read_bytes()


@pytest.mark.parametrize("redirect", [">&-", "<&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_closed_standard_files(tmp_path, light, redirect):
    """The shell closes them for the recorder and for the program alike."""
    results = []
    for folder, argv in ((None, [light.program, "20"]), (tmp_path / "r", harness.run_argv(tmp_path / "r", [light.program, "20"]))):
        results.append(harness.execute(["sh", "-c", f'"$@" {redirect}; echo $?', "sh", *argv], folder))
    assert results[1].stdout == results[0].stdout
    assert len(harness.allocs(harness.events(tmp_path / "r"))) == 20


@pytest.mark.parametrize("redirect", [">&-", "<&-", "<&- >&- 2>&-"])
def test_the_memory_for_events_has_no_number_of_a_closed_standard_file(tmp_path, redirect):
    """`run` and its keeper replace these three, whatever is behind them."""
    says = ["sh", "-c", f"echo $GPUMEMPROF_ARENA >{tmp_path}/arena"]
    harness.execute(["sh", "-c", f'"$@" {redirect}', "sh", *harness.run_argv(tmp_path / "r", says)]).ok()
    _, _, keepers, _, runs = (int(word) for word in (tmp_path / "arena").read_text().split("."))
    assert keepers > 2 and runs > 2


def test_a_reader_that_goes_away(tmp_path, light):
    for argv in ([light.program, "20"], harness.run_argv(tmp_path / "r", [light.program, "20"])):
        quoted = " ".join(f"'{a}'" for a in argv)
        done = harness.execute(["bash", "-c", f"{quoted} | true; echo ${{PIPESTATUS[0]}}"])
        assert done.stdout in (b"0\n", b"141\n")


@pytest.mark.parametrize("options", [["-X", "dev"], ["-X", "faulthandler"], ["-I", "-S"], ["-O"], ["-X", "importtime"]])
def test_interpreter_options(tmp_path, light, options):
    code = f"import sys; sys.path.insert(0, {str(harness.PROGRAMS)!r}); from light import Block; k = [Block(1000 + i) for i in range(100)]; print(len(k))"
    _, with_us = compare(tmp_path, [harness.PYTHON, *options, "-c", code], env=light.env, stderr_is_the_same="importtime" not in options)
    events = harness.allocs(harness.events(with_us.folder))
    assert [e["size_bytes"] for e in events] == list(range(1000, 1100))
    assert harness.frames(events[0])[0].function == "Block.__init__"


@pytest.mark.parametrize("malloc", ["debug", "malloc_debug", "malloc"])
def test_python_allocators(tmp_path, light, malloc):
    compare(tmp_path, python("collector"), env=dict(light.env, PYTHONMALLOC=malloc))


def test_another_preloaded_library_stays_first_and_works(tmp_path, light):
    source, library = tmp_path / "other.c", tmp_path / "libother.so"
    source.write_text('#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic int calls;\n'
                      'int fflush(FILE *f) { calls++; return ((int (*)(FILE *))dlsym(RTLD_NEXT, "fflush"))(f); }\n'
                      '__attribute__((destructor)) static void end(void) { if (calls && write(1, "other\\n", 6)) {} }\n')
    harness.execute(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source]).ok()
    env = dict(os.environ, LD_PRELOAD=str(library))
    without = harness.execute([light.program, "20"], env=env).ok()
    assert without.stdout == b"20 blocks\nother\n"
    code = f"import os; os.execv({str(light.program)!r}, ['allocate', '20'])"
    with_us = harness.record(tmp_path / "recording", [light.program, "20"], env=env).ok()
    assert with_us.stdout.startswith(without.stdout)  # the command itself may print its own "other" after that
    assert len(harness.allocs(harness.events(tmp_path / "recording"))) == 20
    nested = harness.record(tmp_path / "nested", [harness.PYTHON, "-c", code], env=env).ok()
    assert nested.stdout.startswith(without.stdout)
    order = harness.record(tmp_path / "order", ["sh", "-c", "echo $LD_PRELOAD"], env=env).ok().stdout.decode().split("\n")[0]
    assert order.replace(":", " ").split()[0] == str(library), order


# Each prints a line and ends with 4; the one of 32 bits needs no library of that kind, as write and exit are int 0x80.
HELLO = '#include <stdio.h>\nint main() { puts("hello"); return 4; }\n'
HELLO_32 = (".globl _start\n_start: movl $4, %eax; movl $1, %ebx; movl $text, %ecx; movl $6, %edx; int $0x80\n"
            "movl $1, %eax; movl $4, %ebx; int $0x80\n.data\ntext: .ascii \"hello\\n\"\n")
FOREIGN = {
    "static": (["gcc", "-static", "-x", "c"], HELLO, "a static program; what it starts is"),
    "musl": (["musl-gcc", "-x", "c"], HELLO, "a musl program (the probe needs glibc)"),
    "32-bit, static": (["gcc", "-m32", "-nostdlib", "-static", "-x", "assembler"], HELLO_32, "a 32-bit program"),
    "32-bit": (["gcc", "-m32", "-nostdlib", "-no-pie", "-Wl,--no-as-needed,-I,/lib/ld-linux.so.2", "/lib32/libc.so.6",
                "-x", "assembler"], HELLO_32, "a 32-bit program"),
}  # fmt: skip


@pytest.fixture(params=FOREIGN)
def foreign(request, tmp_path):
    """A program that the probe cannot be in, and what it is called."""
    compiler, text, name = FOREIGN[request.param]
    source, program = tmp_path / "foreign.source", tmp_path / "foreign"
    source.write_text(text)
    if shutil.which(compiler[0]) is None or harness.execute([*compiler, "-o", program, source]).rc:
        pytest.skip(f"{compiler[0]} makes no such program here")
    try:
        assert harness.execute([program]).stdout == b"hello\n"
    except OSError as error:
        pytest.skip(f"this system runs no such program: {error}")
    return program, name


def test_a_program_that_cannot_hold_the_library_runs_unrecorded_with_one_line(tmp_path, foreign):
    program, name = foreign
    without, with_us = compare(tmp_path, [program])
    assert (without.rc, without.stdout) == (4, b"hello\n")
    said = [line for line in with_us.stderr.decode().splitlines() if line.startswith("gpumemprof: not recorded: ")]
    assert said == [f"gpumemprof: not recorded: {program} is {name}"]


@pytest.mark.parametrize("foreign", [kind for kind in FOREIGN if kind != "32-bit"], indirect=True)
def test_such_a_program_started_by_one_that_is_recorded_runs_as_without_us(tmp_path, foreign):
    without, _ = compare(tmp_path, ["sh", "-c", f"{foreign[0]}; echo $?; {foreign[0]} >&2"])
    assert (without.rc, without.stdout, without.stderr) == (4, b"hello\n4\n", b"hello\n")


@pytest.mark.parametrize("foreign", ["32-bit"], indirect=True)
def test_of_a_32_bit_child_that_glibc_loads_glibc_says_that_it_left_us_out(tmp_path, foreign):
    without, with_us = (harness.execute(argv) for argv in (
        ["sh", "-c", foreign[0]], harness.run_argv(tmp_path / "recording", ["sh", "-c", foreign[0]], ["--quiet"])))
    assert (without.rc, without.stdout, without.stderr) == (4, b"hello\n", b"")
    assert (with_us.rc, with_us.stdout) == (4, b"hello\n")
    (line,) = with_us.stderr.splitlines()
    assert line.startswith(b"ERROR: ld.so: object ") and line.endswith(b"(wrong ELF class: ELFCLASS64): ignored.")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a set-user-ID program")
def test_a_setuid_program_runs_unrecorded_with_one_line(tmp_path, light):
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if not os.stat(parent).st_mode & 1:
            parent.chmod(os.stat(parent).st_mode | 0o111)  # pytest's own folders are closed to others
    program, folder = tmp_path / "setuid", tmp_path / "recording"
    shutil.copy(light.program, program)
    program.chmod(0o4755)
    open_to_nobody = tmp_path / "open"
    open_to_nobody.mkdir()
    os.chown(open_to_nobody, 65534, 65534)
    nobody = dict(user=65534, group=65534, extra_groups=[])
    try:
        without = harness.execute([program, 10, "setuid"], **nobody)
    except PermissionError as error:
        pytest.skip(f"nobody may not run programs here: {error}")
    if without.rc:
        pytest.skip(f"nobody may not run programs here: {without.stderr!r}")
    assert without.stdout == b"10 blocks\nuid 0 0\n"
    try:
        with_us = harness.record(open_to_nobody / folder.name, [program, 10, "setuid"], **nobody)
    except PermissionError as error:
        pytest.skip(f"nobody may not run the command here: {error}")
    assert (with_us.rc, with_us.stdout) == (without.rc, without.stdout), with_us
    assert "set-user-ID" in with_us.stderr.decode() or "setuid" in with_us.stderr.decode()


@pytest.fixture
def small_disk(tmp_path):
    """A tmpfs of 1 MiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    if harness.execute(["mount", "-t", "tmpfs", "-o", "size=1m", "none", mount]).rc:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield mount
    subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.parametrize("mode", ["threads_die_while_others_allocate", "forks_in_a_storm", "deep_recursion"])
def test_a_full_disk(tmp_path, light, small_disk, mode):
    compare(tmp_path, python(mode), env=light.env, folder=small_disk / "recording")


def test_what_a_full_disk_lost_is_said_and_the_rest_is_read(tmp_path, light, small_disk):
    program = [harness.PYTHON, harness.PROGRAMS / "count.py", "light", 150_000, 1]  # allocates and frees nothing
    without = harness.execute(program, env=light.env)
    with_us = harness.record(small_disk / "recording", program, env=light.env)
    assert (with_us.rc, with_us.stdout.count(b"\n")) == (without.rc, without.stdout.count(b"\n"))
    events = [e for e in harness.allocs(harness.events(small_disk / "recording", True)) if e["size_bytes"] >= 4096]
    numbers = [e["size_bytes"] - 4096 for e in events]
    assert len(numbers) == len(set(numbers)) and set(numbers) <= set(range(150_000))
    lost = harness.analysis(small_disk / "recording")["lost"]
    assert len(numbers) > 1000
    assert len(numbers) + lost["events"] == 150_000, (len(numbers), lost)
    assert not lost["events"] or (lost["reasons"] and "lost" in with_us.stderr.decode())


def test_a_disk_that_is_full_from_the_start(tmp_path, light, small_disk):
    filler = os.open(small_disk / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(filler, b"x" * 4096)
    os.close(filler)
    without = harness.execute([light.program, 500])
    with_us = harness.record(small_disk / "recording", [light.program, 500])
    # Where not even the folder can be made, it is refused before the program starts; never an end in between.
    assert with_us.rc == 1 and not with_us.stdout or (with_us.rc, with_us.stdout) == (without.rc, without.stdout), with_us


def test_an_output_that_cannot_be_written_is_refused_before_the_program_starts(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file" / "recording", "/proc/recording"):
        done = harness.record(folder, ["touch", tmp_path / "started"])
        assert done.rc == 2 and not (tmp_path / "started").exists()
        assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith(b"gpumemprof: "), done


def test_the_recording_is_private(tmp_path, light):
    secret = "a-secret-of-the-environment"
    harness.record(tmp_path / "recording", [light.program, 10], env=dict(os.environ, MY_TOKEN=secret)).ok()
    assert (tmp_path / "recording").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "recording").rglob("*"):
        assert file.stat().st_mode & 0o777 == 0o600, file
        assert secret.encode() not in file.read_bytes()
