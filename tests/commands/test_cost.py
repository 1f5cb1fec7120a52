"""`analyze` and `advise` with --price and --prices: what it costs, by the user's own prices."""

import json
import re

import harness
import jsonschema
import nested
import pytest
import snapshots

FIXTURES = harness.ROOT / "tests" / "fixtures" / "recordings"
SNAPSHOT = FIXTURES / "pools_2.15.pickle"
GIB = 1 << 30


def call(*words):
    return harness.execute([harness.COMMAND, *words])


def cost_of(path, *options, command="analyze"):
    report = json.loads(call(command, path, "--format", "json", "--no-seal", *options).ok().stdout)
    schema = json.loads((harness.ROOT / "docs" / "schemas" / f"{'analysis' if command == 'analyze' else 'advice'}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(report)
    return report.get("cost")


def test_without_a_price_nothing_is_said():
    assert cost_of(SNAPSHOT) is None
    assert b"costs" not in call("analyze", SNAPSHOT).ok().stdout


def test_waste_is_reserved_less_allocated_as_a_share_of_the_day(tmp_path):
    report = json.loads(call("analyze", SNAPSHOT, "--format", "json").ok().stdout)
    device = report["devices"][0]
    reserved, allocated = device["peak_reserved"]["reserved_bytes"], device["peak_allocated"]["allocated_bytes"]
    cost = cost_of(SNAPSHOT, "--price", "2.40 EUR/h", "--capacity", "1GiB")
    assert (cost["reserved_bytes"], cost["allocated_bytes"], cost["waste_bytes"]) == (reserved, allocated, reserved - allocated)
    assert reserved == snapshots.reserved_peak(snapshots.load(SNAPSHOT), 0).bytes
    assert (cost["need_bytes"], cost["need_basis"], cost["board_bytes"], cost["currency"]) == (reserved, "reserved", GIB, "EUR")
    assert cost["price_per_day"] == pytest.approx(57.6)
    assert cost["waste_per_day"] == pytest.approx((reserved - allocated) / GIB * 57.6)
    text = call("analyze", SNAPSHOT, "--price", "2.40 EUR/h", "--capacity", "1GiB").ok().stdout.decode()
    section = " ".join(text[text.index("What it costs"):].split())
    assert "2.40 an hour × 24 h = 57.60 EUR a day" in section
    shown = float(re.search(r"1\.00 GiB × 57\.60 = ([\d.]+) EUR a day", section)[1])
    assert shown == pytest.approx(cost["waste_per_day"], abs=0.006)


def test_the_cheapest_board_of_the_list_holds_the_reserved_peak(tmp_path):
    reserved = cost_of(SNAPSHOT, "--price", "1")["reserved_bytes"]
    prices = tmp_path / "prices.csv"
    prices.write_text(f"board,memory,price_per_hour,currency\nsmall,{reserved - 1},0.1,EUR\nright,{reserved},0.5,EUR\nlarge,80GiB,2,EUR\n")
    cost = cost_of(SNAPSHOT, "--prices", prices)
    assert cost["cheapest"] == {"board": "right", "usable_bytes": reserved, "price_per_hour": 0.5, "price_per_day": 12.0}
    assert cost["price_per_hour"] is None and cost["waste_per_day"] is None and cost["boards"] == 3
    prices.write_text(f"board,memory,price_per_hour\nsmall,{reserved - 1},0.1\n")
    assert cost_of(SNAPSHOT, "--prices", prices)["cheapest"] is None
    assert "No board of your list holds it." in call("analyze", SNAPSHOT, "--prices", prices).ok().stdout.decode()


def test_what_ended_the_run_is_needed_beside_what_it_had():
    cost = cost_of(FIXTURES / "streams_2.13.pickle", "--price", "1")
    assert cost["refused_bytes"] > 0 and cost["need_bytes"] == cost["reserved_bytes"] + cost["refused_bytes"]
    said = call("analyze", FIXTURES / "streams_2.13.pickle", "--price", "1").ok().stdout.decode()
    assert "for the request that was refused" in " ".join(said.split())


def test_money_needs_the_size_of_the_board():
    cost = cost_of(SNAPSHOT, "--price", "2/h")
    assert cost["board_bytes"] is None and cost["waste_per_day"] is None
    assert cost["unknown"]["board_bytes"] == "the device's size is not known: give --capacity"


def test_a_board_that_does_not_hold_the_peak_has_no_share_of_it():
    cost = cost_of(SNAPSHOT, "--price", "2.49/h", "--capacity", "1MiB")
    assert cost["unknown"]["board_bytes"] == "a board of 1.00 MiB does not hold the peak"
    assert "a day" not in call("analyze", SNAPSHOT, "--price", "2.49/h", "--capacity", "1MiB").ok().stdout.decode().split("Waste: ")[1].splitlines()[0]


def test_a_peak_in_the_host_s_memory_is_on_no_board(tmp_path):
    recording = nested.record(tmp_path / "r", [harness.PYTHON, "-c", "import torch; kept = torch.ones(10**6)"]).ok().folder
    for command in ("analyze", "advise"):
        cost = cost_of(recording, "--price", "2/h", command=command)
        assert cost["need_bytes"] is None and "host's memory" in cost["unknown"]["need_bytes"]


def test_advise_tells_what_its_largest_saving_is_worth():
    recording = FIXTURES / "streams_2.13.gmp"
    report = json.loads(call("advise", recording, "--format", "json", "--no-seal", "--price", "3/h", "--capacity", "1GiB").ok().stdout)
    saving, cost = report["cost"]["saving"], report["cost"]
    if not report["advice"]:
        assert saving is None and "saving" in cost["unknown"]
        return
    assert saving["bytes"] == max(one["bytes"] for one in report["advice"])
    assert saving["per_day"] == pytest.approx(saving["bytes"] / cost["board_bytes"] * 72)
    assert saving["need_bytes"] == cost["need_bytes"] - saving["bytes"]


@pytest.mark.parametrize("price", ["x", "-1/h", "0", "nan", "inf", "1e3", "2,49", "2.49/d", "$2 EUR", "1/h/h", "9999999", "\x1b[31m1"])
def test_a_bad_price_is_one_line(price):
    done = call("analyze", SNAPSHOT, f"--price={price}")
    assert done.rc == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1 and b"\x1b" not in done.stderr, done
    assert done.stderr.startswith(b"gpumemprof: --price: ") and b"is not a price: give the price of the board per hour" in done.stderr


@pytest.mark.parametrize("text, line", [
    ("", "is empty"), ("[]", "has no boards"), ("board,price_per_hour\nx,-1\n", "line 2: price_per_hour is not a price"),
    ("[{\"board\": \"x\", \"price_per_hour\": 1}]", "is unknown: give it as memory"),
])
def test_a_bad_price_list_is_one_line(tmp_path, text, line):
    prices = tmp_path / "prices"
    prices.write_text(text)
    done = call("analyze", SNAPSHOT, "--prices", prices)
    assert done.rc == 2 and line in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert call("analyze", SNAPSHOT, "--prices", tmp_path / "none").rc == 2


def test_two_currencies_are_refused(tmp_path):
    prices = tmp_path / "prices.csv"
    prices.write_text("board,memory,price_per_hour,currency\nx,80GiB,1,USD\n")
    done = call("analyze", SNAPSHOT, "--price", "2 EUR/h", "--prices", prices)
    assert done.rc == 2 and b"two currencies" in done.stderr and done.stdout == b""


def test_a_page_and_samples_have_no_prices(tmp_path):
    samples = tmp_path / "samples.csv"
    call("monitor", "--duration", "0.3", "--interval", "0.1", "--output", samples).ok()
    for words in (("analyze", SNAPSHOT, "--format", "html"), ("analyze", samples)):
        done = call(*words, "--price", "1/h")
        assert done.rc == 2 and b"--price and --prices are for recordings and snapshots" in done.stderr, done
