"""Many recorded programs at once: nothing is lost without being counted. No time is asserted."""

import json

import harness


def test_every_event_of_many_writers_is_there_or_counted():
    bench = harness.ROOT / "bench" / "live_load.py"
    argv = [harness.PYTHON, bench, "--writers", "8", "--rate", "20000", "--seconds", "3", "--json"]
    done = harness.execute(argv, timeout=300)
    assert done.rc == 0, repr(done)
    said = json.loads(done.stdout)
    # The writers' own counts: 8 × 20,000 × 3, in pairs of a free and an allocation once 64 blocks are live.
    assert 480_000 <= said["written"] < 480_000 + 8 * 2 and said["exit_code"] == 0
    for where in ("live", "top", "read"):
        one = said[where]
        assert one["exact"] and one["events"] + one["lost"] == said["written"], (where, said)
    assert all(answers["count"] >= 1 for answers in said["answers"].values())
