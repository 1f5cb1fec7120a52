"""What a program with a trouble of the host is made of, before names, sizes and durations are chosen.

The text of a recipe is Python with placeholders, as of the leak test set: `$word` becomes a made-up name, `$n_word` a number
out of `numbers`. `$n_rest` is a tenth of a second: how long it waits for a sample, of which `run` takes one a second."""

import dataclasses

REST = {"n_rest": (16, 26)}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One way to have a trouble, or to look as if."""

    text: str
    """Runs once, in a function or in the module. It may import what it needs."""
    numbers: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """Bounds of every `$n_…` of the text besides `$n_rest`."""
    torch: bool = False
    """It needs PyTorch; else some programs import it and others do not."""
    options: tuple[str, ...] = ()
    """Of `gpumemprof run`."""
    limit_mib: tuple[int, int] | None = None
    """It runs in a cgroup that may use so much: bounds, of which the text knows the choice as `$n_limit`."""
    driver: bool = False
    """It calls the GPU's driver, through libraries of known names."""
    is_large: bool = False
    """Its tensors may be more than two sets of weights: those are told of at the peak alone."""
    is_last: bool = False
    """Nothing runs after it."""
    code: int = 0
    """With which the program ends."""
