"""Programs that leak: each thing that is kept by mistake, at each of the times at which it happens. What it keeps in a
step follows from the sizes of its tensors.

A kept thing is (before the steps, what happens, bytes that stay each time). The line that allocates ends in `#@`."""

import dataclasses

from leaks.shapes.text import STEP, block, indented, joined, network, small

FLOAT = 4
SAVE_THEIR_RESULT = ("ReLU", "Tanh")
"""Activations that keep nothing for a backward pass that the next layer does not keep."""


@dataclasses.dataclass(frozen=True)
class Kept:
    before: str
    step: str
    size_bytes: object
    """A function of the sizes."""


def graph_bytes(s):
    """What model(x).pow(2).mean() keeps until a backward pass: the input, the hidden layer after its activation, the
    output that is squared, and the mean itself."""
    return FLOAT * (s["b"] * (s["i"] + s["h"] + s["o"]) + 1)


def state_bytes(s):
    """Two moments and a counter for each parameter of the two layers."""
    parameters = s["i"] * s["h"] + s["h"] + s["h"] * s["o"] + s["o"]
    return FLOAT * (2 * parameters + 4)


def rows(name):
    return lambda s: FLOAT * s["b"] * s[name]


KEPT = {
    "outputs": Kept("kept<n> = []", "kept<n>.append(model(torch.randn(<b>, <i>)).detach())  #@", rows("o")),
    "outputs without a graph": Kept(
        "kept<n> = {}", "with torch.no_grad():\n    kept<n>[len(kept<n>)] = model(torch.randn(<b>, <i>))  #@", rows("o")),
    "a loss with its graph": Kept(
        "losses<n> = []", "with torch.enable_grad():\n    losses<n>.append(model(torch.randn(<b>, <i>)).pow(2).mean())  #@",
        graph_bytes),
    "a cache without a limit": Kept(
        "@functools.lru_cache(maxsize=None)\ndef table<n>(k):\n    return torch.ones(<b>, <h>).mul(k)  #@",
        "table<n>(next(count<n>)).sum()", rows("h")),
    "exceptions": Kept(
        "failures<n> = []\ndef check<n>(k):\n    work = torch.full((<b>, <h>), float(k))  #@\n"
        "    if work.sum() >= 0:\n        raise ValueError(k)",
        "try:\n    check<n>(next(count<n>))\nexcept ValueError as error:\n    failures<n>.append(error)", rows("h")),
    "a hook": Kept(
        "seen<n> = []\nside<n> = nn.Linear(<i>, <h>)\n"
        "side<n>.register_forward_hook(lambda m, a, result: seen<n>.append(result.detach()))",
        "with torch.no_grad():\n    side<n>(torch.randn(<b>, <i>)).sum()  #@", rows("h")),
    "an attribute": Kept(
        "class Net<n>(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer, self.seen = nn.Linear(<i>, <h>), []\n\n"
        "    def forward(self, value):\n        result = self.layer(value)  #@\n        self.seen.append(result.detach())\n"
        "        return result\n\n\nside<n> = Net<n>()",
        "with torch.no_grad():\n    side<n>(torch.randn(<b>, <i>)).sum()", rows("h")),
    "a cache that a larger one replaces": Kept(
        "keys<n> = torch.zeros(0, <h>)\nproject<n> = nn.Linear(<i>, <h>)",
        "with torch.no_grad():\n    keys<n> = torch.cat([keys<n>, project<n>(torch.randn(<b>, <i>))])  #@", rows("h")),
    "pairs of requests": Kept(
        "table<n> = {}\nproject<n> = nn.Linear(<i>, 2 * <h>)",
        "with torch.inference_mode():\n    pairs = project<n>(torch.randn(<b>, <i>))  #@\n"
        "    table<n>[next(count<n>)] = pairs.chunk(2, dim=-1)", lambda s: 2 * rows("h")(s)),
    "a state with its graph": Kept(
        "state<n> = torch.zeros(<b>, <h>)\nlayer<n> = nn.Linear(<i>, <h>)",
        "with torch.enable_grad():\n    state<n> = 0.9 * state<n> + layer<n>(torch.randn(<b>, <i>)).tanh()  #@",
        lambda s: rows("h")(s) + rows("i")(s)),
    "optimizers": Kept(
        "rounds<n> = []",
        "model(torch.randn(<b>, <i>)).sum().backward()\nfresh = torch.optim.Adam(model.parameters(), lr=1e-6)\n"
        "fresh.step()  #@\nfresh.zero_grad()\nrounds<n>.append(fresh)",
        state_bytes),
    "batches": Kept("seen<n> = []", "batch = torch.randn(<b>, <i>)  #@\nmodel(batch).sum().item()\nseen<n>.append(batch)",
                    rows("i")),
}  # fmt: skip
MARKS_A_STEP = ("optimizers",)
"""Their own steps are steps, too: as a rate a step is asked for, they are not crossed with what depends on it."""


