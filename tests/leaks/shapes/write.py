"""Writes the programs of a seed: PYTHONPATH=tests python -m leaks.shapes.write --seed N FOLDER

300 ordinary programs and 300 that leak; the same seed gives the same bytes."""

import argparse
import dataclasses
import json
import random
from pathlib import Path

from leaks.shapes import data, keeping, models, serving, training
from leaks.shapes.text import HEAD

MARK = "#@"
ORDINARY = [*models.SHAPES, *data.SHAPES, *training.SHAPES, *serving.SHAPES]


@dataclasses.dataclass
class Expected:
    shape: str
    leaks: bool
    bytes_a_step: float = 0
    """By arithmetic on the sizes of the tensors that are kept."""
    lines: list[int] = dataclasses.field(default_factory=list)


def text_of(rng, body):
    text = HEAD.format(seed=rng.randrange(1000)) + "\n" + body + "\n"
    lines = text.splitlines()
    marked = [number for number, line in enumerate(lines, 1) if line.endswith(MARK)]
    return "\n".join(line.removesuffix(MARK).rstrip() for line in lines) + "\n", marked


def turns(rng, kinds, count):
    """Each kind as often as every other, and some once more, until there are `count`."""
    all_of_them = [*kinds] * (count // len(kinds))
    return all_of_them + rng.sample(kinds, count - len(all_of_them))


def write(folder, seed, ordinary=300, leaking=300):
    """File name → what is expected of the program."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "site-packages" / serving.LIBRARY
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(serving.library())
    expected = {}
    for number, make in enumerate(turns(rng, ORDINARY, ordinary)):
        text, _ = text_of(rng, make(rng))
        name = f"o{number:03d}.py"
        (folder / name).write_text(text)
        expected[name] = Expected(make.__name__, False)
    for number, (shape, make) in enumerate(turns(rng, keeping.cases(), leaking)):
        body, bytes_a_step = make(rng)
        text, marked = text_of(rng, body)
        name = f"k{number:03d}.py"
        (folder / name).write_text(text)
        expected[name] = Expected(shape, True, bytes_a_step, marked)
    rows = {name: dataclasses.asdict(e) for name, e in expected.items()}
    (folder / "expected.json").write_text(json.dumps(rows, indent=1) + "\n")
    return expected


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    print(f"{len(write(arguments.folder, arguments.seed))} programs: {arguments.folder}")


if __name__ == "__main__":
    main()
