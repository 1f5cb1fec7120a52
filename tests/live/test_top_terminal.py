"""The terminal view as a person has it: in tmux, at two sizes, with keys, a mouse and a size that changes."""
import json
import os
import re

import harness
import pytest
from commands.programs_for_commands import LIVE_BYTES, recorded_pid, standing_program
from live_helpers import picture, terminal
from schema_test import validator

TOP = [harness.COMMAND, "top", "--interval", "0.2"]


def row_of(lines, pid):
    return next(line for line in lines if line.split()[:1] == [str(pid)])


def choose(screen, pid):
    """The screen with the row of this process selected: others of the machine may be recorded, too, and hold more."""
    screen.until(r"HELD NOW BY LINES OF")
    screen.keys("Home")
    for _ in range(20):
        try:
            return screen.until(rf"HELD NOW BY LINES OF pid {pid} ", 1)
        except AssertionError:
            screen.keys("j")
    raise AssertionError("\n".join(screen.lines()))


@pytest.mark.parametrize("width, height", [(80, 24), (200, 60)])
def test_it_shows_the_figures(standing, tmp_path, width, height):
    with terminal(tmp_path, width, height, [*TOP, str(standing.folder)]) as screen:
        lines = choose(screen, standing.pid)
        assert len(lines) == height
        assert lines[0].startswith(" 1 Overview 2 Holders 3 Processes 4 Ranks 5 Alerts 6 GPU ? Help")
        assert lines[1].startswith("Memory") or lines[1].startswith("Cgroup")
        words = row_of(lines, standing.pid).split()
        if width == 80:
            assert words[1:6] == ["cpu", "10.0", "MiB", "74.0", "MiB"]
        else:
            assert words[1:6] == ["cpu", "10.0", "MiB", "unknown", "74.0"]
        assert any("<string>:3" in line for line in lines)
        assert lines[-1].startswith("q quit")
        screen.keys("q")
        screen.until(r"^ended: 0$")


def test_keys_choose_views_and_q_leaves_the_terminal_as_it_was(standing, tmp_path):
    with terminal(tmp_path, 80, 24, [*TOP, str(standing.folder)]) as screen:
        screen.until(r"HELD NOW")
        screen.keys("Enter")
        screen.until(r"^Its stack, the allocating line first:$")
        screen.keys("3")
        screen.until(r"RESIDENT +DEVICES +RECORDED")
        screen.keys("4")
        screen.until(r"RANK +PID +DEVICE")
        screen.keys("5")
        screen.until(r"TIME +LEVEL")
        screen.keys("?")
        screen.until(r"^q Ctrl-C +quit$")
        screen.keys("p")
        screen.until(r"paused \d\d:\d\d:\d\d$")
        screen.keys("W")
        screen.until(r"limits 85/95 %$")
        screen.keys("C-c")
        lines = screen.until(r"^ended: 0$")
        assert not any("Overview" in line for line in lines), "the screen before is back"


def test_a_lower_threshold_raises_an_alert(standing, tmp_path):
    with terminal(tmp_path, 120, 24, [*TOP, str(standing.folder), "--warning-threshold", "0.1", "--critical-threshold", "100"]) as screen:
        screen.keys("5")
        screen.until(r"warning +memory of the \w+ .*are in use; the threshold is 0.1 %$")


def test_a_click_on_a_tab_chooses_it(standing, tmp_path):
    with terminal(tmp_path, 80, 24, [*TOP, str(standing.folder)]) as screen:
        screen.until(r"1 Overview")
        # What a terminal sends for a press of the left button in column 30 of the first row (SGR encoding is asked of
        # none here: X10's is what TERM=screen has).
        screen.keys("-H", "1b", "5b", "4d", "20", f"{32 + 30:x}", "21")
        screen.until(r"RESIDENT +DEVICES +RECORDED")


def test_a_change_of_size_is_followed(standing, tmp_path):
    with terminal(tmp_path, 80, 24, [*TOP, str(standing.folder)]) as screen:
        screen.until(r"HELD NOW")
        screen.run("resize-window", "-x", "120", "-y", "30")
        lines = screen.until(r"PID DEVICE +ALLOCATED +RESERVED")
        assert len(lines) == 30
        screen.run("resize-window", "-x", "20", "-y", "4")
        lines = screen.until(r"^ 1 Overview 2 Holder$")
        assert len(lines) == 4
        screen.keys("q")
        screen.run("resize-window", "-x", "80", "-y", "24")
        screen.until(r"^ended: 0$")


def test_export_and_tracking_write_what_other_commands_read(standing, tmp_path):
    with terminal(tmp_path, 80, 24, [*TOP, str(standing.folder)]) as screen:
        screen.until(r"HELD NOW")
        screen.keys("e")
        name = re.search(r"written: (\S+)", "\n".join(screen.until(r"^written: "))).group(1)
        said = json.loads((tmp_path / name).read_text())
        validator("live.schema.json").validate(said)
        (recording,) = [r for r in said["recordings"] if r["pid"] == standing.pid]
        assert recording["devices"][0]["allocated_bytes"] == LIVE_BYTES
        screen.keys("t")
        screen.until(r"tracking \d\d:\d\d:\d\d$")
        screen.keys("t")
        screen.until(r"^saved: ")
        screen.keys("q")
        screen.until(r"^Saved: gpumemprof-top-\S+\.jsonl$")
    (tracked,) = tmp_path.glob("*.jsonl")
    analyzed = json.loads(harness.execute([harness.COMMAND, "analyze", tracked, "--format", "json"]).ok().stdout)
    assert analyzed["source"]["events"] >= 1


def test_it_needs_neither_colours_nor_unicode(standing, tmp_path):
    with terminal(tmp_path, 80, 24, ["env", "TERM=vt100", "LC_ALL=C", *TOP, str(standing.folder)]) as screen:
        lines = screen.until(r"HELD NOW")
        assert re.search(r" \[?#+\.*", lines[1]) and all(line.isascii() for line in lines)


@pytest.mark.parametrize("signal", ["TERM", "HUP"])
def test_a_signal_ends_it_cleanly(tmp_path, signal):
    argv = ["sh", "-c", f'"$0" top & sleep 2; kill -{signal} $!; wait $!', harness.COMMAND]
    done = harness.execute(["script", "-qec", " ".join(f"'{a}'" for a in argv), "/dev/null"],
                           env=dict(os.environ, TERM="xterm-256color", COLUMNS="80", LINES="24"))
    assert done.rc in (0, 2), done  # a job in the background may be refused the terminal


@pytest.mark.parametrize("name, why", [("none-such", "is unknown here"), ("dumb", "cannot move its cursor")])
def test_a_terminal_that_cannot_be_drawn_on_is_said(tmp_path, name, why):
    with terminal(tmp_path, 80, 24, ["env", f"TERM={name}", harness.COMMAND, "top"]) as screen:
        screen.until(rf"the terminal '{name}' \(TERM\) {why}; top --once prints")
        screen.until(r"^ended: 2$")


def test_a_rank_is_known_from_the_environment(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("RANK", "3")
    with standing_program(tmp_path / "r"):
        pid = recorded_pid(tmp_path / "r")
        (recording,) = [r for r in picture("--interval", "0")["recordings"] if r["pid"] == pid]
    assert recording["rank"] == 3