def with_steps(body, steps):
    return f"for i in range({steps}):\n" + indented(body)


def every(count, body):
    return f"if i % {count} == {count} - 1:\n" + indented(body)


def repeated(count, body):
    return f"for _ in range({count}):\n" + indented(body)


SERVE = "with torch.no_grad():\n    answer = model(torch.randn(<b>, <i>)).argmax(-1).tolist()"
BY_HAND = """
loss = functional.mse_loss(model(torch.randn(<b>, <i>)), torch.zeros(<b>, <o>))
loss.backward()
with torch.no_grad():
    for parameter in model.parameters():
        parameter -= 0.01 * parameter.grad
        parameter.grad = None
"""


def each_step(rng, keep, work):
    return with_steps(joined(work, keep), rng.randrange(40, 160)), 1


def every_few_steps(rng, keep, work):
    k = rng.randrange(2, 9)
    return with_steps(joined(work, every(k, keep)), k * rng.randrange(10, 24)), 1 / k


def in_bursts(rng, keep, work):
    k, times = rng.randrange(6, 16), rng.randrange(2, 8)
    return with_steps(joined(work, every(k, repeated(times, keep))), k * rng.randrange(6, 14)), times / k


def at_validation(rng, keep, work):
    epochs, steps, batches = rng.randrange(5, 11), rng.randrange(6, 30), rng.randrange(1, 7)
    body = joined(repeated(steps, work), repeated(batches, keep))
    return f"for epoch in range({epochs}):\n" + indented(body), batches / steps


def at_validation_of_three_epochs(rng, keep, work):
    steps, batches = rng.randrange(8, 24), rng.randrange(5, 12)
    return "for epoch in range(3):\n" + indented(joined(repeated(steps, work), repeated(batches, keep))), batches / steps


def in_every_second_phase(rng, keep, work):
    """Two kinds of phases in turn; one of them keeps, in each of its steps."""
    phases, steps = 2 * rng.randrange(5, 8), rng.randrange(6, 14)
    body = joined(work, f"if (i // {steps}) % 2 == 1:\n" + indented(keep))
    return with_steps(body, phases * steps), 1 / 2


def late(rng, keep, work):
    """Only in the second part of the run: a step is one of this part."""
    steps = rng.randrange(60, 160)
    begin = int(steps * rng.uniform(0.3, 0.6))
    return with_steps(joined(work, f"if i >= {begin}:\n" + indented(keep)), steps), 1


def before_an_evaluation(rng, keep, work):
    steps, batches = rng.randrange(40, 120), rng.randrange(5, 40)
    final = "with torch.no_grad():\n    for _ in range(<v>):\n        value = model(torch.randn(<b>, <i>)).sum().item()"
    return joined(with_steps(joined(work, keep), steps), final.replace("<v>", str(batches))), 1


