"""Programs that train in the ways that are usual: `training.py NAME OUT` runs one and writes what it walked."""

import copy
import sys
import threading

import torch
from models import Net, Plain, Tokens, adam
from torch import nn
from truth import MAPPED, loop, walk, watch, write

import gpumemprof

X = torch.randn(16, 32)


def plain():
    model = Net()
    loop([model], adam(model), lambda: model(X).square().mean(), data=[X])


def gradients_kept_in_place():
    model = Net()
    loop([model], adam(model), lambda: model(X).square().mean(), set_to_none=False, data=[X])


def gradients_never_zeroed():
    model, optimizer = Net(), None
    optimizer = adam(model)
    watch([model], [optimizer], data=[X])
    for _ in range(6):
        model(X).square().mean().backward()
        optimizer.step()


def tied_weights_and_token_ids():
    model, ids = Tokens(), torch.randint(0, 100, (64, 64))
    short, labels = ids[:, :16], ids[:, 1:17].reshape(-1)
    loop([model], torch.optim.AdamW(model.parameters()),
         lambda: nn.functional.cross_entropy(model(short).reshape(-1, 100), labels), data=[ids, labels])  # fmt: skip


def low_rank_adapters():
    model = Plain()
    model.requires_grad_(False)
    down, up = nn.Parameter(torch.randn(32, 4)), nn.Parameter(torch.zeros(4, 32))
    model.down, model.up = down, up
    loop([model], torch.optim.AdamW([down, up]), lambda: (model(X) + X @ down @ up).square().mean(), data=[X])


def two_that_play_against_each_other():
    maker, judge = Net(), Net()
    optimizers = [adam(maker), adam(judge)]
    watch([maker, judge], optimizers, data=[X])
    for _ in range(6):
        optimizers[0].zero_grad()
        judge(maker(X)).mean().backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        (judge(maker(X).detach()).mean() - judge(X).mean()).backward()
        optimizers[1].step()


def one_that_steps_twice():
    maker, judge = Net(), Net()
    optimizers = [adam(maker), adam(judge)]
    watch([maker, judge], optimizers, data=[X])
    for _ in range(6):
        for _ in range(2):
            optimizers[1].zero_grad()
            (judge(maker(X).detach()).mean() - judge(X).mean()).backward()
            optimizers[1].step()
        optimizers[0].zero_grad()
        judge(maker(X)).mean().backward()
        optimizers[0].step()


def lbfgs():
    model = nn.Linear(32, 8)
    optimizer = torch.optim.LBFGS(model.parameters(), history_size=4, max_iter=4)
    watch([model], [optimizer], data=[X])

    def closure():
        optimizer.zero_grad()
        loss = model(X).square().mean()
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)


def fused():
    model = Net()
    loop([model], adam(model, fused=True), lambda: model(X).square().mean(), data=[X])


def foreach():
    model = Net()
    loop([model], adam(model, foreach=True, amsgrad=True), lambda: model(X).square().mean(), data=[X])


def adafactor():
    model = Net()
    loop([model], torch.optim.Adafactor(model.parameters()), lambda: model(X).square().mean(), data=[X])


def muon():
    model = nn.Sequential(nn.Linear(32, 64, bias=False), nn.Linear(64, 32, bias=False))
    loop([model], torch.optim.Muon(model.parameters()), lambda: model(X).square().mean(), data=[X])


def sparse_gradients():
    model, ids = nn.Embedding(500, 16, sparse=True), torch.randint(0, 500, (20,))
    loop([model], torch.optim.SparseAdam(model.parameters()), lambda: model(ids).sum(), data=[ids])


class Lion(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-3):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                p.add_(state["m"].sign(), alpha=-group["lr"])
                state["m"].lerp_(p.grad, 0.1)


def an_optimizer_of_the_programs_own():
    model = Net()
    loop([model], Lion(model.parameters()), lambda: model(X).square().mean(), data=[X])


def an_optimizer_in_backwards_hooks():
    model = Net()
    each = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def step(parameter):
        each[parameter].step()
        each[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    watch([model], list(each.values()), data=[X])
    for _ in range(6):
        model(X).square().mean().backward()


def tensors_without_modules():
    weight, bias = torch.randn(32, 64, requires_grad=True), torch.zeros(64, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias])
    loop([], optimizer, lambda: (X @ weight + bias).relu().mean(), parameters=[weight, bias], data=[X])


def lazy_modules():
    model = nn.Sequential(nn.LazyLinear(64), nn.ReLU(), nn.LazyLinear(8))
    model(X)
    loop([model], adam(model), lambda: model(X).square().mean(), data=[X])


