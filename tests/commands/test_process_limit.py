"""A request that the process's own limit refuses (torch.cuda.set_per_process_memory_fraction): every command goes by that limit.

The recording, the error's text and what other settings do under the same limit are PyTorch's own allocator's:
tests/reference_allocator/make_recordings.py.
"""

import json
import pickle
import re
import shutil

import harness
import pytest
from carried_page import CarriedPage

MIB = 1 << 20
FOLDER = harness.ROOT / "tests" / "fixtures" / "recordings"
(FIXTURE,) = [entry for entry in json.loads((FOLDER / "answers.json").read_text()) if entry["name"] == "limited_2.11"]
LIMIT = int(FIXTURE["fraction"] * FIXTURE["capacity"])  # as the allocator computes it
OWN = pickle.loads((FOLDER / "limited_2.11.pickle").read_bytes())["device_traces"][0]
(REFUSED,) = [index for index, event in enumerate(OWN) if event["action"] == "oom"]
EXACT, ROUNDED = {"cuda:0": {"limit_bytes": LIMIT, "fraction": FIXTURE["fraction"], "total_bytes": FIXTURE["capacity"]}}, {}


def reserved_until(last):
    now = peak = 0
    for event in OWN[:last]:
        now += {"segment_alloc": event["size"], "segment_free": -event["size"]}.get(event["action"], 0)
        peak = max(peak, now)
    return now, peak


