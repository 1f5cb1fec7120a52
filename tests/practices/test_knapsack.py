"""The choice of modules against every subset."""

import itertools
import random

import pytest

from gpumemprof.optimizing.knapsack import Item, choose


def brute_force(items, needed):
    """(least time, most bytes at that time) over all subsets; None where none saves enough."""
    subsets = (s for n in range(len(items) + 1) for s in itertools.combinations(items, n))
    found = [(sum(i.time_ns for i in s), -sum(i.saved_bytes for i in s)) for s in subsets]
    return min(((time, saved) for time, saved in found if -saved >= needed), default=None)


@pytest.mark.parametrize("seed", range(150))
def test_it_is_the_best_of_all_subsets(seed):
    numbers = random.Random(seed)
    most_bytes, most_time = numbers.choice([(3, 5), (50, 50), (10**9, 10**7)])  # with and without equal ones
    items = [
        Item(f"block.{i}", numbers.randint(0, most_bytes), numbers.randint(0, most_time))
        for i in range(numbers.randint(0, 10))
    ]
    total = sum(item.saved_bytes for item in items)
    needed = numbers.randint(0, total + 1)
    best, chosen = brute_force(items, needed), choose(items, needed)
    if best is None:
        assert chosen is None
        return
    assert chosen.is_exact and chosen.saved_bytes >= needed
    assert chosen.time_ns == best[0] == sum(item.time_ns for item in chosen.items)
    assert set(chosen.items) <= set(items) and len(set(chosen.items)) == len(chosen.items)


def test_what_saves_nothing_is_not_chosen_and_nothing_needs_nothing():
    assert choose([Item("a", 0, 0), Item("b", -5, 0)], 1) is None
    assert choose([Item("a", 0, 0), Item("b", 7, 3)], 0).items == ()


def test_many_equal_blocks_take_no_long_search():
    blocks = [Item(f"block.{i}", 1 << 20, 1000 + i) for i in range(500)]
    chosen = choose(blocks, 200 << 20)
    assert [item.name for item in chosen.items] == [f"block.{i}" for i in range(200)]


def test_many_different_ones_are_rounded_and_it_says_so():
    numbers = random.Random(1)
    items = [Item(str(i), numbers.randint(1, 10**10), numbers.randint(1, 10**9)) for i in range(60)]
    needed = sum(item.saved_bytes for item in items) // 2
    chosen = choose(items, needed)
    assert chosen.saved_bytes >= needed
    # A greedy choice by bytes a time is an upper bound that the answer has to beat or meet, rounding apart.
    greedy, saved = 0, 0
    for item in sorted(items, key=lambda item: item.time_ns / item.saved_bytes):
        if saved < needed:
            greedy, saved = greedy + item.time_ns, saved + item.saved_bytes
    assert chosen.time_ns <= greedy * (1 if chosen.is_exact else 1.01)
