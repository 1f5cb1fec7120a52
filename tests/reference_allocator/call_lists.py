"""Lists of calls for both allocators: drawn at random, or the requests of a recorded trace."""

import random
from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20


@dataclass
class Run:
    """One list of calls and the settings under which both allocators carry it out."""

    name: str
    calls: list[str]
    settings: list[str] = field(default_factory=list)
    capacity_bytes: int = 160 << 30
    fraction: float | None = None

    @property
    def conf(self) -> str:
        return ",".join(self.settings)


def random_settings(draw: random.Random, minor: int) -> list[str]:
    """Any that the release accepts, together as they come."""
    settings = []
    large = draw.choice([20, 21, 22, 32, 64]) if minor >= 11 and draw.random() < 0.3 else 20
    if large != 20:
        settings.append(f"large_segment_size_mb:{large}")
    if draw.random() < 0.4:
        settings.append("expandable_segments:True")
    if draw.random() < 0.4:
        settings.append(f"max_split_size_mb:{max(large, draw.choice([21, 32, 64, 100, 200]))}")
    if minor >= 6 and draw.random() < 0.3:
        settings.append(f"max_non_split_rounding_mb:{max(large, draw.choice([21, 40, 100]))}")
    if draw.random() < 0.3:
        lists = ["[1:4,16:2,>:8]", "[4:2,32:1]", "[>:4]", "[256:8,2:1]"]
        settings.append("roundup_power2_divisions:" + draw.choice(["1", "2", "4", "8", "16", *lists]))
    if draw.random() < 0.4:
        settings.append(f"garbage_collection_threshold:{draw.choice([0.1, 0.3, 0.5, 0.7, 0.95])}")
    if minor >= 12 and draw.random() < 0.15:
        settings.append("throw_on_cudamalloc_oom:True")
    if minor >= 15 and draw.random() < 0.2:
        settings.append(f"expandable_segments_reserve:{draw.choice(['0.5', '0.9', '1G', '2.5'])}")
    return settings


def random_size(draw: random.Random, kind: str, recurring: list[int]) -> int:
    small = [draw.randrange(1, 4096), draw.randrange(1, MIB + 1), 512 * draw.randrange(1, 8)]
    middle = draw.randrange(MIB, 12 * MIB)
    large = [draw.randrange(10 * MIB, 120 * MIB), draw.randrange(MIB, 30 * MIB), draw.choice(recurring)]
    if kind == "small":
        return draw.choice(small)
    if kind == "middle":
        return middle
    if kind == "large":
        return draw.choice(large)
    return draw.choice([*small, middle, *large])


def random_calls(draw: random.Random, streams: int, with_record_stream: bool, with_pools: bool) -> list[str]:
    """Allocations and frees with everything that may come between them; sizes recur as they do in training."""
    calls: list[str] = []
    live: list[int] = []
    waiting: list[int] = []
    used: set[int] = set()
    recurring = [draw.randrange(1, 40 * MIB) for _ in range(12)]
    kind = draw.choice(["mixed", "small", "middle", "large"])
    frees = draw.choice([0.4, 0.47, 0.5, 0.55])
    pool = last_pool = made = 0
    in_pool: list[int] = []
    for _ in range(draw.choice([200, 1000, 3000])):
        if live and draw.random() < frees:
            block = live.pop(draw.randrange(len(live)))
            # While a pool captures, frees of blocks that other streams use wait for its end: not part of this list.
            if block in used and pool:
                live.append(block)
                continue
            calls.append(f"f {block}")
            if block in used:
                waiting.append(block)
        else:
            made += 1
            calls.append(f"a {made} {random_size(draw, kind, recurring)} {draw.randrange(streams)}")
            live.append(made)
            if pool:
                in_pool.append(made)
        chance = draw.random()
        if chance < 0.002 and not pool:
            calls.append("e")
        elif with_record_stream and live and not pool and chance < 0.1:
            block = draw.choice(live)
            calls.append(f"u {block} {draw.randrange(streams)}")
            used.add(block)
        elif waiting and chance < 0.2:
            calls.append(f"c {waiting.pop(draw.randrange(len(waiting)))}")
        elif with_pools and chance > 0.99:
            if pool:
                calls.append(f"q {pool}")
                pool = 0
            elif draw.random() < 0.3 and last_pool:
                # A graph is reset when nothing of it is left; PyTorch crashes on what would be.
                calls += [f"f {block}" for block in in_pool if block in live]
                calls.append(f"x {last_pool}")
                waiting += [block for block in in_pool if block in live and block in used]
                live = [block for block in live if block not in in_pool]
                in_pool.clear()
                last_pool = 0
            elif not last_pool:
                pool = last_pool = len(calls) + 1
                calls.append(f"p {pool}")
    if pool:
        calls.append(f"q {pool}")
    return calls


