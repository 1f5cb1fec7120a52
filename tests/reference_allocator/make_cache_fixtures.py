"""Makes tests/fixtures/cache/: what PyTorch's own allocator recorded of itself under small programs that make its cache
grow, and under others that only look like it. `expected.json` says which is which.

    python make_cache_fixtures.py FOLDER [OUTPUT]        FOLDER: where `make test-allocator` keeps the builds
"""

import json
import pickle
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import build
import compare
from call_lists import MIB, Run

HERE = Path(__file__).resolve().parent
RELEASE = "2.13.0"
HIDDEN, LAYERS = 1024, 4


class Program:
    """Calls of the allocator, each with the line of a program that is said to make it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.site_of: list[str] = []  # of each call
        self.made = 0

    def allocate(self, site: str, size: int) -> int:
        self.made += 1
        self.calls.append(f"a {self.made} {size} 0")
        self.site_of.append(site)
        return self.made

    def free(self, block: int) -> None:
        self.calls.append(f"f {block}")
        self.site_of.append("")

    def parameters(self) -> None:
        for _ in range(LAYERS):
            self.allocate("parameters", 4 * HIDDEN * HIDDEN)

    def forward(self, tokens: int) -> list[int]:
        kept = []
        for _ in range(LAYERS):
            temporary = self.allocate("scores", 16 * tokens * HIDDEN)
            kept += [self.allocate("attention", 4 * tokens * HIDDEN), self.allocate("mlp", 8 * tokens * HIDDEN)]
            self.free(temporary)
        return kept

    def train(self, tokens: int) -> None:
        for block in reversed(self.forward(tokens)):
            gradient, temporary = self.allocate("gradient", 4 * HIDDEN * HIDDEN), self.allocate("backward", 4 * tokens * HIDDEN)
            for done in (temporary, block, gradient):
                self.free(done)

    def evaluate(self, tokens: int) -> None:
        for block in self.forward(tokens):
            self.free(block)


def lengths_of_every_batch(draw: random.Random) -> Iterator[int]:
    while True:
        yield draw.randrange(200, 1400)


def variable_lengths() -> Program:
    program, lengths = Program(), lengths_of_every_batch(random.Random(1))
    program.parameters()
    for step in range(40):
        program.train(next(lengths) + 20 * step)
    return program


def growing_cache() -> Program:
    """Each token copies the keys and values of each layer into blocks that are a little longer."""
    program = Program()
    program.parameters()
    cache = [program.allocate("prompt", 32 * 400 * HIDDEN) for _ in range(LAYERS)]
    for token in range(408, 1400, 8):
        for layer in range(LAYERS):
            longer = program.allocate("concatenate", 32 * token * HIDDEN)
            program.free(cache[layer])
            cache[layer] = longer
            program.free(program.allocate("scores", 64 * token))
    return program


def training_then_evaluation() -> Program:
    program = Program()
    program.parameters()
    for _ in range(8):
        program.train(4000)
    for _ in range(60):
        program.evaluate(200)
    return program


def preparation_then_training() -> Program:
    program = Program()
    parts = [program.allocate("prepare", 64 * MIB) for _ in range(10)]
    for part in parts:
        program.free(part)
    program.parameters()
    for _ in range(30):
        program.train(300)
    return program


def equal_steps() -> Program:
    program = Program()
    program.parameters()
    for _ in range(24):
        program.train(2000)
    return program


def three_lengths() -> Program:
    program, draw = Program(), random.Random(2)
    program.parameters()
    for _ in range(30):
        program.train(draw.choice((800, 1600, 2400)))
    return program


def evaluation_between() -> Program:
    program = Program()
    program.parameters()
    for _ in range(4):
        for _ in range(6):
            program.train(2000)
        for _ in range(8):
            program.evaluate(200)
    program.train(2000)
    return program


def one_step() -> Program:
    program = Program()
    program.parameters()
    program.train(6000)
    for _ in range(LAYERS):
        state = program.allocate("moments", 8 * HIDDEN * HIDDEN)
        program.free(program.allocate("update", 4 * HIDDEN * HIDDEN))
        del state
    return program


PROGRAMS = {
    variable_lengths: "variable_shapes",
    growing_cache: "variable_shapes",
    training_then_evaluation: "cache_not_returned",
    preparation_then_training: "cache_not_returned",
    equal_steps: None,
    three_lengths: None,
    evaluation_between: None,
    one_step: None,
}


def with_sites(snapshot: dict, program: Program) -> dict:
    """The frame of each event says which call it was; it becomes the line of the program. Equal ones are one object."""
    lines = {site: number + 1 for number, site in enumerate(dict.fromkeys(program.site_of))}
    frames = {site: [{"filename": "train.py", "line": line, "name": site}] for site, line in lines.items()}
    for entry in [*snapshot["device_traces"][0], *snapshot["segments"], *(b for s in snapshot["segments"] for b in s["blocks"])]:
        if entry.get("frames"):
            entry["frames"] = frames[program.site_of[entry["frames"][0]["line"] - 1]]
    return snapshot


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    output = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent / "fixtures" / "cache"
    output.mkdir(parents=True, exist_ok=True)
    allocator = build.build(RELEASE, folder)
    expected = {}
    for make, name in PROGRAMS.items():
        program = make()
        path = folder / "fixture.json"
        outcome = compare.real(allocator, Run("", ["h", *program.calls]), path)
        assert not isinstance(outcome, str), f"{make.__name__}: {outcome}"
        program.site_of.insert(0, "")
        file = output / f"{make.__name__}.pickle"
        file.write_bytes(pickle.dumps(with_sites(json.loads(path.read_text()), program), protocol=4))
        conf = ["expandable_segments:True"]
        expandable = compare.real(allocator, Run("", program.calls, conf))
        assert not isinstance(expandable, str), expandable
        expected[file.name] = {"name": name, "peak_reserved_bytes": outcome.statistics["peak_reserved"],
                               "reserved_bytes": outcome.statistics["reserved"],
                               "expandable_peak_reserved_bytes": expandable.statistics["peak_reserved"]}
        print(f"{file.name}: {file.stat().st_size} bytes, {len(program.calls)} calls")
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in expected.items())
    (output / "expected.json").write_text("{\n" + rows + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