def parametrizations():
    norm = torch.nn.utils.parametrizations
    model = nn.Sequential(norm.weight_norm(nn.Linear(32, 64)), norm.spectral_norm(nn.Linear(64, 8)))
    loop([model], adam(model), lambda: model(X).square().mean(), data=[X])


def made_without_memory_first():
    with torch.device("meta"):
        model = Net()
    model.to_empty(device="cpu")
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)
    loop([model], adam(model), lambda: model(X).square().mean(), data=[X])


def weights_in_a_mapped_file():
    path = sys.argv[2] + ".pt"
    torch.save(Net().state_dict(), path)
    model = Net()
    model.load_state_dict(torch.load(path, mmap=True), assign=True)
    MAPPED.update(tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values())
    loop([model], adam(model), lambda: model(X).square().mean(), data=[X])


def state_that_was_loaded():
    model = Net()
    optimizer = adam(model)
    model(X).mean().backward()
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    model.zero_grad()
    optimizer = adam(model)
    optimizer.load_state_dict(state)
    del state
    loop([model], optimizer, lambda: model(X).square().mean(), data=[X])


def compiled():
    model = Net()
    faster = torch.compile(model, backend="aot_eager")
    loop([model], adam(model), lambda: faster(X).square().mean(), data=[X])


def master_weights():
    model, data = Net().bfloat16(), X.bfloat16()
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.Adam(masters)
    watch([model], [optimizer], parameters=masters, data=[X, data])
    for _ in range(6):
        model(data).float().mean().backward()
        for half, master in zip(model.parameters(), masters, strict=True):
            master.grad = half.grad.float()
            half.grad = None
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for half, master in zip(model.parameters(), masters, strict=True):
                half.copy_(master)


def frozen():
    model = Net()
    model.lower.requires_grad_(False)
    optimizer = torch.optim.Adam(p for p in model.parameters() if p.requires_grad)
    loop([model], optimizer, lambda: model(X).mean(), data=[X])


def in_double_precision():
    model, data = Net().double(), X.double()
    loop([model], adam(model), lambda: model(data).mean(), data=[X, data])


def a_head_that_is_replaced():
    model = Net()
    optimizer = adam(model)
    watch([model], [optimizer], data=[X])
    for step in range(8):
        model(X).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 3:
            model.upper = nn.Linear(64, 16)
            optimizer.add_param_group({"params": model.upper.parameters()})


def on_another_thread():
    model = Net()
    thread = threading.Thread(target=lambda: loop([model], adam(model), lambda: model(X).mean(), data=[X]))
    thread.start()
    thread.join()


def accumulated_gradients():
    model = Net()
    optimizer = adam(model)
    watch([model], [optimizer], data=[X])
    for step in range(12):
        model(X).mean().backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)


def gradients_added_by_hand():
    model = Plain()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watch([model], [optimizer], data=[X])
    for _ in range(6):
        total = None
        for _ in range(3):
            parts = torch.autograd.grad(model(X).square().mean(), list(model.parameters()))
            total = [p.clone() for p in parts] if total is None else [t + p for t, p in zip(total, parts, strict=True)]
        for parameter, gradient in zip(model.parameters(), total, strict=True):
            parameter.grad = gradient
        optimizer.step()
        optimizer.zero_grad()


def functional_parameters():
    model = Plain()
    parameters = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    optimizer = torch.optim.Adam(parameters.values())
    loop([model], optimizer, lambda: torch.func.functional_call(model, parameters, (X,)).mean(),
         parameters=[parameters], data=[X])  # fmt: skip


def gradients_of_gradients():
    model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    data = X.clone().requires_grad_()

    def penalty():
        (gradient,) = torch.autograd.grad(model(data).sum(), data, create_graph=True)
        return (gradient.norm() - 1) ** 2

    loop([model], adam(model), penalty, data=[X, data])


def recurrent():
    model, data = nn.LSTM(32, 32, 2, batch_first=True), torch.randn(4, 10, 32)
    loop([model], adam(model), lambda: model(data)[0].mean(), data=[X, data])


def two_models_of_one_optimizer():
    first, second = Net(), Net()
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])
    loop([first, second], optimizer, lambda: second(first(X)).mean(), data=[X])


def a_learning_rate_that_is_a_tensor():
    model = Net()
    loop([model], adam(model, lr=torch.tensor(0.01)), lambda: model(X).mean(), data=[X])


def stepped_by_hand():
    model = Plain()
    for _ in range(6):
        model(X).square().mean().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
        walk([model], [], data=[X])
        gpumemprof.step()
        model.zero_grad()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    write(sys.argv[2])
