"""Trainings in which something is made late, fills to a limit, gets larger, or comes and goes."""

from leaks.shapes.text import block, joined, network, small, trained

# (before the steps, in each step, after them)
PARTS = (
    ("cache = {}", "cache[i % <few>] = out.detach()", ""),
    ("cache = {}", "if i < <third>:\n    cache[i] = torch.randn(<b>, <h>)", ""),
    ("table = []", "if len(table) < <half>:\n    table.append(out.detach().clone())\ntable[i % len(table)].mul_(0.9)", ""),
    ("recent = collections.deque(maxlen=<few>)", "recent.append((x, out.detach()))", ""),
    ("spaces = []", "if len(spaces) < <few>:\n    spaces.append(torch.zeros(<b>, <h>))\nspaces[i % len(spaces)].normal_()", ""),
    ("history = []", "history.append(loss.item())", "print(sum(history) / len(history))"),
    ("history = collections.defaultdict(list)",
     "for k in range(3):\n    history[k].append(float((out[:, 0] - k).abs().mean()))", ""),
    ("best = []", "best = sorted([*best, (loss.item(), i, out.detach())])[:<few>]", ""),
    ("", "if i == <third>:\n    mean = copy.deepcopy(model)\nif i > <third>:\n    with torch.no_grad():\n"
         "        for old, new in zip(mean.parameters(), model.parameters()):\n            old.lerp_(new, 0.1)", ""),
    ("swa = None", "if i == <late>:\n    swa = torch.optim.swa_utils.AveragedModel(model)\n"
                   "elif i > <late>:\n    swa.update_parameters(model)", ""),
    ("", "with torch.no_grad():\n    mean = [p.clone() for p in model.parameters()]", ""),
    ("saved = []", "if i % <few> == 0:\n    saved.append(copy.deepcopy(model.state_dict()))\n    del saved[:-2]", ""),
    ("", "if i % <few> == 0:\n    file = io.BytesIO()\n    torch.save(model.state_dict(), file)\n    del file", ""),
    ("", "if i % <few> == <few> - 1:\n    with torch.no_grad():\n"
         "        print(sum(model(torch.randn(<b>, <i>)).sum().item() for _ in range(5)))", ""),
    ("rows = []", "with torch.no_grad():\n    rows.append(model(x))\nif i % <few> == 0:\n"
                  "    print(torch.cat(rows).mean().item())\n    rows.clear()", ""),
    ("plan = torch.optim.lr_scheduler.<plan>", "plan.step()", ""),
    ("", "pass", "rows = []\nwith torch.no_grad():\n    for _ in range(<few>):\n        rows.append(model(torch.randn(<b>, <i>)))\n"
                 "print(torch.cat(rows).mean().item())"),
    ("", "pass", "losses = []\nfor _ in range(<few>):\n    losses.append(functional.mse_loss(model(torch.randn(<b>, <i>)), y))\n"
                 "print(torch.stack(losses).mean().item())"),
    ("@functools.lru_cache(maxsize=<few>)\ndef mask(k):\n    return torch.ones(<b>, <h>).mul_(k)", "mask(i).sum()", ""),
    ("@functools.cache\ndef window(k):\n    return torch.ones(<b>, <h>).mul_(k)", "window(i % <few>).sum()", ""),
    ("caught = None", "try:\n    out @ x.T @ y.T\nexcept RuntimeError as error:\n    caught = str(error)", ""),
    ("last = {}\nmodel[0].register_forward_hook(lambda m, a, result: last.__setitem__('out', result.detach()))", "pass", ""),
    ("buffer = torch.zeros(<few>, <b>, <i>)", "buffer[i % <few>] = x", ""),
)  # fmt: skip
PLANS = ("StepLR(optimizer, 10)", "CosineAnnealingLR(optimizer, <steps>)", "OneCycleLR(optimizer, 0.1, total_steps=<steps> + 1)",
         "ExponentialLR(optimizer, 0.99)")  # fmt: skip


def beside_the_training(rng):
    before, step, after = rng.choice(PARTS)
    steps = rng.randrange(40, 160)
    return trained(rng, step, steps, before, after, few=rng.randrange(4, 16), third=steps // 3, half=steps // 2,
                   late=int(steps * 0.7), plan=rng.choice(PLANS))  # fmt: skip


