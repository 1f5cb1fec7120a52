"""The leak detector against the leak test set: a third of it here, all of it under the slow marker."""

import pytest

from leaks import clean, leaking, table

SEED = 11
LEAKING = [r.name for r in leaking.RECIPES][::3]
CLEAN = [r.name for r in clean.RECIPES][::3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("leaks_found")


def check(rows):
    rows = list(rows)
    print(table.table(rows))
    leaks = [v for v, bug, _ in rows if bug]
    assert len(leaks) >= 10
    for part, least in (("line", 0.95), ("name", 0.95), ("holder", 0.8)):
        assert sum(getattr(v, part) for v in leaks) >= least * len(leaks), part
    assert sum(v.is_false_alarm for v, _, _ in rows) <= 1


def test_a_third_of_the_programs(folder):
    check(table.verdicts(folder, SEED, {*LEAKING, *CLEAN}))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [12, 13])
def test_all_programs_of_a_seed(folder, seed):
    check(table.verdicts(folder, seed))


@pytest.mark.slow
def test_clean_programs_that_run_ten_times_longer(folder):
    rows = list(table.verdicts(folder, SEED, longer=True))
    assert sum(v.is_false_alarm for v, _, _ in rows) <= 1, table.table(rows)
