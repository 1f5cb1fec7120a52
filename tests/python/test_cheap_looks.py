"""Looks that nobody asked for take no more than 1 % of the time and each no more than 0.3 s; of what grows, 0.3 s in all."""
import gc

import harness
import pytest

torch = pytest.importorskip("torch")

from gpumemprof._recorded import standing  # noqa: E402
from gpumemprof._recorded.holders import arm  # noqa: E402
from gpumemprof._recorded.holders.look import _Look, look  # noqa: E402
from gpumemprof._recorded.holders.walk import Walk  # noqa: E402


class Marks:
    made = 0  # blocks, less those freed, in the span that ended

    def look_after(self, events, called):
        self.asked = events, called

    def blocks(self):
        return self.made


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now_s = work_s = 0.0

    monkeypatch.setattr(arm.time, "monotonic", lambda: Clock.now_s)
    monkeypatch.setattr(arm.time, "thread_time", lambda: Clock.work_s)
    monkeypatch.setattr(arm.atexit, "register", lambda call: None)
    return Clock


def looking(tmp_path, clock, took_s):
    one = arm._Looking(str(tmp_path), Marks(), cheap_since_s=0.0, growth=standing.Growth())
    limits = []

    def look(most_s, everywhere, at_end):
        assert not everywhere
        limits.append(most_s)
        clock.work_s += took_s
        return {"time_ns": 0, "why_incomplete": "", "holders": [], "storages": []}

    one.look = look
    return one, limits


def test_no_look_before_it_is_a_hundredth_of_the_time(tmp_path, clock):
    one, limits = looking(tmp_path, clock, took_s=0.05)
    one._ask()
    for clock.now_s in (0.1, 3, 4.9):
        one._called()
    assert limits == [] and one.marks.asked[0] == 64 * 8
    clock.now_s = 20.0
    one._called()
    assert limits == [pytest.approx(0.2)]


@pytest.mark.parametrize("enabled", [True, False])
def test_a_look_says_whether_the_programs_collector_was_on_and_leaves_it_so(tmp_path, clock, enabled):
    one, _ = looking(tmp_path, clock, took_s=0.05)
    clock.now_s = 60.0
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        one._look_once()
        assert (one.looks[-1]["gc_enabled"], gc.isenabled()) == (enabled, enabled)
    finally:
        (gc.enable if was else gc.disable)()


def test_only_a_look_that_nobody_asked_for_says_what_gives_it_more_time():
    short = "the walk over the program's objects took too long"
    assert look(0.0, everywhere=True)["why_incomplete"] == short
    assert look(0.0, everywhere=False)["why_incomplete"] == short + "; gpumemprof run --explain-leaks looks longer, and everywhere"


def test_where_neither_names_nor_graphs_were_walked_to_the_end_names_are_the_reason(monkeypatch):
    """What has no graph is held by a name, whatever the graphs have."""
    graphs, names = "the walk over the graphs took too long", "the walk over the program's objects took too long"
    monkeypatch.setattr(_Look, "add_graphs", lambda self, held: setattr(self, "why_incomplete", graphs))

    def look_past_what_no_name_reaches():
        unreached = [torch.ones(3)]
        unreached.append(unreached)
        del unreached
        return look(60.0)["why_incomplete"]

    assert look_past_what_no_name_reaches() == graphs
    monkeypatch.setattr(Walk, "walk_libraries", lambda self: setattr(self, "why_incomplete", names))
    assert look_past_what_no_name_reaches() == names


def test_all_looks_together_are_a_hundredth(tmp_path, clock):
    one, limits = looking(tmp_path, clock, took_s=0.3)
    for clock.now_s in (60.0, 61.0, 70.0, 71.0, 80.0):
        one._look_once()
    # Of 0.6 s at a minute one look takes half; 0.3 are left at once, then 0.1 more comes with ten seconds each.
    assert limits == [pytest.approx(0.3), pytest.approx(0.3), pytest.approx(0.1)]


def test_a_look_that_was_cut_short_is_taken_again_with_twice_its_time(tmp_path, clock):
    one, limits = looking(tmp_path, clock, took_s=0.06)
    for clock.now_s in (5.0, 12.0, 15.0, 16.5):  # of 0.05, 0.12, 0.15, 0.165 s in all, 0.06 are spent
        one._look_once()
    assert limits == [pytest.approx(0.05), pytest.approx(0.105)]


def test_the_end_is_looked_at_once_though_a_spawned_process_tells_of_it_twice(tmp_path, clock):
    one, limits = looking(tmp_path, clock, took_s=0.1)
    clock.now_s = 60.0
    one.at_exit()
    one.at_exit()
    assert limits == [pytest.approx(0.3)]


def test_what_goes_on_to_grow_is_looked_at_for_three_tenths_of_a_second_in_all(tmp_path, clock):
    one, limits = looking(tmp_path, clock, took_s=0.1)
    one._ask()
    for one.marks.made in (16, 16, 16, 16, 16, 15, 16, 16):  # in spans of 64, 128, … events; from 1,024 on it counts
        one._called()
    assert limits == [pytest.approx(0.3)]
    for _ in range(5):
        one._called()
    assert limits == [pytest.approx(0.3), pytest.approx(0.2), pytest.approx(0.1)]


