"""A program that finds libc10 by a relative LD_LIBRARY_PATH: the loader knows the library by a relative name."""
import json
import os
import subprocess

import harness


def test_the_real_allocator_is_found_by_a_relative_name(tmp_path):
    (tmp_path / "lib").symlink_to(harness.TORCH_LIB)
    harness.execute(["g++", "-O1", harness.ROOT / "tests/probe/oom_c10.cc", "-o", tmp_path / "program",
                     f"-L{harness.TORCH_LIB}", "-l:libc10.so", "-Wl,--allow-shlib-undefined"]).ok()
    env = os.environ | {"LD_LIBRARY_PATH": "lib"}
    run = subprocess.run([harness.COMMAND, "run", "-q", "-o", "recording", "--", "./program"],
                         cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "thrown\n"), run.stderr
    lines = harness.execute([harness.COMMAND, "export", tmp_path / "recording", "--to", "jsonl"]).ok().stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["action"] for event in events] == ["alloc", "free_completed", "oom"]
    assert (events[0]["size_bytes"], events[2]["size_bytes"]) == (1000, 1 << 60)
