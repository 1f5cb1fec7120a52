"""What the allocator says of itself is taken where everything about it is as it should be, and only there.

Against a stand-in for libc10_cuda of our own, which can do what the real one never does; the real one is under the
same recorder in tests/reference_allocator.
"""

import json
import os
import pathlib
import pickle
import subprocess

import harness
import pytest

HERE = pathlib.Path(__file__).parent
BASE = 0x7F0000000000


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """build(VERSION, FLAG…): the program beside a stand-in of that release."""
    known = {}

    def make(version="2.13.0+cu130", *flags):
        if (version, flags) not in known:
            folder = tmp_path_factory.mktemp("torch") / "torch"
            lib = folder / "lib"
            lib.mkdir(parents=True)
            (folder / "version.py").write_text(f"__version__ = '{version}'\ndebug = False\n")
            shared = ["g++", "-O1", "-std=c++17", "-fPIC", "-shared"]
            subprocess.run([*shared, HERE / "fake_c10.cc", "-o", lib / "libc10.so"], check=True)
            subprocess.run([*shared, *flags, HERE / "fake_c10_cuda.cc", "-o", lib / "libc10_cuda.so", f"-L{lib}",
                            "-lc10", f"-Wl,-rpath,{lib}"], check=True)
            subprocess.run(["g++", "-O1", HERE / "call_c10_cuda.cc", "-o", folder / "call", f"-L{lib}", "-lc10_cuda",
                            "-lc10", f"-Wl,-rpath,{lib}"], check=True)
            known[version, flags] = folder / "call"
        return known[version, flags]

    return make


def record(program, folder, wrong="", **environment):
    done = harness.execute([harness.COMMAND, "run", "-o", folder, "--", program, wrong],
                           env=dict(os.environ) | environment)
    assert done.ok().stdout == b"done\n"
    return folder


def events_of(folder):
    done = harness.execute([harness.COMMAND, "export", folder, "--to", "jsonl"]).ok()
    return [json.loads(line) for line in done.stdout.splitlines()]


def why_not(folder):
    done = harness.execute([harness.COMMAND, "whatif", folder])
    assert done.rc == 2 and done.stderr.count(b"\n") == 1
    return done.stderr.decode()


def test_the_history_has_segments_streams_pools_and_what_was_asked_for(build, tmp_path):
    folder = record(build(), tmp_path / "recording", PYTORCH_ALLOC_CONF="max_split_size_mb:64")
    out = tmp_path / "out.pickle"
    harness.execute([harness.COMMAND, "export", folder, "--to", "snapshot", "-o", out]).ok()
    snapshot = pickle.loads(out.read_bytes())
    seen = [(e["action"], e.get("addr", e.get("device_free")), e["size"]) for e in snapshot["device_traces"][0]]
    assert seen == [
        ("segment_alloc", BASE, 2 << 20),
        ("alloc", BASE, 1000), ("alloc", BASE + 1024, 1001), ("alloc", BASE + 2048, 1002),
        ("free_requested", BASE, 1000), ("free_completed", BASE, 1000),
        ("free_requested", BASE + 1024, 1001),
        ("oom", 4096, 1 << 20),
        ("free_completed", BASE + 1024, 1001),
    ]
    assert {(e["stream"], tuple(e["pool_id"])) for e in snapshot["device_traces"][0]} == {(64, (0, 7))}
    (segment,) = snapshot["segments"]
    assert (segment["allocated_size"], segment["requested_size"], segment["segment_type"]) == (1024, 1002, "small")
    assert snapshot["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64"


def test_a_block_is_counted_once(build, tmp_path):
    events = events_of(record(build(), tmp_path / "recording"))
    assert [e["action"] for e in events].count("alloc") == 3
    assert [e.get("requested_bytes") for e in events if e["action"] == "alloc"] == [1000, 1001, 1002]
    # The second half of a free alone does not say where the block was.
    assert {e.get("stream") for e in events if e["action"] != "free_completed"} == {64}
    analysis = harness.analysis(tmp_path / "recording")
    (device,) = analysis["devices"]
    assert device["peak_allocated"]["allocated_bytes"] == 3072
    assert device["total"]["unmatched_frees"] == 0


@pytest.mark.parametrize(("wrong", "words"), [
    ("address", "the allocator's history and its reports do not agree"),
    ("reserved", "the segments do not add up to what the allocator has reserved"),
    ("size", "a block is smaller than what was asked for"),
    ("late", "the allocator was not followed from its start"),
])
def test_what_does_not_fit_switches_it_off_and_the_reports_are_recorded_as_ever(build, tmp_path, wrong, words):
    folder = record(build(), tmp_path / "recording", wrong)
    assert f"cuda:0: {words}" in why_not(folder)
    seen = [(e["action"], e["size_bytes"]) for e in events_of(folder) if not e["action"].startswith("segment")]
    assert [e for e in seen if e[0] == "alloc"] == [("alloc", 1024)] * 3
    assert [e for e in seen if e[0] == "free_requested"] == [("free_requested", 1024)] * 2
    device = harness.analysis(folder)["devices"][0]
    assert device["replay"] is None and words in device["unknown"]["replay"]


@pytest.mark.parametrize(("version", "flags", "words"), [
    ("2.13.0a0+gitabc", (), "the layout of this PyTorch's allocator is not known"),
    ("2.99.0", (), "the layout of this PyTorch's allocator is not known"),
    ("2.12.0", (), "this build of PyTorch's allocator has other functions than the release"),
    ("2.13.0", ("-DONE_MORE",), "this build of PyTorch's allocator has other functions than the release"),
    ("2.13.0", ("-DCLASS=CudaMallocAsyncAllocator",), "another allocator than PyTorch's own caching one is in use"),
])
def test_an_allocator_that_is_not_the_known_one_is_left_alone(build, tmp_path, version, flags, words):
    folder = record(build(version, *flags), tmp_path / "recording")
    assert f"cuda:0: {words}" in why_not(folder)
    assert len([e for e in events_of(folder) if e["action"] == "alloc"]) == 3
