"""How much was held at one moment: to the byte of one thread, between two bounds of several."""
import pytest

import harness


def peak_of(record, light, threads, blocks):
    done = record([harness.PYTHON, harness.PROGRAMS / "at_once.py", threads, blocks], env=light.env).ok()
    (said,) = done.printed()
    (device,) = harness.analysis(done.folder)["devices"]
    text = harness.execute([harness.COMMAND, "analyze", done.folder]).ok().stdout.decode()
    return said, device["peak"], [line for line in text.splitlines() if "The peak may be up to " in line]


def as_shown(size_bytes):
    value, unit = (size_bytes / 2**20, "MiB") if size_bytes >= 1023.5 * 2**10 else (size_bytes / 2**10, "KiB")
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def test_of_one_thread_it_is_known_to_the_byte(record, light):
    said, peak, lines = peak_of(record, light, 1, 5000)
    assert said["least"] == said["most"] == peak["allocated_bytes"] == peak["upper_bound_bytes"]
    assert lines == []


@pytest.mark.parametrize("threads", [2, 4])
def test_of_several_threads_it_lies_between_the_bounds(record, light, threads):
    said, peak, lines = peak_of(record, light, threads, 5000)
    assert peak["exact"]
    assert said["least"] <= peak["upper_bound_bytes"], "the most that can have been held is less than what was"
    assert peak["allocated_bytes"] <= said["most"], "the least that was held is more than what can have been"
    assert peak["allocated_bytes"] <= peak["upper_bound_bytes"] <= peak["allocated_bytes"] + threads * 10_000
    least, most = as_shown(peak["allocated_bytes"]), as_shown(peak["upper_bound_bytes"])
    expected = f"Note: The peak may be up to {most}: {threads} threads allocated and freed, perhaps at the same time."
    assert lines == ([] if least == most else [expected])