def live_at(last):
    """Requested bytes, and as the allocator rounds them."""
    asked = {}
    for event in OWN[:last]:
        if event["action"] == "alloc":
            asked[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            del asked[event["addr"]]
    return sum(asked.values()), sum(-(-size // 512) * 512 for size in asked.values())


def command(*words):
    return harness.execute([harness.COMMAND, *words], timeout=120).ok().stdout.decode()


def recording(folder, limits=None, message=FIXTURE["message"]):
    """A folder as `run` leaves it. Without limits: no dump at all."""
    folder.mkdir()
    shutil.copy(FOLDER / "limited_2.11.gmp", folder / "machine.1.1.gmp")
    if limits is None:
        return folder
    pid = json.loads(command("analyze", "--no-seal", folder, "--format", "json"))["processes"][0]["pid"]
    dump = folder / "oom_dumps" / f"oom_dump_20260101T000000Z_{pid}_cuda_1"
    dump.mkdir(parents=True)
    after = {"devices": [{"device": "cuda:0", "live_bytes": 90 * MIB, "blocks": 10, "holders": []}]}
    files = {
        "metadata": {"exception_message": message, "backend": "cuda", "stack": ["/job/train.py:35 main"]},
        "environment": {"pid": pid}, "live_memory": after, "allocator_limits": limits, "manifest": {},
    }  # fmt: skip
    for name, value in files.items():
        (dump / f"{name}.json").write_text(json.dumps(value))
    return folder


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    return recording(tmp_path_factory.mktemp("exact") / "r", EXACT)


def explanation(folder):
    (device,) = harness.analysis(folder)["devices"]
    (oom,) = device["oom"]
    return oom


def test_what_was_available_is_below_the_limit_and_the_replay_runs_out_there(exact):
    oom = explanation(exact)
    now, _ = reserved_until(REFUSED)
    _, active = live_at(REFUSED)
    assert oom["available"] == {"bytes": LIMIT, "least_bytes": LIMIT, "most_bytes": LIMIT, "basis": "limit"}
    assert (oom["event_index"], oom["reserved_bytes"], oom["active_bytes"]) == (REFUSED, now, active)
    assert oom["cause"] == "fragmentation" and oom["is_reproduced"]
    assert oom["free_inside_bytes"] + LIMIT - now > oom["asked_bytes"] > oom["largest_fit_bytes"]
    assert oom["smallest_change"] == "expandable_segments:True"
    # The segment that was refused, in the driver's units of 2 MiB.
    segment = -(-oom["asked_bytes"] // (2 * MIB)) * 2 * MIB
    assert oom["more_bytes_needed"] == -(-(now + segment - LIMIT) // (2 * MIB)) * 2 * MIB


def test_the_headline_tells_what_was_live_as_it_was_refused_and_nothing_twice(exact):
    requested, active = live_at(REFUSED)
    (refused,) = harness.analysis(exact)["end"]["refused"]
    assert (refused["live_at_refusal_bytes"], refused["live_at_refusal_basis"], refused["live_bytes"]) == (requested, "event", 90 * MIB)
    assert (refused["limit_bytes"], refused["limit_basis"]) == (LIMIT, "process")
    lines = command("analyze", exact).splitlines()
    # PyTorch's own figures: 4.30 GiB allocated, 793.88 MiB in pieces, 5.86 GiB allowed.
    assert " 4.30 GiB is allocated" in FIXTURE["message"] and " 793.88 MiB is reserved" in FIXTURE["message"]
    assert f"{active / 2**30:.2f}" == "4.30" and " 5.86 GiB allowed" in FIXTURE["message"]
    assert re.fullmatch(
        r"Out of memory: 883 MiB were refused at /job/train\.py:35 main, with 4\.30 GiB live on cuda:0\. Its own limit of 5\.86 GiB left "
        r"808 MiB, and 794 MiB were free in its segments, the largest usable piece \d+ MiB: fragmentation\.", lines[0])  # fmt: skip
    assert re.fullmatch(r"It would have fitted with expandable_segments:True \(simulated\): 5\.18 GiB reserved at most\.", lines[1])
    assert lines[2].startswith("Peak ") and sum(line.startswith("Out of memory:") for line in lines) == 1
    page = CarriedPage(command("analyze", exact, "--format", "html")).text
    assert page.count(lines[0]) == page.count(lines[1]) == 1
    assert command("advise", exact).splitlines()[:2] == lines[:2]


def test_what_if_answers_as_the_allocator_does_under_the_same_limit(exact):
    asked = [word for answer in FIXTURE["within"][1:] for word in ("--set", answer["settings"])]
    study = json.loads(command("whatif", exact, *asked, "--format", "json"))
    assert study["recorded"]["available"]["basis"] == "limit" and study["recorded"]["device_bytes"] == LIMIT
    assert study["results"][0]["peak_reserved_bytes"] == study["recorded"]["peak_reserved_bytes"] == reserved_until(len(OWN))[1]
    assert study["results"][0]["first_oom_event_index"] == REFUSED
    for row, answer in zip(study["results"], FIXTURE["within"], strict=True):
        told = [row[k] for k in ("settings", "peak_reserved_bytes", "segments", "num_alloc_retries", "num_ooms")]
        assert told == [answer[k] for k in ("settings", "peak_reserved", "segments", "num_alloc_retries", "num_ooms")]
    text = command("whatif", exact, "--sweep")
    assert "the process stays within its own limit of 5.86 GiB, as in the recorded run, which ran out of memory" in text
    assert "per_process_memory_fraction" not in text and text.endswith("export PYTORCH_ALLOC_CONF=expandable_segments:True\n")


def test_the_first_advice_is_what_makes_it_fit_and_says_that_it_was_simulated(exact):
    first = json.loads(command("advise", exact, "--format", "json"))["advice"][0]
    assert (first["kind"], first["basis"], first["makes_fit"]) == ("allocator", "simulated", True)
    assert first["bytes"] == explanation(exact)["asked_bytes"] and "expandable_segments:True" in first["fix"]
    assert "not simulated" not in command("advise", exact)


def test_a_limit_that_the_message_rounds_is_shown_as_rounded(tmp_path):
    folder = recording(tmp_path / "r", ROUNDED)
    oom = explanation(folder)
    available = oom["available"]
    assert available["basis"] == "rounded_limit" and available["least_bytes"] <= LIMIT <= available["most_bytes"]
    assert available["most_bytes"] - available["least_bytes"] <= 2**30 // 100 + 2
    assert oom["is_reproduced"] and oom["smallest_change"] == "expandable_segments:True"
    assert "Its own limit of 5.86 GiB (as the error rounds it) left 804 MiB to 814 MiB, and " in command("analyze", folder)


def test_of_a_limit_that_nobody_told_the_refusal_gives_bounds(tmp_path):
    folder = recording(tmp_path / "r")
    oom = explanation(folder)
    now, peak = reserved_until(REFUSED)
    segment = -(-oom["asked_bytes"] // (2 * MIB)) * 2 * MIB
    assert oom["available"] == {"bytes": peak, "least_bytes": peak, "most_bytes": now + segment - 1, "basis": "refusal"}
    assert oom["largest_fit_bytes"] is None and "limit" in oom["unknown"]["largest_fit_bytes"]
    assert oom["smallest_change"] == "expandable_segments:True"


@pytest.mark.parametrize("limits", [[], {"cuda:0": 3}, {"cuda:0": {"limit_bytes": -1}}, {"cuda:0": {"limit_bytes": "9"}}, {"cuda:0": {"limit_bytes": 2**64 - 1}}, {"cuda:0": {"limit_bytes": 0}}])
def test_a_dump_may_hold_anything(tmp_path, limits):
    folder = recording(tmp_path / "r", limits)
    available = explanation(folder)["available"]
    assert available["least_bytes"] <= available["bytes"] <= available["most_bytes"]
    command("whatif", folder, "--sweep"), command("advise", folder)


def test_a_limit_of_another_process_is_not_taken(tmp_path):
    folder = recording(tmp_path / "r", EXACT)
    (dump,) = (folder / "oom_dumps").iterdir()
    (dump / "environment.json").write_text(json.dumps({"pid": 1}))
    assert explanation(folder)["available"]["basis"] == "refusal"