def in_few_long_steps(rng, keep, work):
    """A step of many small batches, each of which keeps."""
    small_batches = rng.randrange(6, 24)
    forward = "functional.mse_loss(model(torch.randn(<b>, <i>)), torch.zeros(<b>, <o>)).backward()"
    body = joined(repeated(small_batches, joined(forward, keep)), "optimizer.step()\noptimizer.zero_grad()")
    return with_steps(body, rng.randrange(9, 20)), small_batches


def in_many_steps(rng, keep, work):
    return with_steps(joined(work, keep), rng.randrange(600, 1200)), 1


TRAINING = (each_step, every_few_steps, in_bursts, at_validation, at_validation_of_three_epochs, in_every_second_phase,
            late, before_an_evaluation, in_few_long_steps)  # fmt: skip
LOOPS = (each_step, every_few_steps, late)
NO_MODEL = ("a cache that a larger one replaces",)


def parts_of(kept, number, sizes):
    """Before, step and bytes of the kept thing with this number."""
    before = f"count{number} = itertools.count()\n" + kept.before
    return block(before, n=number, **sizes), block(kept.step, n=number, **sizes), kept.size_bytes(sizes)


def program(rng, name, when, work):
    """Text with its marks, and the bytes a step that its tensors' sizes give."""
    sizes = small(rng)
    before, step, size_bytes = parts_of(KEPT[name], 0, sizes)
    loop, rate = when(rng, step, work)
    text = block(joined(network(rng, sizes, acts=SAVE_THEIR_RESULT), before, loop), **sizes)
    return text, size_bytes * rate


def at_several_rates(rng, names):
    """Two things at once, one in each step and the other every few."""
    sizes, k = small(rng), rng.randrange(3, 8)
    first, second = (parts_of(KEPT[name], number, sizes) for number, name in enumerate(names))
    loop = with_steps(joined(STEP, first[1], every(k, second[1])), k * rng.randrange(10, 20))
    text = block(joined(network(rng, sizes, acts=SAVE_THEIR_RESULT), first[0], second[0], loop), **sizes)
    return text, first[2] + second[2] / k


JOINS = (
    "row = torch.randn(<b>, <h>)\ntable = torch.cat([table, row])  #@\n<use>",
    "table = torch.cat([table, torch.randn(<b>, <h>)])  #@",
    "table = torch.vstack((table, torch.rand(<b>, <h>) - 0.5))  #@",
    "table = joined(table)",
)


def without_a_model(rng):
    sizes = small(rng)
    text = block("""
        def joined(table):
            return torch.cat([table, torch.randn(<b>, <h>)])  <mark>


        table = torch.zeros(0, <h>)
        for i in range(<steps>):
            <join>
    """, join=(join := rng.choice(JOINS)), mark="" if "#@" in join else "#@", steps=rng.randrange(40, 300),
        use=rng.choice(("pass", "total = table[-1].sum().item()", "row = row.sum(0)")), **sizes)  # fmt: skip
    return text, rows("h")(sizes)


def cases():
    """(description, function of a random generator), each kind of case once."""
    out = []
    for name in KEPT:
        if name in MARKS_A_STEP:
            out.append((f"{name}, each_step, no optimizer",
                        lambda rng, name=name: program(rng, name, each_step, SERVE)))  # fmt: skip
            continue
        for when in (*TRAINING, in_many_steps):
            out.append((f"{name}, {when.__name__}, training", lambda rng, n=name, w=when: program(rng, n, w, STEP)))
        for work, how in ((SERVE, "serving"), (BY_HAND, "descent by hand")):
            for when in LOOPS:
                out.append((f"{name}, {when.__name__}, {how}",
                            lambda rng, n=name, w=when, k=work: program(rng, n, w, k)))  # fmt: skip
    out += [("a larger one replaces it, no model", without_a_model)] * 8
    names = [name for name in KEPT if name not in MARKS_A_STEP]
    out += [("two rates, training", lambda rng: at_several_rates(rng, rng.sample(names, 2)))] * 12
    return out
