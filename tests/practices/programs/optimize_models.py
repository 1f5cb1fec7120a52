"""Brings small models into budgets and prints what `gpumemprof.optimize` says, as JSON."""

import copy
import json

import torch

import gpumemprof

gpumemprof.attach()
nn = torch.nn
ROWS, WIDTH, BLOCKS = 256, 64, 6
KEPT = ROWS * WIDTH * 4  # an activation
OUTSIDE = torch.get_rng_state().nbytes


class Block(nn.Module):
    """Keeps three outputs of Tanh; the dropout makes random numbers matter."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(WIDTH, WIDTH), nn.Tanh())))

    def forward(self, x):
        return nn.functional.dropout(self.layers(x), 0.1, self.training)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def parts(zero_first=True):
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    data, target = torch.randn(ROWS, WIDTH), torch.randn(ROWS, 1)

    def step():
        optimizer.zero_grad(set_to_none=not zero_first)
        loss = nn.functional.mse_loss(model(data), target)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step, data, target


def told(result):
    return {
        "before": result.before_bytes, "after": result.after_bytes, "fits": result.fits, "basis": result.basis,
        "losses_equal": result.losses_before == result.losses_after, "text": str(result),
        "measures": {
            m.name: {"applied": m.applied, "saved": m.saved_bytes, "agreement": m.agreement, "reason": m.reason,
                     "modules": list(m.modules), "pieces": m.pieces}
            for m in result.measures
        },
    }  # fmt: skip


def state_of(model, optimizer):
    return [p.clone() for p in model.parameters()], len(optimizer.state), [p.grad for p in model.parameters()]


def untouched():
    """A model that was trained a little: optimize() leaves all of it as it is, and undo() the rest."""
    model, optimizer, step, _, _ = parts()
    step()
    weights = [p.detach().clone() for p in model.parameters()]
    moments = [optimizer.state[p]["exp_avg"].clone() for p in model.parameters()]
    random_numbers = torch.get_rng_state().clone()
    result = gpumemprof.optimize(model, step, 1)
    result.undo()
    result.undo()
    return {
        "weights": all(torch.equal(a, b) for a, b in zip(weights, model.parameters())),
        "state": all(torch.equal(a, optimizer.state[p]["exp_avg"]) for a, p in zip(moments, model.parameters())),
        "numbers": torch.equal(random_numbers, torch.get_rng_state()),
        "patched": sum("forward" in m.__dict__ for m in model.modules()) + ("zero_grad" in optimizer.__dict__),
        "foreach": optimizer.param_groups[0]["foreach"],
    }  # fmt: skip


def checkpointed():
    model, _, step, _, _ = parts()
    roomy = gpumemprof.optimize(model, step, "1GiB")
    roomy.undo()
    # 9 activations below: five of them are two blocks' dropout masks, which come again too.
    result = gpumemprof.optimize(model, step, roomy.after_bytes - 5 * KEPT)
    trained = [float(step().detach()) for _ in range(2)]
    result.undo()
    return {"roomy": told(roomy), "tight": told(result), "trained": trained}


def cut():
    model, optimizer, _, data, target = parts()
    flat = nn.Sequential(nn.Linear(WIDTH, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1))
    optimizer = torch.optim.SGD(flat.parameters(), lr=0.01)

    def loss_of(batch):
        inputs, wanted = batch
        return nn.functional.mse_loss(flat(inputs), wanted)

    data, target = torch.randn(2048, WIDTH), torch.randn(2048, 1)
    first = gpumemprof.optimize(flat, loss_of, "1GiB", batch=(data, target), optimizer=optimizer)
    first.undo()
    result = gpumemprof.optimize(
        flat, loss_of, first.before_bytes - (4 << 20), batch=(data, target), optimizer=optimizer
    )
    loss = result.step((data, target))
    return told(result) | {"loss": loss}


def factored():
    model, optimizer, _, data, target = parts()
    model = nn.Sequential(nn.Linear(512, 512))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)

    def loss_of(batch):
        return nn.functional.mse_loss(model(batch), batch)

    data = torch.randn(2, 512)
    result = gpumemprof.optimize(model, loss_of, 1, batch=data, optimizer=optimizer, optimizer_state="factored")
    own = gpumemprof.optimize(model, lambda: loss_of(data).backward(), 1, optimizer_state="8bit")
    return {"batch": told(result), "own_step": told(own)}


def errors():
    model, optimizer, step, data, _ = parts()
    said = {}
    for name, call in {
        "budget": lambda: gpumemprof.optimize(model, step, "20 apples"),
        "steps": lambda: gpumemprof.optimize(model, step, steps=1),
        "batch": lambda: gpumemprof.optimize(model, step, batch=data),
        "kind": lambda: gpumemprof.optimize(model, step, optimizer_state="4bit"),
        "arguments": lambda: gpumemprof.optimize(model, lambda batch: None),
    }.items():
        try:
            call()
        except (TypeError, ValueError) as error:
            said[name] = str(error)
    return said


def unrepeatable():
    model, optimizer, _, _, _ = parts()
    generator = torch.Generator()

    def step():
        optimizer.zero_grad()
        loss = model(torch.randn(ROWS, WIDTH, generator=generator)).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return told(gpumemprof.optimize(model, step, 1))


def uncut():
    """A loss that is a sum, which pieces would halve, of a step that varies: much, and as little as sums do."""
    said = {}
    for name, noise in {"much": 1e-2, "little": 1e-7}.items():
        flat = nn.Sequential(nn.Linear(WIDTH, 512), nn.Tanh(), nn.Linear(512, 1))
        optimizer = torch.optim.SGD(flat.parameters(), lr=1e-9)
        generator = torch.Generator()

        def loss_of(batch):
            return flat(batch).square().sum() * (1 + noise * torch.randn((), dtype=torch.double, generator=generator))

        data = torch.randn(2048, WIDTH)
        said[name] = told(gpumemprof.optimize(flat, loss_of, 1, batch=data, optimizer=optimizer))
    return said


def settings():
    """Of Adam's settings Adafactor has some; its eps is two numbers. Two groups, and what a scheduler wrote."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512))
    optimizer = torch.optim.Adam(
        [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[1].parameters(), "weight_decay": 0.25}],
        lr=0.25, weight_decay=0.125, betas=(0.5, 0.75), maximize=True, foreach=False,
    )  # fmt: skip
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    result = gpumemprof.optimize(
        model, lambda batch: model(batch).square().mean(), 1,
        batch=torch.randn(2, 512), optimizer=optimizer, optimizer_state="factored",
    )  # fmt: skip
    keys = ("lr", "initial_lr", "weight_decay", "maximize", "foreach", "eps")
    groups = [{key: group[key] for key in keys} for group in result.optimizer.param_groups]
    kind = type(result.optimizer).__name__
    result.undo()
    return told(result) | {"kind": kind, "groups": groups, "undone": result.optimizer is optimizer}


print(json.dumps(
    {"activation": KEPT, "random_state": OUTSIDE}
    | {call.__name__: call() for call in (untouched, checkpointed, cut, factored, errors, unrepeatable, uncut, settings)}
))  # fmt: skip
