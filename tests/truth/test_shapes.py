"""The recorded stack is the one that Python itself sees at the allocation, frame by frame."""
import pytest

import harness
import nested

WHOLE_FRAMES = 128  # stacks up to this are kept whole


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes") / "recording"
    done = nested.record(folder, [harness.PYTHON, harness.PROGRAMS / "shapes.py"]).ok()
    expected = {e["size"]: e for e in done.printed()}
    assert len(expected) > 400
    return harness.by_size(harness.events(folder)), expected


def storable(file_name):
    """Names that the format keeps as they are: text, and not longer than 4,096 bytes."""
    try:
        return len(file_name.encode()) <= 4096
    except UnicodeEncodeError:
        return False


def pairs(recorded):
    """(what, expected frames, recorded frames) of every tensor that the program allocated."""
    sizes, expected = recorded
    for size, entry in expected.items():
        (event,) = sizes[size]
        # Names of what PyTorch does at that moment (docs/attribution.md) come before the frames of code.
        found = [f for f in harness.frames(event) if not str(f).startswith("<torch ")]
        yield entry["what"], [harness.Frame(*f) for f in entry["stack"]], found


def test_every_tensor_is_recorded_once(recorded):
    sizes, expected = recorded
    assert {size: len(sizes[size]) for size in expected} == dict.fromkeys(expected, 1)


def test_every_stack_is_the_one_python_sees(recorded):
    wrong = []
    for what, expected, found in pairs(recorded):
        if len(expected) <= WHOLE_FRAMES and all(storable(f.file) for f in expected) and found != expected:
            at = next((i for i, (e, f) in enumerate(zip(expected, found)) if e != f), min(len(expected), len(found)))
            wrong.append(f"{what}: frame {at} of {len(expected)} is {found[at:at + 1]}, not {expected[at:at + 1]}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])


def test_a_name_that_cannot_be_stored_leaves_the_rest_right(recorded):
    checked = 0
    for what, expected, found in pairs(recorded):
        if any(not storable(f.file) for f in expected):
            checked += 1
            assert [f[1:] for f in found] == [f[1:] for f in expected], what
            for e, f in zip(expected, found):
                assert f.file == e.file or e.file.startswith(f.file[:9]), what
    assert checked == 2


def test_a_deep_stack_keeps_both_ends_and_says_what_it_left_out(recorded):
    checked = 0
    for what, expected, found in pairs(recorded):
        if len(expected) <= WHOLE_FRAMES:
            continue
        checked += 1
        cuts = [i for i, f in enumerate(found) if isinstance(f, str)]
        assert len(cuts) == 1, (what, [f for f in found if isinstance(f, str)])
        top, bottom = found[: cuts[0]], found[cuts[0] + 1:]
        assert len(top) >= 32 and len(bottom) >= 32, what
        assert top == expected[: len(top)], what
        assert bottom == expected[-len(bottom):], what
        said = "".join(c for c in found[cuts[0]] if c.isdigit())
        assert said in ("", str(len(expected) - len(top) - len(bottom))), (what, found[cuts[0]])
    assert checked >= 3
