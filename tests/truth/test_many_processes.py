"""More processes than there may be open files, and what the programs get that are started."""
import json
import resource
import sys

import harness

CHILDREN = 200
FORKS = f"""
import os
from light import Block
for i in range({CHILDREN}):
    if os.fork() == 0:
        block = Block(10_000 + i)
        os._exit(0)
    os.wait()
"""
LIMIT = f"import resource, os, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); os.execv(sys.argv[1], sys.argv[1:])"


def with_few_descriptors(*words):
    return harness.execute([sys.executable, "-c", LIMIT, *words]).ok()


def test_a_recording_of_more_processes_than_descriptors_is_read_whole(record, light):
    done = record([harness.PYTHON, "-c", FORKS], env=light.env | {"PYTHONPATH": str(harness.PROGRAMS)}).ok()
    assert len(harness.files(done.folder)) == CHILDREN
    analysis = json.loads(with_few_descriptors(harness.COMMAND, "analyze", done.folder, "--format", "json").stdout)
    assert sorted(d["peak"]["allocated_bytes"] for d in analysis["devices"]) == [10_000 + i for i in range(CHILDREN)]
    assert all(d["peak"]["exact"] for d in analysis["devices"]) and analysis["lost"]["events"] == 0
    exported = with_few_descriptors(harness.COMMAND, "export", done.folder, "--to", "jsonl")
    sizes = [json.loads(line)["size_bytes"] for line in exported.stdout.splitlines()]
    assert (sorted(sizes), exported.stderr) == ([10_000 + i for i in range(CHILDREN)], b"")


def test_the_program_gets_the_limit_of_descriptors_that_it_would_have_had(record, light):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    mine = (min(soft, 300), hard)
    show = [harness.PYTHON, "-c", "import resource; print(list(resource.getrlimit(resource.RLIMIT_NOFILE)))"]
    done = record(show, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, mine)).ok()
    assert done.printed() == [list(mine)]
