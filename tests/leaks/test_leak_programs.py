"""The leak test set itself: what it says of its programs is what an exact recording of them shows."""

import ast
import collections
import re

import pytest
from leaks import clean, generate, leaking

import harness
import nested

SEED = 7
SHORT, LONG = 24, 72
QUICK = ["losses of a validation set in a list", "keys are joined over all requests", "a child process that collects",
         "a cache with a limit", "sequences get longer up to a limit", "a data set whose cache is full after a while"]  # fmt: skip
RECIPES = [r.name for r in (*leaking.RECIPES, *clean.RECIPES)]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Recipe's name → (path, what is expected), of one seed."""
    folder = tmp_path_factory.mktemp("leaks")
    return {e["recipe"]: (folder / name, e) for name, e in generate.write(folder, SEED).items()}


def texts(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_seed_gives_the_same_bytes_again_and_another_seed_other_programs(tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate.write(tmp_path / folder, seed)
    assert texts(tmp_path / "a") == texts(tmp_path / "b")
    same = [n for n, text in texts(tmp_path / "a").items() if text == texts(tmp_path / "c")[n]]
    assert same == []


def test_there_are_thirty_of_each_half_and_two_of_every_bug():
    assert len(leaking.RECIPES) >= 30 and len(clean.RECIPES) >= 30
    assert min(collections.Counter(r.bug for r in leaking.RECIPES).values()) >= 2
    assert {r.bug for r in clean.RECIPES} == {None}
    assert len(set(RECIPES)) == len(RECIPES)


def test_a_program_compiles_has_no_comment_and_no_name_of_its_recipe(programs):
    for name, (path, expected) in programs.items():
        text = path.read_text()
        ast.parse(text)
        assert "#" not in text and "$" not in text, name
        assert re.fullmatch(r"p\d{3}\.py", path.name)
        hints = {"leak", "clean", "seen", "kept", "history", "predictions", "features", "buffer", expected.get("bug")}
        assert not hints & set(re.findall(r"\w+", text)), name
        assert bool(expected.get("lines")) == expected["leaks"], name


class Live:
    """What a recorded run held right after its last allocation, before the program took itself down."""

    def __init__(self, folder, program, steps):
        nested.record(folder, [harness.PYTHON, program, steps], timeout=300).ok()
        self.bytes_by_line, self.blocks = collections.Counter(), 0
        events = collections.defaultdict(list)
        for event in harness.events(folder):
            events[event["process"]].append(event)
        for of_process in events.values():
            live = {}
            last = max((n for n, e in enumerate(of_process) if e["action"] == "alloc"), default=-1)
            for event in of_process[: last + 1]:
                if event["action"] == "alloc":
                    live[event["address"]] = event
                else:
                    live.pop(event["address"], None)
            self.blocks += len(live)
            for event in live.values():
                self.bytes_by_line[self.line(event, program)] += event["size_bytes"]
        devices = harness.analysis(folder)["devices"]
        self.peak_bytes = max(d["peak"]["requested_bytes"] for d in devices)

    @staticmethod
    def line(event, program):
        """The line of the program that allocated: the innermost of its own frames."""
        own = [f.line for f in harness.frames(event) if not isinstance(f, str) and f.file == str(program)]
        return own[0] if own else None


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in RECIPES]
)
def test_what_a_program_keeps_is_what_is_expected_of_it(programs, tmp_path, name):
    path, expected = programs[name]
    short, long = (Live(tmp_path / str(steps), path, steps) for steps in (SHORT, LONG))
    grown = collections.Counter(long.bytes_by_line)
    grown.subtract(short.bytes_by_line)
    if expected.get("rises"):
        assert long.peak_bytes >= 1.3 * short.peak_bytes and long.blocks == short.blocks
    elif not expected["leaks"]:
        # A clean program has reached its height after a third of the steps; some go up and down at random below it.
        assert long.peak_bytes <= 1.15 * short.peak_bytes, grown
    elif expected["grows"]:
        on_lines = sum(grown[line] for line in expected["lines"])
        assert on_lines > 0 and on_lines >= 0.95 * sum(n for n in grown.values() if n > 0), (grown, expected)
        steps = (LONG - SHORT) // expected["period"]
        assert on_lines % steps == 0 or name == "a new optimizer for every round", (on_lines, steps)
    else:
        assert {line: n for line, n in grown.items() if n} == {}
        assert sum(long.bytes_by_line[line] for line in expected["lines"]) > 0
