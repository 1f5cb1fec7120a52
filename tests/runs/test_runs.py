"""A history of runs: in a folder, and in a bucket of a server that speaks S3 (moto's)."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request

import harness
import nested
import pytest

FIXTURES = harness.ROOT / "tests" / "fixtures" / "recordings"
# Line 4 of the program holds 7,000,001 bytes at the peak, line 8 the rest.
PROGRAM = """import torch

def first():
    return torch.empty(7_000_001, dtype=torch.uint8)

def second():
    # the line that changes
    return torch.empty({size}, dtype=torch.uint8)

kept = first(), second()
"""
RUNNING_PROGRAM = """import os, sys, time, light
kept = [light.Block(1_000) for i in range(100)]
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(100)
"""
BEFORE, AFTER = 2_000_003, 5_000_003


def run(*words, **popen):
    return harness.execute([harness.COMMAND, "runs", *words], **popen)


def listed(*options):
    return json.loads(run("list", "--format", "json", *options).ok().stdout)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    place = tmp_path_factory.mktemp("recorded")
    for name, size in (("before", BEFORE), ("after", AFTER)):
        program = place / "train.py"
        program.write_text(PROGRAM.format(size=size))
        nested.record(place / name, [harness.PYTHON, program]).ok()
    return place


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A URI of a bucket; its server ends with the tests."""
    pytest.importorskip("moto", reason="moto is not installed: scripts/setup tests")
    log = tmp_path_factory.mktemp("moto") / "log"
    with open(log, "w") as file:
        moto = subprocess.Popen([sys.executable, "-c", "import sys; from moto.server import main; main(['-p', '0', '-H', '127.0.0.1'])"],
                                stdout=file, stderr=file)
    try:
        assert harness.until(lambda: "Running on http" in log.read_text()), log.read_text()
        address = log.read_text().partition("Running on http://")[2].split()[0]
        urllib.request.urlopen(urllib.request.Request(f"http://{address}/team", method="PUT")).read()
        yield f"s3://team/runs?region=us-east-1&scheme=http&endpoint_override={address}"
    finally:
        moto.terminate()
        moto.wait(20)


@pytest.fixture(params=["folder", "bucket"])
def store(request, tmp_path, monkeypatch):
    """A store in which nothing is yet."""
    if request.param == "folder":
        return str(tmp_path / "history")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    return request.getfixturevalue("server").replace("/runs?", f"/runs-{time.monotonic_ns()}?")


def add(store, path, *options):
    """The id that was told."""
    done = run("add", path, "--store", store, *options).ok()
    return done.stdout.split()[0].decode()


def keys(store):
    """Every file of a store."""
    from pyarrow import fs
    system, path = fs.FileSystem.from_uri(store) if "://" in store else (fs.LocalFileSystem(), store)
    infos = system.get_file_info(fs.FileSelector(path, recursive=True))
    return {info.path[len(path) + 1:] for info in infos if info.type == fs.FileType.File}


def test_what_is_told_of_runs_is_listed_with_the_programs_own_sizes(store, recordings):
    before = add(store, recordings / "before", "--commit", "c0ffee", "--model", "two tensors", "--set", "batch=1", "--set", "lr=a=b")
    after = add(store, recordings / "after", "--commit", "decade", "--model", "two tensors")
    rows = listed("--store", store, "--line", "train.py:8")
    assert [(row["id"], row["commit"], row["line_bytes"]) for row in rows] == [(before, "c0ffee", BEFORE), (after, "decade", AFTER)]
    assert [row["peak_bytes"] - row["line_bytes"] >= 7_000_001 for row in rows] == [True, True]
    assert rows[0]["settings"] == "batch=1, lr=a=b" and rows[1]["settings"] is None
    assert [row["id"] for row in listed("--store", store, "--commit", "decade")] == [after]
    assert listed("--store", store, "--model", "other") == []
    assert [row["id"] for row in listed("--store", store, "--set", "batch=1", "--set", "lr=a=b")] == [before]
    assert listed("--store", store, "--set", "batch=1", "--set", "lr=a") == [] == listed("--store", store, "--set", "batch=2")
    assert [row["line_bytes"] for row in listed("--store", store, "--line", "first")] == [7_000_001] * 2
    assert [row["line_bytes"] for row in listed("--store", store, "--line", "no such line")] == [0, 0]