def random_run(seed: int, minor: int) -> Run:
    draw = random.Random(seed)
    return Run(
        name=f"seed {seed}",
        settings=random_settings(draw, minor),
        capacity_bytes=draw.choice([256, 512, 1024, 3000, 20000]) * MIB,
        fraction=draw.choice([0.3, 0.5, 0.7, 0.9, 0.99]) if draw.random() < 0.4 else None,
        calls=random_calls(draw, draw.choice([1, 1, 2, 4]), draw.random() < 0.3, draw.random() < 0.2),
    )


Pool = tuple[int, int]
FIRST_OTHER_STREAM = 1000


def pool_of(snapshot: dict[str, Any], device: int, event: dict[str, Any]) -> Pool:
    """The event's own word; before 2.12 the pool of the segment that its address is in at the end."""
    if "pool_id" in event:
        return tuple(event["pool_id"])
    for segment in snapshot["segments"]:
        inside = segment["address"] <= event.get("addr", 0) < segment["address"] + segment["total_size"]
        if segment["device"] == device and inside:
            return tuple(segment.get("segment_pool_id", (0, 0)))
    return (0, 0)


def live_before(snapshot: dict[str, Any], device: int) -> dict[int, tuple[int, int, Pool]]:
    """Requested size, stream and pool by address of what was live before the first event."""
    live: dict[int, tuple[int, int, Pool]] = {}
    for segment in snapshot["segments"]:
        if segment["device"] != device:
            continue
        address = segment["address"]
        pool = tuple(segment.get("segment_pool_id", (0, 0)))
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                live[address] = (block.get("requested_size", block["size"]), segment["stream"], pool)
            address += block["size"]
    for event in reversed(snapshot["device_traces"][device]):
        if event["action"] == "alloc":
            live.pop(event["addr"], None)
        elif event["action"] == "free_completed":
            live[event["addr"]] = (event["size"], event["stream"], pool_of(snapshot, device, event))
    return live


def is_retry(events: list[dict[str, Any]], index: int) -> bool:
    """Whether memory went back at `index` because an allocation did not fit: that tries again with its own stack."""
    after = index
    while after < len(events) and events[after]["action"] in ("segment_free", "segment_unmap"):
        after += 1
    if after == len(events) or events[after]["action"] not in ("segment_alloc", "segment_map", "oom"):
        return False
    return bool(events[index].get("frames")) and events[index]["frames"] == events[after].get("frames")


