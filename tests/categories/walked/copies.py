"""Programs that keep copies of weights, data, predictions and tables beside a model: `copies.py NAME OUT`."""

import copy
import gc
import sys

import torch
from models import Net, Plain, Tokens, adam
from torch import nn
from truth import loop, walk, watch, write

import gpumemprof

X = torch.randn(16, 32)


def train(model, steps=6, after=lambda step: None, batch=X, **more):
    """After each step `after(step)`."""
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, batch], **more)
    for step in range(steps):
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        after(step)


def averaged_model():
    model = Net()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))  # fmt: skip
    train(model, after=lambda _: average.update_parameters(model),
          copies=[list(average.parameters()), list(average.buffers())])  # fmt: skip


def target_network():
    model, optimizer = Net(), None
    target = copy.deepcopy(model)
    optimizer = adam(model)
    watch([model, target], [optimizer], data=[X])
    for _ in range(6):
        with torch.no_grad():
            wanted = target(X)
        (model(X) - wanted).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def a_model_that_is_never_called():
    model, unused = Net(), Net(64)
    optimizer = adam(model)
    watch([model, unused], [optimizer], data=[X])
    for _ in range(6):
        model(X).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def the_best_weights():
    model, best = Plain(256, 512), []
    data = torch.randn(8, 256)

    def keep(step):
        if step == 1:
            best.append(copy.deepcopy(model.state_dict()))

    train(model, after=keep, batch=data, copies=[best])


def a_checkpoint_that_was_loaded():
    path = sys.argv[2] + ".pt"
    torch.save(Plain().state_dict(), path)
    checkpoint = torch.load(path)
    model = Plain()
    model.load_state_dict(checkpoint)
    train(model, copies=[checkpoint])


def average_in_a_deep_copy():
    model = Plain()
    average = copy.deepcopy(model)

    def update(_):
        with torch.no_grad():
            for mean, p in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(p, 0.1)

    train(model, after=update, copies=[list(average.parameters())])


def average_in_clones():
    model = Plain()
    shadow = [p.clone().detach() for p in model.parameters()]

    def update(_):
        with torch.no_grad():
            for mean, p in zip(shadow, model.parameters(), strict=True):
                mean.sub_(0.1 * (mean - p))

    train(model, after=update, copies=[shadow])


def average_by_name_with_foreach():
    model = Plain()
    shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    def update(_):
        torch._foreach_lerp_(list(shadow.values()), [p.detach() for p in model.parameters()], 0.1)

    train(model, after=update, copies=[shadow])


def average_in_another_precision():
    model = Plain().bfloat16()
    shadow = [p.detach().float() for p in model.parameters()]
    data = X.bfloat16()
    train(model, batch=data, copies=[shadow])


def a_fixed_batch():
    data = torch.randn(1024, 32)
    train(Plain(), batch=data)


def fixed_token_ids():
    model, ids = Tokens(1000), torch.randint(0, 1000, (4096, 1))
    loop([model], adam(model), lambda: model(ids).square().mean(), data=[ids, X])


def fixed_targets():
    model, ids = Tokens(1000), torch.randint(0, 1000, (256, 1))
    labels, likely = torch.randint(0, 1000, (256,)), torch.rand(256, 1000)

    def loss():
        scores = model(ids)[:, 0]
        return nn.functional.cross_entropy(scores, labels) + nn.functional.kl_div(scores.log_softmax(1), likely)

    loop([model], adam(model), loss, data=[ids, labels, likely, X])


def replayed_experience():
    model, memory = Plain(), torch.zeros(4000, 32)
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, memory])
    for step in range(6):
        chosen = torch.randint(0, 4000, (32,))
        model(memory[chosen]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        memory[step] = 1
        del chosen


class Positions(Plain):
    """A constant table in a plain attribute."""

    def __init__(self):
        super().__init__()
        self.table = torch.randn(1024, 32)

    def forward(self, data):
        return super().forward(data * self.table)


def a_table_in_an_attribute():
    model, data = Positions(), torch.randn(1024, 32, requires_grad=True)
    optimizer = adam(model)
    loop([model], optimizer, lambda: model(data).square().mean(), data=[X, data, model.table])


def predictions_of_an_evaluation():
    model, data, kept = Plain().eval(), torch.randn(512, 32), []
    with torch.no_grad():
        for _ in range(10):
            kept.append(model(data))
    walk([model], [], data=[X, data], kept=kept)
    gpumemprof.step()


def what_is_kept_to_the_end():
    model = Plain()
    train(model)
    gc.collect()  # the optimizer, which holds what walks it
    kept = [torch.empty(700_000 + i, dtype=torch.uint8) for i in range(10)]
    walk([model], [], data=[X], kept=kept)
    gpumemprof.step()
    globals()["KEPT"] = kept


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    write(sys.argv[2])