def test_a_run_added_twice_is_one_whatever_it_is_called(store, recordings, tmp_path):
    first = add(store, recordings / "before", "--commit", "one")
    there = keys(store)
    copy = tmp_path / "called otherwise"
    shutil.copytree(recordings / "before", copy)
    again = run("add", copy, "--store", store, "--commit", "two").ok()
    assert again.stdout.decode() == f"{first} is already there: {copy}\n"
    assert again.stderr.decode() == f"gpumemprof: {first}: keeps its commit: to change that, remove the run and add it again\n"
    same = run("add", copy, "--store", store, "--commit", "one").ok()
    assert same.stderr == b""
    harness.execute([harness.COMMAND, "seal", copy]).ok()
    assert add(store, copy) == first
    assert keys(store) == there and [row["commit"] for row in listed("--store", store)] == ["one"]
    snapshot = shutil.copy(FIXTURES / "streams_2.13.pickle", tmp_path / "a.pickle")
    renamed = shutil.copy(snapshot, tmp_path / "b.pickle")
    assert add(store, snapshot) == add(store, renamed)


def test_a_run_that_still_runs_is_refused_and_one_that_was_killed_is_not(store, tmp_path, light):
    program = tmp_path / "program.py"
    program.write_text(RUNNING_PROGRAM)
    recording, ready = tmp_path / "recording", tmp_path / "ready"
    command = [harness.COMMAND, "run", "-q", "-o", recording, "--", harness.PYTHON, program, ready]
    with subprocess.Popen(command, env={**light.env, "PYTHONPATH": str(harness.PROGRAMS)}) as running:
        try:
            assert harness.until(lambda: ready.exists() and ready.read_text())
            pid = int(ready.read_text())
            assert [pid] == json.loads(harness.execute([harness.COMMAND, "analyze", recording, "--format", "json"]).ok().stdout)["end"]["running_pids"]
            done = run("add", recording, "--store", store)
            assert (done.rc, done.stdout) == (2, b"")
            assert done.stderr.decode() == f"gpumemprof: {recording}: is still being recorded (pid {pid}): add it after its end\n"
            first = harness.execute([harness.COMMAND, "analyze", recording]).ok().stdout.decode().splitlines()[0]
            assert first == f"The program is still running (pid {pid}): figures are those until now."
        finally:
            running.kill()
            os.kill(int(ready.read_text()), 9)
    assert harness.until(lambda: end_of(recording)["state"] == "unknown")
    assert end_of(recording)["exit_code"] is end_of(recording)["signal"] is None
    first = harness.execute([harness.COMMAND, "analyze", recording]).ok().stdout.decode().splitlines()[0]
    assert first == "How the program ended is unknown: `run` was killed, or could not write it."
    added = add(store, recording)
    assert [(row["id"], row["peak_bytes"], row["lost"]) for row in listed("--store", store)] == [(added, 100_000, None)]


def end_of(recording):
    (one,) = json.loads(harness.execute([harness.COMMAND, "analyze", recording, "--format", "json"]).ok().stdout)["end"]["runs"]
    return one


def test_a_copy_that_was_cut_short_is_marked_and_replaced_by_the_whole_run(store, recordings, tmp_path):
    cut = tmp_path / "cut"
    shutil.copytree(recordings / "before", cut)
    for file in cut.glob("*.gmp"):
        os.truncate(file, 4096)  # its first page: the header
    done = run("add", cut, "--store", store, "--commit", "one")
    assert done.rc == 1
    (row,) = listed("--store", store)
    assert row["peak_bytes"] is None and row["lost"].startswith("LOST: ")
    whole = run("add", recordings / "before", "--store", store, "--model", "two").ok().stdout.decode()
    assert re.fullmatch(rf"{row['id']} replaced: {recordings / 'before'}: [\d,]+ events instead of 0\n", whole)
    (row,) = listed("--store", store)
    assert row["peak_bytes"] >= 7_000_001 + BEFORE and (row["commit"], row["model"], row["lost"]) == ("one", "two", None)
    assert run("show", row["id"], "--store", store).rc == 0, "one recording is kept"
    again = run("add", cut, "--store", store)
    assert again.stdout.decode() == f"{row['id']} is already there: {cut}\n"


