"""The folder of a recording, and words that are wrong."""

import json
import os
import subprocess
import tempfile
import time

import harness
import pytest
from launching import BIN, NOBODY, meta_of


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
    listed = subprocess.run([BIN, "run", "--", "ls"], env=env, cwd=tmp_path, timeout=60, capture_output=True, text=True)
    # It goes again, as nothing was recorded.
    assert [name for name in listed.stdout.split() if name.startswith("gpumemprof-ls-")], listed


def test_ranks_of_a_job_share_a_folder(run, tmp_path):
    run("sh", "-c", "exit 1", more_env={"RANK": "0"})
    run("sh", "-c", "exit 2", more_env={"RANK": "1"})
    others = list((tmp_path / "rec").glob("meta.*.json"))
    assert len(others) == 1
    assert meta_of(tmp_path)["exit"] == {"code": 1}
    assert json.loads(others[0].read_text())["exit"] == {"code": 2}


def test_a_recording_that_ended_is_not_added_to(run, tmp_path):
    run("true")
    (tmp_path / "rec/h.1.2.gmp").write_bytes(b"x")
    before = (tmp_path / "rec/meta.json").read_bytes()
    result = run("touch", str(tmp_path / "started"))
    said = f"gpumemprof: {tmp_path}/rec: already has a recording: name another folder, or replace it with --force\n"
    assert (result.returncode, result.stderr.decode()) == (2, said)
    assert not (tmp_path / "started").exists() and (tmp_path / "rec/meta.json").read_bytes() == before


def test_the_same_rank_does_not_add_to_what_it_recorded_before(run, tmp_path):
    assert run("true", more_env={"SLURM_PROCID": "3"}).returncode == 0
    (tmp_path / "rec/h.1.2.gmp").write_bytes(b"x")
    assert run("true", more_env={"SLURM_PROCID": "3"}).returncode == 2
    assert run("true", more_env={"SLURM_PROCID": "3", "SLURM_RESTART_COUNT": "1"}).returncode == 0


@pytest.mark.parametrize("kept", ["h.1.2.gmp", "holders.1.2.json", "uncaught.1.2.json"])
def test_a_run_takes_the_place_of_one_that_recorded_nothing(run, tmp_path, kept):
    assert run("sh", "-c", "exit 3").returncode == 3
    assert meta_of(tmp_path)["exit"] == {"code": 3}
    assert run("true").returncode == 0
    assert meta_of(tmp_path)["exit"] == {"code": 0} and not list((tmp_path / "rec").glob("meta.*.json"))
    (tmp_path / "rec" / kept).write_text("{}")
    assert run("true").returncode == 2, "it has more than notes"


def test_a_run_adds_to_one_that_goes_on_only_as_another_rank(run, env, tmp_path):
    argv = [BIN, "run", "-o", str(tmp_path / "rec"), "--", "sleep", "60"]
    first = subprocess.Popen(argv, env=env | {"RANK": "0"}, stderr=subprocess.DEVNULL)
    try:
        while not (pid := pid_of(tmp_path)):
            time.sleep(0.01)
        said = f"gpumemprof: {tmp_path}/rec: is being recorded by pid {pid} (sleep 60): name another folder\n"
        for more_env in ({}, {"RANK": "0"}):
            refused = run("touch", str(tmp_path / "started"), more_env=more_env)
            assert (refused.returncode, refused.stderr.decode()) == (2, said)
        assert not (tmp_path / "started").exists() and not list((tmp_path / "rec").glob("meta.*.json"))
        assert run("true", more_env={"RANK": "1"}).returncode == 0
        forced = run("true", options=["--force"])
        assert forced.returncode == 2 and b"a run is still recording into it" in forced.stderr
    finally:
        first.terminate()
        first.wait()


def pid_of(tmp_path):
    path = tmp_path / "rec/meta.json"
    return json.loads(path.read_text() or "{}").get("pid") if path.exists() else None