def two_beside_the_training(rng):
    steps = rng.randrange(40, 160)
    befores, bodies, afters = zip(*rng.sample(PARTS, 2), strict=True)
    return trained(rng, joined(*bodies), steps, joined(*befores), joined(*afters), few=rng.randrange(4, 16),
                   third=steps // 3, half=steps // 2, late=int(steps * 0.7), plan=rng.choice(PLANS))  # fmt: skip


def layers_are_unfrozen(rng):
    """One after the other, evenly, to the end of the run or not."""
    layers = rng.randrange(4, 9)
    return block("""
        layers = nn.ModuleList([nn.Linear(<h>, <h>) for _ in range(<n>)]).requires_grad_(False)
        optimizer = torch.optim.<made>([{"params": layers[-1].requires_grad_(True).parameters()}])
        for i in range(<steps>):
            if i % <every> == 0 and 0 < i // <every> < <n>:
                optimizer.add_param_group({"params": layers[-1 - i // <every>].requires_grad_(True).parameters()})
            value = torch.randn(<b>, <h>)
            for layer in layers:
                value = layer(value).tanh()
            optimizer.zero_grad()
            value.square().mean().backward()
            optimizer.step()
    """, **small(rng), n=layers, every=(every := rng.randrange(8, 16)), steps=every * layers + rng.choice((0, 40)),
        made=rng.choice(("Adam", "AdamW", "RMSprop")))  # fmt: skip


def batches_get_larger(rng):
    """A curriculum: longer sequences, larger batches, to the end or in a few stages."""
    length = rng.choice(("4 + i // 2", "8 + 8 * (i // 20)", "int(torch.randint(4, 40, ()))", "min(4 + i, 40)", "40 - i // 4"))
    return block("""
        model = nn.Sequential(nn.<layer>)
        head = nn.Linear(<h>, <o>)
        optimizer = torch.optim.<made>([*model.parameters(), *head.parameters()])
        for i in range(<steps>):
            length = <length>
            x = torch.randn(length, <h>)
            loss = head(model(x)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            <more>
    """, **small(rng), steps=rng.randrange(40, 120), length=length, made=rng.choice(("Adam", "SGD")),
        layer=rng.choice(("Linear(<h>, <h>)", "LayerNorm(<h>)")),
        more=rng.choice(("pass", "last = x.detach()", "print(loss.item())")))  # fmt: skip


def epochs_with_validation(rng):
    values = {**small(rng), "e": rng.randrange(3, 9), "s": rng.randrange(6, 25), "v": rng.randrange(2, 8)}
    return joined(network(rng, values), block("""
        best, best_state = float("inf"), None
        for epoch in range(<e>):
            for _ in range(<s>):
                optimizer.zero_grad()
                functional.mse_loss(model(torch.randn(<b>, <i>)), torch.zeros(<b>, <o>)).backward()
                optimizer.step()
            losses = []
            with torch.no_grad():
                for _ in range(<v>):
                    losses.append(functional.mse_loss(model(torch.randn(<b>, <i>)), torch.zeros(<b>, <o>)))
            value = torch.stack(losses).mean().item()
            if value < best:
                best, best_state = value, copy.deepcopy(model.state_dict())
    """, **values))  # fmt: skip


def gradients_are_accumulated(rng):
    values = {**small(rng), "steps": rng.randrange(10, 40), "k": rng.randrange(2, 8)}
    return joined(network(rng, values), block("""
        for i in range(<steps>):
            total = 0.0
            for _ in range(<k>):
                loss = functional.mse_loss(model(torch.randn(<b>, <i>)), torch.zeros(<b>, <o>)) / <k>
                loss.backward()
                total += loss.item()
            optimizer.step()
            optimizer.zero_grad(<how>)
    """, how=rng.choice(("", "set_to_none=False")), **values))  # fmt: skip


def two_networks(rng):
    values = {**small(rng), "steps": rng.randrange(15, 80)}
    return joined(network(rng, values), block("""
        critic = nn.Sequential(nn.Linear(<o>, <h>), nn.LeakyReLU(0.2), nn.Linear(<h>, 1))
        second = torch.optim.Adam(critic.parameters(), betas=(0.5, 0.9))
        for i in range(<steps>):
            fake = model(torch.randn(<b>, <i>))
            loss = critic(fake.detach()).mean() - critic(torch.randn(<b>, <o>)).mean()
            second.zero_grad()
            loss.backward()
            second.step()
            if i % <every> == 0:
                optimizer.zero_grad()
                (-critic(fake).mean()).backward()
                optimizer.step()
    """, every=rng.choice((1, 1, 2, 5)), **values))  # fmt: skip


def a_closure(rng):
    values = {**small(rng), "steps": rng.randrange(8, 30)}
    return block("""
        model = nn.Linear(<i>, <o>)
        x, y = torch.randn(<b>, <i>), torch.randn(<b>, <o>)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=<m>)


        def closure():
            optimizer.zero_grad()
            loss = functional.mse_loss(model(x), y)
            loss.backward()
            return loss


        for _ in range(<steps>):
            optimizer.step(closure)
    """, m=rng.randrange(3, 10), **values)  # fmt: skip


def descent_by_hand(rng):
    values = {**small(rng), "steps": rng.randrange(20, 200)}
    return block("""
        weight = torch.randn(<i>, <o>, requires_grad=True)
        x, y = torch.randn(<b>, <i>), torch.randn(<b>, <o>)
        for i in range(<steps>):
            loss = (x @ weight - y).square().mean()
            <gradient>
            with torch.no_grad():
                weight -= 0.1 * slope
    """, gradient=rng.choice(("slope, = torch.autograd.grad(loss, weight)",
                              "weight.grad = None\nloss.backward()\nslope = weight.grad")), **values)  # fmt: skip


SHAPES = [beside_the_training, beside_the_training, beside_the_training, beside_the_training, beside_the_training,
          two_beside_the_training, two_beside_the_training, layers_are_unfrozen, batches_get_larger, batches_get_larger,
          epochs_with_validation, gradients_are_accumulated, two_networks, a_closure, descent_by_hand]  # fmt: skip