def test_show_and_diff_are_the_commands_own_words(store, recordings):
    before, after = add(store, recordings / "before", "--commit", "abc"), add(store, recordings / "after")
    shown = run("show", before[:8], "--store", store).ok().stdout.decode()
    head, _, report = shown.partition("\n\n")
    assert f"id        {before}" in head and "commit    abc" in head
    told = harness.execute([harness.COMMAND, "analyze", recordings / "before"]).ok().stdout.decode()
    assert report.splitlines()[:-1] == told.splitlines()[:-1], "the last line names the folder"
    ours = json.loads(run("diff", before[:8], after, "--store", store, "--format", "json").ok().stdout)
    theirs = json.loads(harness.execute([harness.COMMAND, "diff", recordings / "before", recordings / "after", "--format", "json"])
                        .ok().stdout)
    assert ours["by_line"] == theirs["by_line"]
    changed = {row["line"].rsplit("/", 1)[-1]: row["b_bytes"] - row["a_bytes"] for row in ours["by_line"]}
    assert changed["train.py:8 second"] == AFTER - BEFORE


def test_rm_removes_exactly_what_is_named(store, recordings, tmp_path):
    before, after = add(store, recordings / "before"), add(store, recordings / "after")
    other = add(store, FIXTURES / "streams_2.13.pickle")
    all_keys = keys(store)
    for words in (["abcdef0123"], [before, "abcdef0123"], ["../" + before], [before[:3]], ["*"], [""], [before + "00"]):
        refused = run("rm", *words, "--store", store)
        assert refused.rc == 2 and refused.stderr.count(b"\n") == 1, refused
    assert keys(store) == all_keys
    assert run("rm", before, before[:9], "--store", store).ok().stdout.decode() == f"{before} removed\n"
    assert keys(store) == {key for key in all_keys if before not in key}
    assert {row["id"] for row in listed("--store", store)} == {after, other}
    assert add(store, recordings / "before") == before and keys(store) == all_keys


def test_the_store_s_lake_is_a_lake(recordings, tmp_path):
    store = str(tmp_path / "history")
    run_id = add(store, recordings / "before")
    rows = harness.execute([harness.COMMAND, "sql", f"{store}/lake", "SELECT run, size_bytes FROM peak_by_line WHERE line LIKE '%train.py:8%'",
                            "--format", "csv"]).ok().stdout.decode().split()
    assert rows == ["run,size_bytes", f"{run_id},{BEFORE}"]
    parquet = pytest.importorskip("pyarrow.parquet")
    own = parquet.read_table(f"{store}/lake/{run_id}/ranks.parquet").column("run").to_pylist()
    assert set(own) == {run_id}, "readers without our views see the same name"


def test_an_entry_that_lies_is_left_out_and_named(recordings, tmp_path):
    store = tmp_path / "history"
    good = add(store, recordings / "before")
    entries = store / "entries"
    told = json.loads((entries / f"{good}.json").read_text())
    bad = {
        "0" * 32: b"{", "1" * 32: json.dumps({**told, "id": "1" * 32, "lines": [{"line": 7, "size_bytes": "x"}]}).encode(),
        "2" * 32: b"[" * 200_000, "3" * 32: b"\xff" * 10, "4" * 32: json.dumps({**told, "id": "4" * 32, "schema_version": 9}).encode(),
        "5" * 32: json.dumps(told).encode(), "6" * 32: json.dumps({**told, "id": "6" * 32, "recorded_ns": "now"}).encode(),
    }
    for name, content in bad.items():
        (entries / f"{name}.json").write_bytes(content)
    (entries / "README").write_text("not an entry")
    done = run("list", "--store", store, "--format", "json")
    assert done.rc == 1 and [row["id"] for row in json.loads(done.stdout)] == [good]
    lines = done.stderr.decode().splitlines()
    assert len(lines) == len(bad) and all(f"left out: entries/{name}.json: " in line for name, line in zip(bad, lines)), lines
    escaped = {**told, "id": "7" * 32, "commit": "\x1b[31mred", "recorded_ns": 10**30}
    (entries / f"{'7' * 32}.json").write_text(json.dumps(escaped))
    assert b"\x1b" not in run("list", "--store", store).stdout


def test_an_add_that_was_interrupted_is_no_run_and_can_be_completed(recordings, tmp_path):
    store = tmp_path / "history"
    name = add(store, recordings / "before")
    whole = keys(str(store))
    (store / "entries" / f"{name}.json").unlink()
    next((store / "lake" / name).glob("intervals.*")).unlink()
    assert listed("--store", store) == []
    assert add(store, recordings / "before") == name and keys(str(store)) == whole