def test_force_replaces_the_recording_and_nothing_else(run, tmp_path):
    run("sh", "-c", "exit 1")
    (tmp_path / "rec/holders.1.2.json").write_text("{}")
    (tmp_path / "rec/oom_dumps/oom_dump_1").mkdir(parents=True)
    (tmp_path / "rec/notes.txt").write_text("mine")
    assert run("sh", "-c", "exit 2", options=["--force"]).returncode == 2
    assert meta_of(tmp_path)["exit"] == {"code": 2}
    left = {path.name for path in (tmp_path / "rec").iterdir() if path.suffix != ".gms"}
    assert left == {"meta.json", "notes.txt"}


def test_the_summary_is_of_this_run_alone(light, tmp_path):
    """Two ranks share a folder, the second holds less: its summary tells its own peak."""
    def one(rank, size):
        code = f"from light import Block; Block({size})"
        env = light.env | {"PYTHONPATH": str(harness.PROGRAMS), "RANK": str(rank)}
        return harness.record(tmp_path / "r", [harness.PYTHON, "-c", code], env=env).ok().stderr.decode()

    assert "Peak 2.00 MiB" in one(0, 2 << 20)
    assert "Peak 1.00 MiB" in one(1, 1 << 20)


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
    assert (result.returncode, result.stdout) == (0, b"rec: nothing is left to compress\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
@pytest.mark.parametrize("way", ["folder", "symlink"])
def test_a_folder_of_another_user_is_refused(env, way):
    env.pop("GPUMEMPROF_PROBE")  # which the other user could not read
    with tempfile.TemporaryDirectory() as outer:
        os.chmod(outer, 0o777)
        folder, name = f"{outer}/theirs", f"{outer}/name"
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        os.symlink(folder, name)
        path = folder if way == "folder" else name
        done = subprocess.run([BIN, "run", "-o", path, "--", "touch", f"{outer}/started"], env=env, capture_output=True,
                              preexec_fn=lambda: (os.setgroups([]), os.setgid(NOBODY), os.setuid(NOBODY)), timeout=60)
        assert done.returncode == 2 and not os.path.exists(f"{outer}/started")
        assert done.stderr.decode() == f"gpumemprof: {path}: belongs to another user: name a folder of your own\n"
        assert os.listdir(folder) == []


HOST = "import os, sys; open('/proc/sys/kernel/hostname', 'wb').write(b'a/b \\xc3\\xa4'); os.execvp(sys.argv[1], sys.argv[1:])"


def test_a_machine_may_be_called_anything_and_all_files_call_it_the_same(tmp_path):
    alone = ["unshare", "--uts", harness.PYTHON, "-c", HOST]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs a name of its own for the machine (unshare --uts)")
    program = [harness.PYTHON, "-c", "import torch; torch.empty(7)"]
    harness.execute([*alone, *harness.run_argv(tmp_path / "r", program)]).ok()
    names = sorted(path.name for path in (tmp_path / "r").iterdir())
    assert "meta.json" in names and any(name.endswith(".gmp") for name in names)
    assert [name for name in names if not name.startswith(("a_b___.", "meta.json"))] == []


def test_before_its_first_event_a_run_has_no_event_yet(tmp_path):
    folder = tmp_path / "r"
    run = subprocess.Popen([harness.COMMAND, "run", "-q", "-o", folder, "--", harness.PYTHON, "-c", "import time; print(1, flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
    assert run.stdout.readline() == b"1\n"
    told = harness.execute([harness.COMMAND, "analyze", folder])
    run.terminate()
    run.wait()
    run.stdout.close()
    assert (told.rc, told.stderr.decode()) == (2, f"gpumemprof: {folder}: no event yet: its program runs, or was killed, and has allocated nothing\n")
    ended = harness.execute([harness.COMMAND, "analyze", folder])
    told = "nothing was recorded here: no process loaded PyTorch, TensorFlow or JAX; run --host records blocks of malloc and maps of 64 KiB and more. "
    assert ended.rc == 2 and ended.stderr.decode().startswith(f"gpumemprof: {folder}: {told}") and "SIGTERM" in ended.stderr.decode()
