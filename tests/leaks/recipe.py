"""What a program of the leak test set is made of, before names, sizes and its shape are chosen.

The text of a recipe is Python with placeholders: `$word` becomes a made-up name, the same everywhere in one program
(`$Word` one that begins with a capital letter), `$n_word` a number out of `numbers`. A line that ends in `#@` allocates
what the program keeps; the mark is taken out, and the line's number is what a detector has to name.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One leaking or clean program. Times are steps: a program is told how many on its command line."""

    name: str
    """For people; no program that is made from it shows it."""
    step: str
    """What happens in a step beside training. Runs every `period` steps where the recipe may have a period."""
    bug: str | None = None
    """The bug's name, or None: a clean program."""
    holder: str = ""
    """What keeps the memory: `$history` a variable, `$Model.$seen` an attribute of that class's object."""
    definitions: str = ""
    """Classes and functions of the module."""
    state: str = ""
    """Runs once, before the first step, in the scope of the steps."""
    after: str = ""
    """Runs once, after the last step."""
    train: bool = True
    """A step trains a small network first (`$model`, `$optimizer`; its `$x`, `$y`, `$out`, `$loss` can be used)."""
    periodic: bool = False
    """The step may be done only every second or third time without being another bug (or none)."""
    grows: bool = True
    """A leak that grows with the steps; else a constant that should not be there."""
    rises: bool = False
    """A clean one whose data gets larger to the end: so does its peak, but not the number of blocks that stay."""
    numbers: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """Bounds of every `$n_…` that the texts use besides those of the network."""
    churn_bytes: int = 0
    """Made and dropped in every step beside the rest: what hides a slow leak."""
