"""`gpumemprof estimate --trace FILE`: answers and messages, from traces written by hand."""

import json

import harness
import pytest

MIB = 1 << 20


def trace(path, lines, batch=2):
    events = sum(not line.startswith("s ") for line in lines)
    facts = json.dumps({"batch": batch, "torch": "2.6.0"}) if isinstance(batch, int) else batch
    path.write_text("\n".join(["gpumemprof-estimate 1", facts, *lines, f"e {events}"]) + "\n")
    return path


@pytest.fixture
def one(tmp_path):
    """A storage of 33 MiB."""
    return trace(tmp_path / "one.trace", ["p forward", f"a 0 {33 * MIB} 0 - 0"])


def estimate(*options):
    return harness.execute([harness.COMMAND, "estimate", *options])


def refused(*options):
    done = estimate(*options)
    said = done.stderr.decode()
    assert done.rc == 2 and said.count("\n") == 1 and done.stdout == b"", repr(done)
    return said


# Two sizes between powers of two: it is rounded to 48 MiB, and 48 MiB less the 7 % of the interval are 44.9 MiB.
TOO_MUCH = ["--settings", "roundup_power2_divisions:2", "--capacity", "48MiB", "--device-constant", "0"]


def test_settings_that_run_out_of_memory_are_no_better_line(one):
    found = json.loads(estimate("--trace", one, *TOO_MUCH, "--format", "json").ok().stdout)
    assert found["capacity"]["verdict"] == "fits" and not any("out of memory" in why for why in found["unknown"])
    (row,) = found["table"]
    assert [row[peak] for peak in ("live", "allocated", "reserved", "device")] == [None] * 4
    assert row["unknown"][-1].startswith("runs out of memory at 44.9 MiB")
    text = estimate("--trace", one, *TOO_MUCH).ok().stdout.decode()
    (line,) = [line for line in text.splitlines() if "roundup" in line]
    assert line.split()[:3] == ["unknown"] * 3 and "runs out of memory at 44.9 MiB" in line


def test_the_interval_of_allocated_bytes_is_shown_everywhere(one):
    peaks = json.loads(estimate("--trace", one, "--format", "json").ok().stdout)["peaks"]
    off = peaks["device"]["high_bytes"] - peaks["device"]["expected_bytes"]
    assert off > 0 and peaks["allocated"]["high_bytes"] == peaks["allocated"]["expected_bytes"] + off
    text = estimate("--trace", one).ok().stdout.decode()
    assert "intervals come from timm models" in text and "33.0 MiB   33.0 MiB" in text


@pytest.mark.parametrize("kind", ["trace", "prices", "config"])
def test_an_input_is_never_written_over(tmp_path, one, kind):
    prices, config = tmp_path / "prices.csv", tmp_path / "config.json"
    prices.write_text("board,memory,price_per_hour,currency\nA,80GiB,2,EUR\n")
    config.write_text("{}")
    path = {"trace": one, "prices": prices, "config": config}[kind]
    before = path.read_bytes()
    if kind == "config":
        refused("--config", config, "--output", path)
    else:
        refused("--trace", one, "--prices", prices, "--output", path)
    assert path.read_bytes() == before


def test_messages_name_what_is_wrong(tmp_path, one):
    prices = tmp_path / "prices.csv"
    prices.write_text("board,price\n")
    assert refused("--trace", one, "--prices", prices).startswith(f"gpumemprof: {prices}: ")
    prices.write_text("board,memory,price_per_hour,currency\nA,80GiB,2,EUR\nB,80GiB,2,USD\n")
    assert refused("--trace", one, "--prices", prices).startswith(f"gpumemprof: {prices}: ")
    assert refused("--trace", one, "--tp", "2") == "gpumemprof: estimate: --tp goes with --config\n"
    assert refused("--trace", one, "--fsdp") == "gpumemprof: estimate: --fsdp goes with --config\n"
    assert refused("--", "no-such-program", "--many", "words").startswith("gpumemprof: no-such-program: ")
    odd = trace(tmp_path / "odd.trace", ["x"], batch='{"batch": "two"}')
    assert refused("--trace", odd).rstrip().endswith("(at byte 23)")


def test_a_search_follows_the_release_that_traced(tmp_path):
    """What it finds fits by the very rules that the answer names, and one more does not."""
    low = trace(tmp_path / "low", ["p forward", f"a 0 {2 * 3 * MIB} 0 - 0"], 2)
    high = trace(tmp_path / "high", ["p forward", f"a 0 {4 * 3 * MIB} 0 - 0"], 4)
    options = ["--trace", low, "--trace", high, "--capacity", "1GiB", "--device-constant", "0", "--format", "json"]
    found = json.loads(estimate(*options, "--batch", "auto").ok().stdout)
    # 1 GiB / 1.07 is 957 MiB: 318 samples of 3 MiB are 954, which is 2 MiB's multiple; 319 are 958 MiB.
    assert found["largest_batch"]["batch"] == 318
    assert any("PyTorch 2.6" in one["what"] for one in found["assumptions"])
