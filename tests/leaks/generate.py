"""Writes the leak test set: PYTHONPATH=tests python -m leaks.generate --seed N FOLDER

The folder gets program files whose names say nothing, and `expected.json`: for each program whether it leaks and, if
so, the bug's name, the lines that allocate what is kept, and its holder. A detector may read neither the sources nor
that file. The same seed gives the same bytes."""

import argparse
import json
import random
import string
from pathlib import Path

from leaks import clean, leaking, network
from leaks.recipe import Recipe

IMPORTS = """import collections
import functools
import multiprocessing
import sys

import torch
from torch import nn
from torch.nn import functional

steps = int(sys.argv[1])
torch.manual_seed({seed})
torch.set_num_threads(1)
"""
MARK = "#@"
SYLLABLES = "ba ce di fo gu ka le mi no pu ra se ti vo zu".split()


class Chooser:
    """Every choice of one program: names and numbers by placeholder, and its shape."""

    def __init__(self, rng: random.Random, numbers: dict[str, tuple[int, int]]):
        self.rng, self.chosen, self.used = rng, {}, set()
        self.numbers = numbers

    def __getitem__(self, key: str) -> str:
        """What stands for `$key`: the mapping that string.Template asks."""
        if key not in self.chosen:
            self.chosen[key] = str(self.rng.randrange(*self.numbers[key])) if key in self.numbers else self.word(key)
        return self.chosen[key]

    def word(self, key: str) -> str:
        while True:
            word = "".join(self.rng.choices(SYLLABLES, k=self.rng.choice((2, 3, 3, 4))))
            word = word.capitalize() if key[0].isupper() else word
            if word.lower() not in self.used:
                self.used.add(word.lower())
                return word


def indented(text: str, depth: int) -> list[str]:
    return ["    " * depth + line if line else "" for line in text.strip("\n").splitlines()]


def looped(rng: random.Random, body: str) -> str:
    """`body` once a step, with `$i` the step from 0, in one of the forms that loops have."""
    form = rng.choice(("for", "while", "iterator"))
    head = {"for": "for $i in range(steps):", "while": "$i = -1\nwhile $i + 1 < steps:\n    $i += 1",
            "iterator": "for $i, _ in enumerate(iter(int, 1)):\n    if $i == steps:\n        break"}[form]  # fmt: skip
    return "\n".join([head, *indented(body, 1)])


def scoped(rng: random.Random, recipe: Recipe, state: str, loop: str) -> str:
    """State, loop and what comes after in the module, a function, a method or a nested function."""
    body = "\n".join(part.strip("\n") for part in (state, loop, recipe.after) if part)
    form = rng.choice(("module", "function", "method", "nested"))
    if form == "function":
        return "\n".join(["def $main():", *indented(body, 1), "", "", "$main()"])
    if form == "method":
        return "\n".join(["class $Runner:", "    def $main(self):", *indented(body, 2), "", "", "$Runner().$main()"])
    if form == "nested":
        return "\n".join(["def $outer():", "    def $main():", *indented(body, 2), "", "    $main()", "", "", "$outer()"])
    return body


def program(rng: random.Random, recipe: Recipe) -> tuple[str, dict]:
    """The text of a program and what is expected of it."""
    numbers = {**network.NUMBERS, **recipe.numbers}
    step = recipe.step.strip("\n")
    period = rng.choice((1, 1, 2, 3)) if recipe.periodic else 1
    if period > 1:
        step = "\n".join([f"if $i % {period} == 0:", *indented(step, 1)])
    if recipe.churn_bytes:
        step = f"torch.empty({recipe.churn_bytes}, dtype=torch.uint8)\n{step}"
    state = recipe.state
    if recipe.train:
        state, step = network.STATE + state.strip("\n"), network.STEP.strip("\n") + "\n" + step
    text = IMPORTS.format(seed=rng.randrange(1000))
    if recipe.definitions:
        text += "\n\n" + recipe.definitions.strip("\n") + "\n\n"
    text += "\n" + scoped(rng, recipe, state, looped(rng, step)) + "\n"
    chooser = Chooser(rng, numbers)
    lines = string.Template(text).substitute(chooser).splitlines()
    marked = [number for number, line in enumerate(lines, 1) if line.endswith(MARK)]
    expected: dict = {"recipe": recipe.name, "leaks": recipe.bug is not None}
    if recipe.rises:
        expected["rises"] = True
    if recipe.bug:
        holder = string.Template(recipe.holder).substitute(chooser)
        expected |= {"bug": recipe.bug, "lines": marked, "holder": holder, "grows": recipe.grows, "period": period}
    return "\n".join(line.removesuffix(MARK).rstrip() for line in lines) + "\n", expected


def write(folder: Path, seed: int) -> dict[str, dict]:
    """Writes the set of a seed; file name → what is expected of it, as in expected.json."""
    rng = random.Random(seed)
    recipes = [*leaking.RECIPES, *clean.RECIPES]
    rng.shuffle(recipes)
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    for number, recipe in enumerate(recipes):
        name = f"p{number:03d}.py"
        text, expected[name] = program(rng, recipe)
        (folder / name).write_text(text)
    (folder / "expected.json").write_text(json.dumps({"seed": seed, "programs": expected}, indent=1) + "\n")
    return expected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, required=True, help="which set: the same number gives the same programs")
    parser.add_argument("folder", type=Path, help="where the programs go")
    arguments = parser.parse_args()
    expected = write(arguments.folder, arguments.seed)
    bad = sum(e["leaks"] for e in expected.values())
    print(f"{bad} programs that leak and {len(expected) - bad} that do not: {arguments.folder}")


if __name__ == "__main__":
    main()
