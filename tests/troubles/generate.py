"""Programs by a seed: one trouble, two, or what only looks like it. The same seed gives the same text."""

import dataclasses
import random
import string

from leaks.generate import Chooser, indented
from troubles import machine, models, processes
from troubles.recipe import REST, Recipe

WITH: dict[str, list[Recipe]] = {
    "malloc_retention": machine.MALLOC_RETENTION,
    "fork_copy_on_write": processes.FORK_COPY_ON_WRITE,
    "shm_left_behind": machine.SHM_LEFT,
    "page_cache_is_not_a_leak": machine.PAGE_CACHE,
    "checkpoint_staging": models.CHECKPOINT_STAGING,
    "weights_copied_privately": processes.WEIGHTS_COPIED,
    "compile_workers": processes.COMPILE_WORKERS,
    "killed_by_the_kernel": machine.KILLED,
    "nccl_communicators": models.NCCL_COMMUNICATORS,
    "double_weights_in_phase": models.DOUBLE_WEIGHTS,
}
LIKE: dict[str, list[Recipe]] = {
    "malloc_retention": machine.NO_RETENTION,
    "fork_copy_on_write": processes.NO_COPY_ON_WRITE,
    "shm_left_behind": machine.NOT_LEFT,
    "page_cache_is_not_a_leak": machine.NO_PAGE_CACHE,
    "checkpoint_staging": models.NO_STAGING,
    "weights_copied_privately": processes.NOT_COPIED,
    "compile_workers": processes.NO_COMPILE_WORKERS,
    "killed_by_the_kernel": machine.NOT_KILLED,
    "nccl_communicators": models.NO_NCCL,
    "double_weights_in_phase": models.NO_DOUBLE_WEIGHTS,
}
MIXED = [
    ("malloc_retention", "shm_left_behind"),
    ("fork_copy_on_write", "weights_copied_privately"),
    ("checkpoint_staging", "shm_left_behind"),
    ("compile_workers", "fork_copy_on_write"),
    ("killed_by_the_kernel", "shm_left_behind"),
    ("page_cache_is_not_a_leak", "shm_left_behind"),
    ("double_weights_in_phase", "malloc_retention"),
    ("double_weights_in_phase", "weights_copied_privately"),
    ("nccl_communicators", "fork_copy_on_write"),
    ("nccl_communicators", "shm_left_behind"),
]
IMPORTS = "import mmap\nimport os\nimport signal\nimport subprocess\nimport sys\nimport time\n\nfrom sampled import rest\n"
# Something has to be allocated, or there is nothing to analyze.
LIGHT = "\nfrom light import Block\n\n$first = Block($n_first)\n"
TORCH = "\nimport torch\n\ntorch.set_num_threads(1)\n$first = torch.ones($n_first)\n"
ORDINARY = [
    "",
    "\n$numbers = sorted(hash(str(i)) for i in range($n_count))\n",
    "\nimport numpy\n\n$grid = numpy.random.rand($n_first // 64, 256)\nprint(($grid.T @ $grid).trace())\n",
    "\nwith open(\"$notes.txt\", \"w\") as $file:\n    for $i in range($n_count):\n        print($i, file=$file)\n",
    "\ntime.sleep($n_rest / 40)\n",
]
NUMBERS = {**REST, "n_first": (4096, 65536), "n_count": (1000, 60_000)}


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    kinds: tuple[str, ...]
    """Of what is to be told of it."""
    text: str
    recipes: tuple[Recipe, ...]
    limit_mib: int | None

    @property
    def options(self) -> list[str]:
        return sorted({option for recipe in self.recipes for option in recipe.options})

    @property
    def needs_driver(self) -> bool:
        return any(recipe.driver for recipe in self.recipes)

    @property
    def code(self) -> int:
        return self.recipes[-1].code


def scoped(rng: random.Random, name: str, text: str) -> str:
    """In the module, or in a function."""
    if rng.random() < 0.5:
        return text
    return "\n".join([f"\n\ndef {name}():", *indented(text, 1), "", "", f"{name}()", ""])


def program(name: str, kinds: tuple[str, ...], pools: list[list[Recipe]]) -> Program:
    """`pools`: of each one recipe is taken. `name` is the seed."""
    rng = random.Random(name)
    has_peak = len(kinds) > 1 and "double_weights_in_phase" in kinds
    pools = [[recipe for recipe in pool if not (has_peak and recipe.is_large)] for pool in pools]
    recipes = [rng.choice(pool) for pool in pools]
    while sum(recipe.is_last for recipe in recipes) > 1:
        recipes = [rng.choice(pool) for pool in pools]
    rng.shuffle(recipes)
    recipes.sort(key=lambda recipe: recipe.is_last)
    limit_mib = next((rng.randrange(*recipe.limit_mib) for recipe in recipes if recipe.limit_mib), None)
    used: set[str] = set()

    def filled(text: str, numbers: dict[str, tuple[int, int]]) -> tuple[str, Chooser]:
        chooser = Chooser(rng, {**NUMBERS, **numbers})
        chooser.used = used
        chooser.chosen["n_limit"] = str(limit_mib)
        return string.Template(text).substitute(chooser), chooser

    is_torch = any(recipe.torch for recipe in recipes) or (rng.random() < 0.2 and limit_mib is None)
    parts = [IMPORTS, filled(TORCH if is_torch else LIGHT, {})[0], filled(rng.choice(ORDINARY), {})[0]]
    for recipe in recipes:
        text, chooser = filled(recipe.text, recipe.numbers)
        parts += [scoped(rng, chooser["part"], text), filled(rng.choice(ORDINARY), {})[0] if not recipe.is_last else ""]
    return Program(name, kinds, "".join(parts), tuple(recipes), limit_mib)


def programs(seeds: range) -> list[Program]:
    """Each class by each seed, as many that only look like it, and the mixes."""
    out = []
    for seed in seeds:
        for kind in WITH:
            out.append(program(f"{kind}-{seed}", (kind,), [WITH[kind]]))
            out.append(program(f"like-{kind}-{seed}", (), [LIKE[kind]]))
        for kinds in MIXED:
            out.append(program(f"{'+'.join(kinds)}-{seed}", kinds, [WITH[kind] for kind in kinds]))
    return out
