"""A block that has run, and how its sizes are compared."""

import re
from dataclasses import dataclass

from given import GPU


@dataclass
class Ran:
    """A block that has run: its names, what it printed, and the basis that its figures must have."""

    ns: dict
    printed: str
    basis: str

    def __getitem__(self, name):
        return self.ns[name]

    def exactly(self, value, expected):
        """`value` is `expected` bytes where figures are exact; elsewhere it is a number."""
        if self.basis == "exact" and not GPU:
            assert value == expected, f"{value} bytes, not {expected}"
        else:
            assert isinstance(value, (int, float))

    def at_least(self, value, bound):
        assert value >= bound, f"{value} bytes, below {bound}"

    def number(self, label):
        """The number that the block printed after a label."""
        match = re.search(re.escape(label) + r"\s*(-?[\d.]+)", self.printed)
        assert match, f"{label!r} is not in {self.printed!r}"
        return float(match[1])

    def has_basis(self, *things):
        for thing in things:
            assert thing.basis == self.basis, f"{thing.basis}: {thing.basis_reason}"
