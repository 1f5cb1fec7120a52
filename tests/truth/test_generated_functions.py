"""A stack must name the code that ran, also where a code object's address was somebody else's before."""
import pytest

import harness

COUNT = 1000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated") / "recording"
    done = harness.record(folder, [harness.PYTHON, harness.PROGRAMS / "generated_functions.py", COUNT]).ok()
    reused = {line["variant"]: line["address_reused"] for line in done.printed()}
    return harness.by_size(harness.events(folder)), reused


def mismatches(recorded, base, expected, depth=0):
    """Sizes whose stack, seen at `depth`, is not what `expected(i)` says: all of them must be right."""
    sizes, _ = recorded
    wrong = []
    for i in range(COUNT):
        found = [harness.frames(e)[depth] for e in sizes[base + i]]
        if found != [harness.Frame(*expected(i))]:
            wrong.append((i, found, expected(i)))
    return wrong


@pytest.mark.parametrize(
    "variant, base, expected, depth",
    [
        ("main", 1000, lambda i: (f"main_{i}.py", i + 1, "f"), 0),
        ("file", 10_000, lambda i: (f"file_{i:04}.py", 1, "f"), 0),
        ("function", 20_000, lambda i: ("same_file.py", 1, f"g{i:04}"), 0),
        ("body", 30_000, lambda i: ("same_first.py", i + 2, "f"), 0),
        ("again", 40_000, lambda i: ("b.py", 8, "f") if i % 2 else ("a.py", 1, "f"), 0),
        ("inner", 50_000, lambda i: (f"inner_{i}.py", i % 50 + 1, "f"), 0),
        ("outer", 60_000, lambda i: (f"outer_{i}.py", i % 50 + 1, "f"), 1),
        ("thread", 70_000, lambda i: (f"thread_{i}.py", i + 1, "f"), 0),
    ],
)
def test_every_generated_function_is_named(recorded, variant, base, expected, depth):
    assert recorded[1][variant] > COUNT // 4, "the addresses were not reused, so this proves nothing"
    wrong = mismatches(recorded, base, expected, depth)
    assert not wrong, f"{len(wrong)} of {COUNT} are wrong, the first: {wrong[0]}"


def test_the_callers_of_a_generated_function_are_named_too(recorded):
    for i in range(COUNT):
        (event,) = recorded[0][50_000 + i]
        names = [f.function for f in harness.frames(event)]
        assert names[1:22] == ["inner_changes_under_one_outer.<locals>.outer"] * 21, (i, names)
        assert names[22:] == ["inner_changes_under_one_outer", "<module>"], (i, names)