def calls_of_trace(snapshot: dict[str, Any], device: int) -> list[str]:
    """The program's requests: blocks from before the trace first, then what the trace has. Memory that went back
    other than in a retry becomes one empty_cache(); a refused request is asked for again and kept."""
    streams: dict[int, int] = {}
    calls: list[str] = []
    ids: dict[int, int] = {}
    requested: dict[int, int] = {}
    made = 0
    pool: Pool = (0, 0)
    begun: set[Pool] = set()
    events = snapshot["device_traces"][device]
    has_pools = any(tuple(s.get("segment_pool_id", (0, 0))) != (0, 0) for s in snapshot["segments"]) or any(
        tuple(e.get("pool_id", (0, 0))) != (0, 0) for e in events
    )

    def allocate(size: int, stream: int, wanted: Pool) -> int:
        nonlocal made, pool
        made += 1
        if wanted != pool:
            calls.extend([f"q {pool[1]}"] * (pool != (0, 0)) + [f"p {wanted[1]}"] * (wanted != (0, 0)))
            pool = wanted
            begun.add(wanted)
        calls.append(f"a {made} {size} {streams.setdefault(stream, len(streams))}")
        return made

    def pool_of_event(event: dict[str, Any]) -> Pool:
        return pool_of(snapshot, device, event) if has_pools else (0, 0)

    for address, (size, stream, wanted) in sorted(live_before(snapshot, device).items()):
        ids[address] = allocate(size, stream, wanted)
    calls.append("r")
    gave_back = False
    for index, event in enumerate(events):
        action = event["action"]
        if action in ("segment_free", "segment_unmap"):
            released = pool_of_event(event)
            if released != (0, 0) and released in begun:
                if released == pool:
                    calls.append(f"q {pool[1]}")
                    pool = (0, 0)
                begun.remove(released)
                calls.append(f"x {released[1]}")
            if not gave_back and not is_retry(events, index):
                calls.append("e")
            gave_back = True
            continue
        gave_back = gave_back and action in ("free_requested", "snapshot")
        if action == "alloc":
            ids[event["addr"]] = allocate(event["size"], event["stream"], pool_of_event(event))
        elif action == "oom":
            allocate(event["size"], event["stream"], pool_of_event(event))
        elif action == "free_requested" and event["addr"] in ids:
            following = events[index + 1] if index + 1 < len(events) else event
            if following["action"] != "free_completed" or following["addr"] != event["addr"]:
                # Another stream uses the block: which one does not matter, only when it is done. One of its own
                # for each, as the frees of one stream complete in their order.
                block = requested[event["addr"]] = ids.pop(event["addr"])
                calls += [f"u {block} {FIRST_OTHER_STREAM + block}", f"f {block}"]
        elif action == "free_completed" and event["addr"] in requested:
            calls.append(f"c {requested.pop(event['addr'])}")
        elif action == "free_completed" and event["addr"] in ids:
            calls.append(f"f {ids.pop(event['addr'])}")
    return calls


def steps_of_many_lengths(steps: int, refused_after: int | None = None) -> list[str]:
    """Sizes as of a language model whose sequences differ in length from step to step. Those of a program that dies of
    memory: after so many calls everything is freed, as the exception unwinds."""
    draw = random.Random(7)
    calls: list[str] = []
    live: list[int] = []
    made = 0

    def allocate(size: int) -> None:
        nonlocal made
        made += 1
        live.append(made)
        calls.append(f"a {made} {size} 0")

    def free(place: int = -1) -> None:
        calls.append(f"f {live.pop(place)}")

    for _ in range(10):
        allocate(4 * 768 * 3072)
    kept = len(live)
    for _ in range(steps):
        tokens = 16 * draw.randrange(64, 1024)
        for _ in range(6):
            for share in (1, 3, 1, 1, 4):
                allocate(tokens * 768 * 4 * share)
        for _ in range(3):  # the logits, and two gradients of them
            allocate(tokens * 16000 * 4)
        free(-3), free(-2)
        while len(live) > kept:
            allocate(tokens * 768 * 4)
            free(-2), free()
    if refused_after is None:
        return calls
    calls = calls[:refused_after]
    freed = {call[2:] for call in calls if call[0] == "f"}
    made_there = [call.split()[1] for call in calls if call[0] == "a"]
    return calls + [f"f {name}" for name in reversed(made_there) if name not in freed]
