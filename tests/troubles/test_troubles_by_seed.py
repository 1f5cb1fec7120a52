"""A few programs of the set, of one seed: each is told by its class, and what looks like it is not. `make host-troubles` counts many."""

import pytest

pytest.importorskip("torch")

from troubles.generate import LIKE, MIXED, WITH, program, programs
from troubles.judge import Judge, Missing

SEED = 7
QUICK = ["shm_left_behind", "weights_copied_privately", "nccl_communicators", "page_cache_is_not_a_leak"]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    judge = Judge(tmp_path_factory.mktemp("troubles"))

    def tell(one):
        try:
            return judge.told(one)
        except Missing as missing:
            pytest.skip(str(missing))

    return tell


def kinds_of(names):
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("kind", kinds_of(WITH))
def test_a_program_that_has_it_is_told_by_its_class(kind, told):
    assert told(program(f"{kind}-{SEED}", (kind,), [WITH[kind]])) == [kind]


@pytest.mark.parametrize("kind", kinds_of(LIKE))
def test_a_program_that_looks_like_it_is_left_alone(kind, told):
    assert told(program(f"like-{kind}-{SEED}", (), [LIKE[kind]])) == []


@pytest.mark.parametrize("kinds", [pytest.param(kinds, marks=() if kinds == MIXED[-1] else pytest.mark.slow) for kinds in MIXED])
def test_of_two_both_are_named(kinds, told):
    one = program(f"{'+'.join(kinds)}-{SEED}", kinds, [WITH[kind] for kind in kinds])
    assert told(one) == sorted(kinds)


def test_a_seed_gives_the_same_programs_and_another_one_others():
    first, again, other = programs(range(3, 4)), programs(range(3, 4)), programs(range(4, 5))
    assert first == again
    assert all(a.text != b.text for a, b in zip(first, other, strict=True))


def test_every_program_compiles():
    for one in programs(range(20)):
        compile(one.text, one.name, "exec")
