"""Nothing is told of a program that holds what it made once, and what grows is told with its bytes a step."""

import pytest
from leaks import judge, told
from leaks.shapes import keeping, serving, table, write

SEED = 31
EACH = 20  # one in so many of the set is in the quick part


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Name of a program of told.py → its findings; all are recorded in one go."""
    folder = tmp_path_factory.mktemp("told")
    package = folder / "site-packages" / serving.LIBRARY
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(serving.library())
    texts = told.SILENT | {name: body for name, (body, _) in told.LEAKS.items()}
    programs = {name: folder / f"p{number}.py" for number, name in enumerate(texts)}
    for name, path in programs.items():
        path.write_text(told.text(texts[name]))
    recorded = table.record(folder / "recorded", [str(path) for path in programs.values()])
    return {name: table.findings(recorded[str(path)]) for name, path in programs.items()}


@pytest.mark.parametrize("name", told.SILENT)
def test_nothing_is_told_of_what_is_held_once(findings, name):
    assert [f["title"] for f in findings[name] if judge.grows(f)] == []


@pytest.mark.parametrize("name", told.LEAKS)
def test_what_grows_is_one_leak_with_the_bytes_that_its_tensors_have(findings, name):
    _, bytes_a_step = told.LEAKS[name]
    leaks = [f for f in findings[name] if judge.grows(f)]
    # Ten thousand steps of four bytes are 40 kB, of the others more than 1 MiB.
    assert [f["severity"] for f in leaks] == ["info" if bytes_a_step == 4 else "warning"]
    assert [f["evidence"]["bytes_a_step"] for f in leaks] == [pytest.approx(bytes_a_step, rel=0.05)]


def check(rows):
    print(table.table(rows))
    ordinary = [r for r in rows if not r.expected.leaks]
    leaking = [r for r in rows if r.expected.leaks]
    found = [r for r in leaking if r.told]
    assert sum(r.leaks > 0 for r in ordinary) <= 1
    assert len(found) >= 0.97 * len(leaking)
    for r in found:
        assert r.line, r
    assert sum(r.has_right_bytes for r in found) >= 0.97 * len(found)


def test_one_in_twenty_of_the_shapes(tmp_path):
    names = [*(f"o{n:03d}.py" for n in range(0, 300, EACH)), *(f"k{n:03d}.py" for n in range(0, 300, EACH))]
    check(table.judged(tmp_path, SEED, names))


@pytest.mark.slow
def test_all_shapes(tmp_path):
    check(table.judged(tmp_path, SEED))


def test_a_recording_is_that_of_the_process_with_this_number_that_started_then(tmp_path):
    for name in ("a.b.9976.400.gmp", "a.b.9976.700.gmp", "a.b.19976.400.gmp"):
        (tmp_path / name).touch()
    assert table.recording_of(tmp_path, "9976", "400").name == "a.b.9976.400.gmp"
    with pytest.raises(SystemExit, match="0 recordings of process 976"):
        table.recording_of(tmp_path, "976", "400")


def test_a_seed_gives_the_same_shapes_again_and_each_case_is_there(tmp_path):
    first, second = (write.write(tmp_path / name, 5) for name in "ab")
    assert first == second
    for name in first:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert {e.shape for e in first.values() if e.leaks} == {shape for shape, _ in keeping.cases()}
    assert sum(e.leaks for e in first.values()) == 300 == sum(not e.leaks for e in first.values())
