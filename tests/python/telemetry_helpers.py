"""Events for tests of telemetry: each has figures of its own, so that none can be mistaken for another."""

import random

from gpumemprof.telemetry import TelemetryEventV2

NASTY_TEXTS = [
    None, "plain", "comma, quote \" and 'quote'", "two\nlines\r\nand\rmore", "tab\tback\\slash", "äöü 漢字 🎉", " spaces ",
    "=1+1", "null", "0", "[]", "{\"a\":1}", "\u2028line\u2029separators", "\x00zero",
]  # fmt: skip


def event(**changes):
    values = dict(
        schema_version=2, timestamp_ns=1_700_000_000_123_456_789, event_type="sample", collector="gpumemprof.test",
        sampling_interval_ms=100, pid=4242, host="node", device_id=0, allocator_allocated_bytes=1000,
        allocator_reserved_bytes=2000, allocator_active_bytes=1100, allocator_inactive_bytes=None,
        allocator_change_bytes=-5, device_used_bytes=3000, device_free_bytes=7000, device_total_bytes=10_000,
        context=None, job_id=None, rank=0, local_rank=0, world_size=1, metadata={},
    )  # fmt: skip
    return TelemetryEventV2(**{**values, **changes})


def random_events(seed, count):
    """Any event that version 2 allows, with the largest numbers and the oddest texts."""
    pick = random.Random(seed)

    def size():
        return pick.choice([0, 1, pick.randrange(1 << 40), (1 << 53) + 1, (1 << 63) - 1])

    def maybe():
        return pick.choice([None, size()])

    def text():
        return pick.choice([t for t in NASTY_TEXTS if t])

    result = []
    for _ in range(count):
        world = pick.choice([1, 8, 4096])
        result.append(event(
            timestamp_ns=size(), event_type=text(), collector=text(), host=text(), pid=pick.choice([-1, 7]),
            sampling_interval_ms=size(), device_id=pick.choice([-1, 0, 7]), context=pick.choice(NASTY_TEXTS),
            job_id=pick.choice(NASTY_TEXTS), rank=pick.randrange(world), local_rank=pick.randrange(world),
            world_size=world, allocator_allocated_bytes=size(), allocator_reserved_bytes=size(),
            allocator_active_bytes=maybe(), allocator_inactive_bytes=maybe(), device_free_bytes=maybe(),
            allocator_change_bytes=pick.choice([-1, 1]) * size(), device_used_bytes=size(), device_total_bytes=maybe(),
            metadata=pick.choice([{}, {"text": text(), "deep": [{"n": size(), "f": pick.random(), "null": None}]}]),
        ))  # fmt: skip
    return result
