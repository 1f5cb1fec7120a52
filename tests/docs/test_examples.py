"""The examples of the Python package do what they say. That of the recorder is in tests/examples_test.py."""

import re
import sys

import harness
import pytest
from pages import blocks, shape

pytest.importorskip("torch")
EXAMPLES = harness.ROOT / "examples"


def test_checkpointing_saves_what_the_layers_would_keep(tmp_path):
    """Each of 6 layers keeps 4 x width numbers a row twice, before and after its GELU; with checkpointing one does."""
    sizes = ["--width", "64", "--layers", "6", "--batch", "512", "--device", "cpu"]
    done = harness.record(tmp_path / "recording", [sys.executable, EXAMPLES / "compare_checkpointing.py", *sizes]).ok()
    shown = done.stdout.decode()
    assert shown.startswith("Figures: exact")
    without, with_it = (float(number) for number in re.findall(r"([\d.]+) MB over the start", shown))
    kept_mib = 512 * 4 * 64 * 4 * 2 / 2**20
    assert without - with_it > 0.9 * 5 * kept_mib


@pytest.mark.parametrize("leak", [True, False])
def test_kept_graphs_are_found_and_kept_numbers_are_none(tmp_path, leak):
    argv = [sys.executable, EXAMPLES / "find_a_leak.py", *(["--leak"] if leak else [])]
    # The tracker samples by time: on a machine that is busy with other things one try may have too few samples to
    # say anything, and says so by finding nothing.
    for attempt in range(3):
        shown = harness.record(tmp_path / f"recording{attempt}", argv).ok().stdout.decode()
        if not leak or "monotonic_increase" in shown:
            break
    assert ("monotonic_increase" in shown) == leak
    assert ("no leak found" in shown) == (not leak)


def test_torchrun_is_recorded_as_its_page_says(tmp_path):
    """Two real ranks, which is what takes its seconds: 8.17 MiB of the peak are parameters and buckets."""
    argv = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", EXAMPLES / "train_two_ranks.py"]
    done = harness.record(tmp_path / "job", argv).ok()
    (shown,) = (one.text for one in blocks("docs/places/torchrun.md") if one.note == 'title="the end of what it prints"')
    lines = {shape(line) for line in done.stderr.decode().splitlines()}
    assert [line for line in shown.splitlines() if shape(line) not in lines] == []
    assert sorted(re.findall(r"rank \d: loss", done.stdout.decode())) == ["rank 0: loss", "rank 1: loss"]
    report = harness.execute([harness.COMMAND, "analyze", tmp_path / "job"]).ok().stdout.decode()
    assert re.match(r"Peak 28\.\d MiB on cpu, .* rank [01] \(process \d+\)\nBoth ranks peak at 28\.\d MiB\.\n +16\.2 MiB +56\.\d %  .*train_two_ranks.py:\d+ <module>  optimizer.step\(\)\n"
                    r" +8\.02 MiB +Sequential\.0 +8\.02 MiB optimizer state\n +8\.00 MiB +\(outside of any module\) +8\.00 MiB temporary\n"
                    r" +8\.17 MiB ", report), report[:600]  # fmt: skip
