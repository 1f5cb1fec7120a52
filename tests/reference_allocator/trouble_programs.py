"""Programs by seed, as calls of the CUDA allocator: each has one class of trouble, two of them, or only looks like it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from call_lists import MIB

HIDDEN, LAYERS = 1024, 4
WEIGHT = 4 * HIDDEN * HIDDEN


@dataclass
class Program:
    """Calls of the allocator, each with the line of a program that is said to make it."""

    draw: random.Random
    calls: list[str] = field(default_factory=list)
    sites: list[str] = field(default_factory=list)
    """Of each call."""
    settings: list[str] = field(default_factory=list)
    is_full: bool = False
    """The device has 30 MiB more than what is reserved before the last request."""
    made: int = 0
    sizes: dict[int, int] = field(default_factory=dict)
    """Of what is live."""
    peak_bytes: int = 0
    pinned: list[tuple[str, str]] = field(default_factory=list)
    """Calls of the allocator of pinned host memory, each with its site."""
    pinned_made: int = 0
    pinned_settings: str = ""

    def call(self, text: str, site: str = "") -> None:
        self.calls.append(text)
        self.sites.append(site)

    def allocate(self, site: str, size: int, stream: int = 0) -> int:
        self.made += 1
        self.call(f"a {self.made} {size} {stream}", site)
        self.sizes[self.made] = size
        self.peak_bytes = max(self.peak_bytes, sum(self.sizes.values()))
        return self.made

    def free(self, *blocks: int) -> None:
        for block in blocks:
            self.call(f"f {block}", "free")
            del self.sizes[block]

    def parameters(self) -> None:
        for _ in range(LAYERS):
            self.allocate("parameters", WEIGHT)

    def step(self, tokens: int) -> None:
        kept = []
        for _ in range(LAYERS):
            scores = self.allocate("scores", 16 * tokens * HIDDEN)
            kept += [self.allocate("attention", 4 * tokens * HIDDEN), self.allocate("mlp", 8 * tokens * HIDDEN)]
            self.free(scores)
        for block in reversed(kept):
            gradient = self.allocate("gradient", WEIGHT)
            self.free(block, gradient)

    def train(self, steps: int = 3) -> None:
        tokens = self.draw.randrange(500, 2000)
        self.parameters()
        for _ in range(steps):
            self.step(tokens)


def graphs(program: Program) -> None:
    """A graph for each batch size, each with a pool of its own."""
    for number in range(program.draw.randrange(2, 5)):
        program.call(f"p {number + 1}")
        output = program.allocate("graph output", program.draw.randrange(1, 4) * MIB)
        for _ in range(3):
            parts = [program.allocate("graph", program.draw.randrange(30, 90) * MIB) for _ in range(3)]
            program.free(*parts)
        program.call(f"q {number + 1}")
        del output


def graphs_without_slack(program: Program) -> None:
    """What the graphs hold stays theirs: nothing in their pools is free."""
    for number in range(program.draw.randrange(2, 5)):
        program.call(f"p {number + 1}")
        for _ in range(3):
            program.allocate("graph", 2 * program.draw.randrange(15, 45) * MIB)
        program.call(f"q {number + 1}")


def stranded(program: Program) -> None:
    """A copy stream loads what is then dropped; afterwards the main stream needs as much."""
    sizes = [program.draw.randrange(60, 160) * MIB for _ in range(program.draw.randrange(4, 8))]
    loaded = [program.allocate("load", size, 1) for size in sizes]
    program.free(*loaded)
    kept = [program.allocate("compute", size) for size in sizes]
    program.free(*kept)


def streams_at_once(program: Program) -> None:
    """Both streams hold what they have at the same time: on one it were no less."""
    sizes = [program.draw.randrange(60, 160) * MIB for _ in range(program.draw.randrange(3, 6))]
    loaded = [program.allocate("load", size, 1) for size in sizes]
    kept = [program.allocate("compute", size) for size in sizes]
    program.free(*loaded, *kept)


def pending(program: Program) -> None:
    """Gathered weights are used by another stream, which is late: each is freed while the next ones come."""
    waiting: list[int] = []
    size = max(program.draw.randrange(40, 120) * MIB, program.peak_bytes * 3 // 8)  # what waits is the peak
    for _ in range(program.draw.randrange(8, 16)):
        block = program.allocate("all_gather", size)
        program.call(f"u {block} 1")
        program.free(block)
        waiting.append(block)
        if len(waiting) > program.draw.randrange(4, 7):
            program.call(f"c {waiting.pop(0)}")
    for block in waiting:
        program.call(f"c {block}")
    program.free(program.allocate("small", MIB))


def record_stream_in_time(program: Program) -> None:
    """The other stream is done before the block is freed."""
    size = program.draw.randrange(40, 120) * MIB
    for _ in range(program.draw.randrange(8, 16)):
        block = program.allocate("all_gather", size)
        program.call(f"u {block} 1")
        program.free(block)
        program.call(f"c {block}")


def refused(program: Program) -> None:
    """On a full device a block that waits for a stream lies in a segment that a live one pins."""
    program.is_full = True
    size = program.draw.randrange(200, 400) * MIB
    whole = program.allocate("whole", size)
    program.free(whole)
    first, second = program.allocate("first", size * 2 // 3), program.allocate("second", size // 4)
    program.call(f"u {first} 1")
    program.free(first)
    program.allocate("again", size * 2 // 3)
    del second


def refused_for_want(program: Program) -> None:
    """The same without another stream: more is asked for than there is."""
    program.is_full = True
    size = program.draw.randrange(200, 400) * MIB
    program.allocate("whole", size)
    program.allocate("again", size * 2 // 3)


def conflict(program: Program) -> None:
    """Expandable segments and blocks above the limit, each of another size: a free one that is much larger is left alone."""
    program.settings = ["expandable_segments:True", "max_split_size_mb:64"]
    live: list[int] = []
    for _ in range(program.draw.randrange(30, 60)):
        live.append(program.allocate("batch", program.draw.randrange(70, 200) * MIB))
        if len(live) > program.draw.randrange(3, 5):
            program.free(live.pop(0))


def both_settings_without_harm(program: Program) -> None:
    """Both settings, and no block above the limit."""
    program.settings = ["expandable_segments:True", "max_split_size_mb:512"]
    program.train()


def plain(program: Program) -> None:
    program.train()


Maker = Callable[[Program], None]
WITH: dict[str, Maker] = {
    "graph_pool_slack": graphs,
    "stranded_stream_cache": stranded,
    "record_stream_pending": pending,
    "refused_though_it_fits": refused,
    "settings_conflict": conflict,
}
CLEAN: list[Maker] = [
    graphs_without_slack, streams_at_once, record_stream_in_time, refused_for_want, both_settings_without_harm, plain,
]  # fmt: skip
# Two at a time; those that need a device or settings of their own stand alone.
MIXED = [
    ("graph_pool_slack", "stranded_stream_cache"),
    ("graph_pool_slack", "record_stream_pending"),
    ("stranded_stream_cache", "record_stream_pending"),
    ("graph_pool_slack", "refused_though_it_fits"),
]


def made(seed: int, *makers: Maker) -> Program:
    program = Program(random.Random(seed))
    if makers[0] not in (both_settings_without_harm, plain):
        program.parameters()
    for maker in makers:
        maker(program)
    return program
