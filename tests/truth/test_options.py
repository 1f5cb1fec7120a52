"""What the options of `run` change in the record, and that they change nothing else."""
import pytest

import harness

PROGRAM = ["-c", f"import sys; sys.path.insert(0, {str(harness.PROGRAMS)!r})\n"
                 "from light import Block\n"
                 "def outer():\n"
                 "    return Block(1234)\n"
                 "x = outer(); del x\n"]
PYTHON_STACK = ["Block.__init__", "outer", "<module>"]


@pytest.fixture
def recorded(record, light):
    def run(*options):
        done = record([harness.PYTHON, *PROGRAM], options, env=light.env).ok()
        return harness.events(done.folder)
    return run


def functions(event):
    return [f.function for f in harness.frames(event) if not isinstance(f, str)]


def test_python_stacks_are_what_one_gets(recorded):
    alloc, free = recorded()
    assert functions(alloc) == PYTHON_STACK
    assert "stack" not in free


def test_without_stacks_the_events_are_the_same(recorded):
    alloc, free = recorded("--stacks", "none")
    assert (alloc["size_bytes"], alloc["action"], free["action"]) == (1234, "alloc", "free_completed")
    assert alloc["address"] == free["address"]
    assert "stack" not in alloc and "stack" not in free


def test_native_stacks_name_the_library_and_the_function(recorded, light):
    alloc, _ = recorded("--stacks", "native")
    assert alloc["stack"][0] == f"{light.library} allocate"
    assert any(line.endswith("_PyEval_EvalFrameDefault") for line in alloc["stack"])
    assert functions(alloc) == []


def test_both_stacks_are_one_stack(recorded, light):
    alloc, _ = recorded("--stacks", "both")
    assert alloc["stack"][0] == f"{light.library} allocate"
    assert functions(alloc) == PYTHON_STACK


def test_stacks_of_frees(recorded):
    alloc, free = recorded("--free-stacks")
    assert functions(alloc) == PYTHON_STACK
    assert functions(free) == ["Block.__del__", "<module>"]


def test_frees_at_the_interpreters_exit_are_not_counted_as_lost_stacks(record, light):
    program = f"import sys; sys.path.insert(0, {str(harness.PROGRAMS)!r})\nfrom light import Block\nx = Block(1234)\n"
    done = record([harness.PYTHON, "-c", program], ["--free-stacks"], env=light.env).ok()
    alloc, free = harness.events(done.folder)
    assert functions(alloc) == ["Block.__init__", "<module>"] and "stack" not in free
    assert "gpumemprof: Nothing was lost.\n" in done.stderr.decode()


def test_cpu_tensors_can_be_left_out(record, light):
    done = record([harness.PYTHON, *PROGRAM], ["--no-cpu"], env=light.env).ok()
    assert not harness.files(done.folder)
    assert "nothing recorded" in done.stderr.decode()


def test_quiet_is_quiet(record, light):
    done = record([light.program, 10], ["-q"]).ok()
    assert (done.stdout, done.stderr) == (b"10 blocks\n", b"")


def test_a_usage_error_is_said_in_one_line_before_anything_starts(tmp_path):
    for options in (["--stacks", "wrong"], ["--max-disk", "many"], ["--no-such-option"]):
        done = harness.record(tmp_path / "recording", ["touch", tmp_path / "started"], options)
        assert done.rc == 2 and not (tmp_path / "started").exists(), done
        assert done.stderr.startswith(b"gpumemprof: ") and not done.stdout, done


def test_churn_is_counted_exactly(record, light):
    done = record([harness.PYTHON, harness.PROGRAMS / "churn.py", 50_000], env=light.env).ok()
    (said,) = done.printed()
    (device,) = harness.analysis(done.folder)["devices"]
    assert device["peak"]["requested_bytes"] == said["peak"]
    assert device["events"]["alloc"] == said["allocs"]
    assert device["total"]["alloc_bytes"] == said["total"]


@pytest.mark.slow
def test_a_limit_on_the_disk_keeps_peak_and_totals_exact(record, light):
    """The program rests now and then, so that the events that are dropped are dropped by sealing, not for want of room."""
    limit = 4_000_000
    done = record([harness.PYTHON, harness.PROGRAMS / "churn.py", 700_000, 30_000], ["--max-disk", limit], env=light.env).ok()
    (said,) = done.printed()
    analysis = harness.analysis(done.folder)
    (device,) = analysis["devices"]
    assert sum(f.stat().st_blocks * 512 for f in done.folder.iterdir()) <= limit
    assert analysis["source"]["events_read"] < said["allocs"] + said["frees"], "nothing was dropped, so this proves nothing"
    assert device["peak"]["requested_bytes"] == said["peak"]
    assert device["events"]["alloc"] == said["allocs"]
    assert device["total"]["alloc_bytes"] == said["total"]
    assert analysis["lost"]["events"] == 0


def test_a_limit_on_the_disk_keeps_peak_and_totals_exact_where_sealing_is_behind(record, light):
    """Faster than anything is sealed: nearly all of it is written before the first step of the sealing."""
    limit = 1_000_000
    done = record([harness.PYTHON, harness.PROGRAMS / "churn.py", 200_000], ["--max-disk", limit], env=light.env).ok()
    (said,) = done.printed()
    analysis = harness.analysis(done.folder)
    (device,) = analysis["devices"]
    assert sum(f.stat().st_blocks * 512 for f in done.folder.iterdir()) <= limit
    assert analysis["source"]["events_read"] < said["allocs"], "nothing was dropped, so this proves nothing"
    assert (device["peak"]["allocated_bytes"], device["peak"]["exact"]) == (said["peak"], True)
    assert (device["events"]["alloc"], device["total"]["alloc_bytes"]) == (said["allocs"], said["total"])
    assert analysis["lost"]["events"] == 0
    assert device["peak"]["upper_bound_bytes"] is None and "--max-disk" in device["unknown"]["peak.upper_bound_bytes"]


def test_a_peak_is_not_stated_as_exact_where_events_were_lost(record, light):
    """Without the room that `run` gives it to be behind: most is lost, which must be said wherever the peak is."""
    program = ["env", "GPUMEMPROF_MAX_DISK=1000000", harness.PYTHON, harness.PROGRAMS / "churn.py", 200_000]
    done = record(program, env=light.env).ok()
    (said,) = done.printed()
    analysis = harness.analysis(done.folder)
    (device,) = analysis["devices"]
    recorded_events = sum(device["events"].values())
    assert recorded_events + analysis["lost"]["events"] >= said["allocs"] + said["frees"]
    if analysis["lost"]["events"]:
        assert "LOST" in done.stderr.decode()
        assert "NOT EXACT" in done.stderr.decode()
    assert device["peak"]["exact"] == (analysis["lost"]["events"] == 0)