def test_the_commit_of_head_is_git_s(recordings, tmp_path):
    def git(*words):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words], cwd=tmp_path, check=True,
                              capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    store = tmp_path / "history"
    run("add", recordings / "before", "--store", store, "--commit", "HEAD", cwd=tmp_path).ok()
    assert [row["commit"] for row in listed("--store", store)] == [git("rev-parse", "HEAD")]
    of_head = run("list", "--store", store, "--commit", "HEAD", "--format", "json", cwd=tmp_path).ok()
    assert len(json.loads(of_head.stdout)) == 1
    outside = tmp_path.parent
    refused = run("add", recordings / "after", "--store", store, "--commit", "HEAD", cwd=outside, env=dict(os.environ, GIT_DIR="/none"))
    assert (refused.rc, refused.stderr.decode()) == (2, "gpumemprof: --commit HEAD: git names no commit here\n")


@pytest.mark.parametrize("words, line", [
    (["list"], "runs: name the store: --store FOLDER, --store s3://BUCKET/FOLDER, or set GPUMEMPROF_RUNS"),
    (["lst", "--store", "x"], "runs: there is no action 'lst'; did you mean list?"),
    (["add", "--store", "x"], "runs add takes one path or more"),
    (["diff", "abcdef", "--store", "x"], "runs diff takes two ids"),
    (["show", "abcdef", "--store", "x"], "x: No such file or directory"),
    (["show", "abcdef", "--store", "."], "abcdef: is not a run of this store"),
    (["list", "--store", "x"], "x: No such file or directory"),
    (["add", "nothing", "--store", "x"], "nothing: No such file or directory"),
    (["list", "--store", __file__], f"{__file__}: is a file: a store is a folder"),
    (["add", "nothing", "--store", "x", "--set", "batch"], "--set batch: write KEY=VALUE, such as batch=32"),
    (["list", "--store", ".", "--set", "batch"], "--set batch: write KEY=VALUE, such as batch=32"),
    (["show", "abcdef", "--store", ".", "--set", "batch=1"], "--set goes with add and list, not with show"),
    (["rm", "abcdef", "--store", ".", "--commit", "HEAD"], "--commit goes with add and list, not with rm"),
    (["add", "nothing", "--store", ".", "--line", "forward"], "--line goes with list, not with add"),
    (["diff", "abcdef", "fedcba", "--store", ".", "--format", "csv"], "--format csv does not go with diff, which has table and json"),
    (["add", "nothing", "--store", ".", "--format", "json"], "--format json does not go with add, which has table"),
])
def test_what_is_wrong_is_one_line(words, line, tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "GPUMEMPROF_RUNS"}
    done = run(*words, cwd=tmp_path, env=env)
    assert (done.rc, done.stderr.decode(), done.stdout) == (2, f"gpumemprof: {line}\n", b"")


@pytest.mark.parametrize("uri", ["nothing://x/y", "s3://", "s3://no-such-bucket-here/x?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:9",
                                 "s3://team/x?nonsense=1"])
def test_a_store_that_is_none_is_one_line(uri):
    env = dict(os.environ, AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_MAX_ATTEMPTS="1")
    done = run("list", "--store", uri, env=env, timeout=120)
    assert done.rc in (1, 2) and done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"gpumemprof: "), done


def test_a_folder_that_cannot_be_written_is_one_line(recordings, tmp_path):
    with contextlib.suppress(OSError):
        (tmp_path / "history").write_text("")
    done = run("add", recordings / "before", "--store", tmp_path / "history")
    assert done.rc == 2 and b"is a file: a store is a folder" in done.stderr


def test_a_name_in_a_bucket_leads_nowhere(server, recordings, tmp_path, monkeypatch):
    """A key of S3 is any text; a recording that is fetched stays in its private folder."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    store = server.replace("/runs?", f"/hostile-{time.monotonic_ns()}?")
    name = add(store, recordings / "before")
    address, folder = store.rpartition("=")[2], store.partition("://")[2].partition("?")[0]
    key = f"http://{address}/{folder}/sources/{name}/before/../../../escaped"
    urllib.request.urlopen(urllib.request.Request(key, data=b"x", method="PUT")).read()
    assert any(".." in key for key in keys(store)), "the server keeps the key as it is"
    done = run("show", name, "--store", store)
    assert done.rc == 2 and b"is not the name of a file of a recording" in done.stderr and done.stderr.count(b"\n") == 1, done
    assert not list(tmp_path.rglob("escaped")) and not list(tmp_path.iterdir())
