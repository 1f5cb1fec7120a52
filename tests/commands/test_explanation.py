"""The paragraph that explains the peak: every number in it is worked out again from the exported events."""
import collections
import re

import harness
import nested
import pytest
from carried_page import CarriedPage
from recorded_steps import Replay, format_bytes, line_of, record_steps, size_of

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record_steps(tmp_path_factory.mktemp("explanation"))


@pytest.fixture(scope="module")
def said(recording):
    return harness.analysis(recording)


@pytest.fixture(scope="module")
def replay(recording, said):
    ends = [moment["event_index"] for moment in said["moments"] if moment["kind"] == "step_end"]
    assert len(ends) == 40
    return Replay(harness.events(recording), ends)


def test_when_and_how_much(said, replay):
    figures = said["explanation_figures"]
    assert figures["peak_bytes"] == replay.peak_bytes
    assert figures["peak_blocks"] == len(replay.at_peak)
    steps_before = [m for m in said["moments"] if m["kind"] == "step_end" and m["event_index"] <= replay.peak_index]
    assert figures["step"] == len(steps_before) == 14, "the first spike after the known tensor was kept"
    assert re.match(
        rf"{format_bytes(replay.peak_bytes)} in {len(replay.at_peak)} blocks were live on cpu at the peak, .* after "
        rf"the first event, in step 14[:,]", said["explanation"])


def test_the_lines(said, replay):
    lines = collections.Counter()
    for event in replay.at_peak.values():
        lines[line_of(event)] += event["size_bytes"]
    ((first, first_bytes),) = lines.most_common(1)
    assert first_bytes == 20_000_000, "the spike is the largest"
    figures = said["explanation_figures"]
    assert figures["line_1_bytes"] == first_bytes
    share = f"{100 * first_bytes / replay.peak_bytes:.1f} %"
    assert f"steps_known.py:{first.line} train allocated most: {format_bytes(first_bytes)} ({share})" in said["explanation"]


def test_what_came_and_went_and_what_stays_between_steps(said, replay):
    figures = said["explanation_figures"]
    after = replay.ends[14]
    still = sum(e["size_bytes"] for a, e in replay.at_peak.items() if after.get(a) is e)
    assert figures["freed_in_step_bytes"] == replay.peak_bytes - still
    levels = sorted(size_of(live) for live in replay.ends[10:])
    assert figures["steady_bytes"] == levels[(len(levels) - 1) // 2]
    assert f"At the ends of steps 10 to 39, {format_bytes(figures['steady_bytes'])} were live (the median)." in said["explanation"]
    share = f"{100 * figures['freed_in_step_bytes'] / replay.peak_bytes:.1f} %"
    assert f"{format_bytes(figures['freed_in_step_bytes'])} ({share}) of the peak were freed before step 14 ended. " in said["explanation"]


def test_categories_and_modules_are_those_of_the_tables(said, replay):
    """Which the tests of categories compare with what PyTorch says."""
    figures, (device,) = said["explanation_figures"], [d for d in said["devices"] if d["device"] == "cpu"]
    largest = sorted(device["categories_at_peak"].values(), reverse=True)
    assert [figures[f"category_{n}_bytes"] for n in (1, 2, 3)] == largest[:3]
    assert figures["other_categories_bytes"] == replay.peak_bytes - sum(largest[:3])
    modules = [g for g in device["by_module_at_peak"] if g["module"]]
    assert figures["module_1_bytes"] == modules[0]["bytes"]
    share = f"{100 * modules[0]['bytes'] / replay.peak_bytes:.1f} %"
    assert modules[0]["module"] == "Sequential.0"
    assert f"; the largest module is Sequential.0: {format_bytes(modules[0]['bytes'])} ({share})." in said["explanation"]


def test_every_number_in_the_text_is_a_figure(said):
    """Sizes and counts that are not in the figures would be invented."""
    figures = said["explanation_figures"]
    sizes = {format_bytes(value) for name, value in figures.items() if name.endswith("_bytes")}
    for size in re.findall(r"\d[\d.]* (?:[KMG]iB|B)\b", said["explanation"]):
        assert size in sizes, size


def test_text_and_page_have_the_same_paragraph(recording, tmp_path):
    page = tmp_path / "report.html"
    harness.execute([harness.COMMAND, "analyze", recording, "-o", page]).ok()
    text = harness.execute([harness.COMMAND, "analyze", recording]).ok().stdout.decode()
    paragraph = text.split("The peak in plain words\n")[1].split("\n\n")[0]
    words = " ".join(line.strip() for line in paragraph.splitlines())
    assert " were live on cpu at the peak, " in words
    assert words in CarriedPage(page.read_text()).text.split("\n")


def test_without_stacks_and_categories_it_says_less(tmp_path):
    program = tmp_path / "plain.py"
    program.write_text("import torch\nkept = [torch.empty(1_000_000, dtype=torch.uint8) for _ in range(3)]\n")
    folder = nested.record(tmp_path / "r", [harness.PYTHON, program], ["--stacks", "none"]).ok().folder
    said = harness.analysis(folder)
    assert "; their types are unknown, because " in said["explanation"]
    assert "Which line allocated them is unknown: no stack was recorded." in said["explanation"]
    assert "module" not in said["explanation"].split("unknown: ")[-1]
    assert set(said["explanation_figures"]) == {"peak_bytes", "peak_blocks", "end_bytes"}
