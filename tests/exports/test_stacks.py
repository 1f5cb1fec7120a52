"""pprof, speedscope and folded stacks, read by parsers that are not ours."""

import gzip
import json
import re
from pathlib import Path

import harness
import jsonschema
import pytest
from pprof_reader import pprof_profile, pprof_stacks
from programs_to_export import by_stack, export, nonzero, record_acme

pytest.importorskip("torch")
SPEEDSCOPE_SCHEMA = harness.ROOT / "build" / "speedscope" / "package" / "dist" / "release" / "file-format-schema.json"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record_acme(tmp_path_factory.mktemp("stacks"), 1_000_000, 3_000_000)


@pytest.fixture(scope="module")
def truth(recording):
    return by_stack(harness.events(recording))


def test_pprof_has_the_bytes_of_every_stack(recording, truth):
    profile = pprof_profile()()
    profile.ParseFromString(gzip.decompress(export(recording, "--to", "pprof")))
    text = profile.string_table
    types = [(text[t.type], text[t.unit]) for t in profile.sample_type]
    assert types == [("inuse_objects", "count"), ("inuse_space", "bytes"), ("alloc_objects", "count"),
                     ("alloc_space", "bytes"), ("end_objects", "count"), ("end_space", "bytes")]
    assert text[0] == "" and text[profile.default_sample_type] == "inuse_space"
    _, peak, end, total = truth
    assert pprof_stacks(profile, 1) == nonzero(peak)
    assert pprof_stacks(profile, 5) == nonzero(end)
    assert pprof_stacks(profile, 3) == nonzero(total)
    assert len({tuple(s.location_id) for s in profile.sample}) == len(profile.sample)
    assert {i for s in profile.sample for i in s.location_id} == {location.id for location in profile.location}


def test_speedscope_follows_the_published_schema_and_the_events(recording, truth):
    profile = json.loads(export(recording, "--to", "speedscope"))
    if SPEEDSCOPE_SCHEMA.exists():
        schema = json.loads(SPEEDSCOPE_SCHEMA.read_text())
        jsonschema.validators.validator_for(schema)(schema).validate(profile)
    frames = [f"{f.get('file', '')}:{f.get('line', 0)} {f['name']}" for f in profile["shared"]["frames"]]
    for part, wanted in zip(profile["profiles"], truth[1:]):
        assert part["unit"] == "bytes" and part["type"] == "sampled"
        assert part["endValue"] == sum(part["weights"]) == sum(wanted.values())
        stacks = {tuple(frames[i] for i in reversed(s)): w for s, w in zip(part["samples"], part["weights"])}
        assert nonzero(stacks) == nonzero(wanted)


def test_speedscope_is_checked_against_its_schema():
    if not SPEEDSCOPE_SCHEMA.exists():
        pytest.skip("no schema of speedscope here: scripts/setup tests fetches it where there is npm")


@pytest.mark.parametrize("at, index", [("peak", 1), ("end", 2), ("total", 3)])
def test_folded_stacks_add_up_to_the_events(recording, truth, at, index):
    wanted = {}
    for stack, size in nonzero(truth[index]).items():
        frames = []
        for frame in stack:
            file, line, function = harness.FRAME.match(frame).groups()
            frames.append(f"{function} ({Path(file).name}:{line})")
        wanted[";".join(reversed(frames))] = wanted.get(";".join(reversed(frames)), 0) + size
    found = {}
    for line in export(recording, "--to", "folded", "--at", at).decode().splitlines():
        stack, size = re.fullmatch(r"(.+) (\d+)", line).groups()
        found[stack] = found.get(stack, 0) + int(size)
    assert nonzero(found) == wanted


def test_a_device_that_there_is_not_is_named_with_those_there_are(recording):
    done = harness.execute([harness.COMMAND, "export", recording, "--to", "folded", "--device", "cuda:7"])
    assert done.rc == 2
    assert done.stderr.decode().count("\n") == 1 and "only cpu" in done.stderr.decode()
    assert export(recording, "--to", "folded", "--device", "cpu") == export(recording, "--to", "folded")


@pytest.mark.parametrize("options", [["--to", "pprof", "--at", "end"], ["--to", "jsonl", "--device", "cpu"]])
def test_an_option_that_the_format_does_not_have_is_refused(recording, options):
    done = harness.execute([harness.COMMAND, "export", recording, *options])
    assert done.rc == 2 and done.stdout == b""