def test_what_is_made_and_never_freed_is_no_growth(tmp_path, clock):
    one, limits = looking(tmp_path, clock, took_s=0.1)
    one._ask()
    for span in range(12):
        one.marks.made = 64 * 2**span // 4
        one._called()
    assert limits == []


@pytest.mark.parametrize("spans, running, grows", [
    ((30, 5, 6), 4, True), ((30, 5, 3), 1, True), ((30, 9, -3), 7, True),
    ((30, 5, 3), 0, False), ((30, 12, 3), 0, False), ((30, 0, 6), 1, False),
    ((64, 128, 120), 10, False),  # a model that is made
    ((30, 9), 9, False),  # too short to tell
])
def test_a_few_blocks_more_are_enough_at_the_end_of_a_short_program(spans, running, grows):
    growth = standing.Growth()
    for blocks in spans:
        growth.add_span(blocks)
    growth.end(running)
    assert growth.is_seen() == grows


@pytest.mark.parametrize("waits", [True, False], ids=["at_its_end", "within"])
def test_a_look_finds_a_moment_beside_the_backward_pass(tmp_path, clock, waits):
    """The second half of each step's events come in its backward pass: a call due there comes at its end or within it."""
    for length in range(2, 300):
        one, limits = looking(tmp_path, clock, took_s=0.1)
        clock.now_s, at, backward = 60.0, length - 1, length // 2
        one.is_unsafe = lambda: at % length >= backward
        one._called()
        while not limits:
            at += one.marks.asked[0]
            assert at < 4 * length, f"{length} events a step"
            if waits and one.is_unsafe():
                at += length - 1 - at % length
            one.marks.asked[1]()


LEAK = """
import torch
class History:
    def __init__(self):
        self.losses = []
def main():
    history, model = History(), torch.nn.Linear(500, 50)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for step in range(400):
        loss = model(torch.ones(40, 500)).relu().sum()
        loss.backward(retain_graph=True); optimizer.step(); optimizer.zero_grad()
        history.losses.append(loss)
main()
"""


FEATURES = """
import torch
from torch import nn
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.Flatten(), nn.Linear(28800, 10))
features = []
model[2].register_forward_hook(lambda module, inputs, output: features.append(output))
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
for step in range(24):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 3, 32, 32)), torch.zeros(8, dtype=torch.long))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""


@pytest.mark.alone  # looks have 0.3 s of the clock: on a full machine none may come between two steps
def test_a_leak_of_a_short_run_is_named_without_asking(tmp_path):
    program = tmp_path / "leak.py"
    program.write_text(LEAK)
    done = harness.record(tmp_path / "r", [harness.PYTHON, program]).ok()
    (leak,) = [finding for finding in harness.analysis(done.folder)["findings"] if finding["kind"] == "leak"]
    assert leak["evidence"]["holder"].startswith("History.losses")
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("gpumemprof: Leak: History.losses keeps ") and "Fix: " in last


@pytest.mark.parametrize("options", [[], ["--host"]], ids=["tensors", "host"])
def test_a_leak_of_two_dozen_steps_is_named_at_its_end(tmp_path, options):
    program = tmp_path / "features.py"
    program.write_text(FEATURES)
    done = harness.record(tmp_path / "r", [harness.PYTHON, program], options).ok()
    (leak,) = [finding for finding in harness.analysis(done.folder)["findings"]
               if (finding["kind"], finding["device"]) == ("leak", "cpu")]
    assert leak["evidence"]["holder"] == "features in <module> (features.py)" and leak["name"] == "hook_stores"


@pytest.mark.slow
def test_a_leak_of_a_long_run_is_named_without_asking(tmp_path):
    program = tmp_path / "leak.py"
    program.write_text(
        "import time, torch\n"
        "class History:\n    def __init__(self):\n        self.losses = []\n"
        "history, model = History(), torch.nn.Linear(500, 50)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.01)\n"
        "begin = time.monotonic()\n"
        "while time.monotonic() - begin < 30:\n"
        "    loss = model(torch.ones(40, 500)).relu().sum()\n"
        "    loss.backward(); optimizer.step(); optimizer.zero_grad()\n"
        "    history.losses.append(loss); time.sleep(0.05)\n")
    folder = harness.record(tmp_path / "r", [harness.PYTHON, program], ["-q"]).ok().folder
    (leak,) = [finding for finding in harness.analysis(folder)["findings"] if finding["kind"] == "leak"]
    assert leak["evidence"]["holder"].startswith("History.losses")


def test_never_is_never(tmp_path):
    program = tmp_path / "p.py"
    program.write_text("import os, sys, torch\nprint(os.environ['GPUMEMPROF_EXPLAIN_LEAKS'], "
                       "any('holders' in name for name in sys.modules))\n")
    done = harness.record(tmp_path / "r", [harness.PYTHON, program], ["-q", "--no-explain-leaks"]).ok()
    assert done.stdout.decode().split() == ["0", "False"]
