"""Ways to train that no rule was made for: `others.py NAME OUT` runs one and writes what it walked."""

import copy
import gc
import io
import sys

import torch
from models import Net, Plain, adam
from torch import nn
from torch.nn.utils import prune
from truth import loop, watch, write

X = torch.randn(16, 32)
Y = torch.randn(16, 32)


def loss_of(model):
    return (model(X) - Y).square().mean()


def sharpness_aware():
    """SAM: climbs along the gradient, and steps from where it was with the gradient of there."""
    model, before = Plain(), {}
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y], copies=[before])
    for _ in range(6):
        loss_of(model).backward()
        with torch.no_grad():
            for name, p in model.named_parameters():
                before[name] = p.detach().clone()
                p.add_(p.grad, alpha=0.05)
        optimizer.zero_grad()
        loss_of(model).backward()
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(before[name])
        optimizer.step()
        optimizer.zero_grad()


def lookahead():
    model = Plain()
    slow = [p.detach().clone() for p in model.parameters()]
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y], copies=[slow])
    for step in range(8):
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 3 == 2:
            with torch.no_grad():
                for p, s in zip(model.parameters(), slow, strict=True):
                    s.add_(p - s, alpha=0.5)
                    p.copy_(s)


def stochastic_weight_averaging():
    model = Plain()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.swa_utils.SWALR(optimizer, 0.05)
    averages = []
    watch([model], [optimizer], data=[X, Y], copies=averages)
    for step in range(8):
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step == 3:
            average = torch.optim.swa_utils.AveragedModel(model)
            averages.append([list(average.parameters()), list(average.buffers())])
        if step > 3:
            average.update_parameters(model)


def old_gradients_that_are_kept():
    model, old = Plain(), []
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y], kept=old)
    for _ in range(6):
        loss_of(model).backward()
        optimizer.step()
        old.append([p.grad for p in model.parameters()])
        optimizer.zero_grad()


def adapters_merged_and_taken_out_again():
    model = Plain()
    model.requires_grad_(False)
    down, up = nn.Parameter(torch.randn(32, 4)), nn.Parameter(torch.zeros(4, 64))
    optimizer = torch.optim.AdamW([down, up])
    watch([model], [optimizer], parameters=[down, up], data=[X, Y])
    for step in range(6):
        if step == 4:
            with torch.no_grad():
                model.lower.weight += (down @ up).T
                model(X)
                model.lower.weight -= (down @ up).T
        ((model.lower(X) + X @ down @ up).relu()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class Eighths(nn.Module):
    """Weights in eight bits, made floats again for each call."""

    def __init__(self):
        super().__init__()
        weight = torch.randn(32, 32)
        self.scale = nn.Parameter(weight.abs().amax(1, keepdim=True) / 127)
        self.register_buffer("weight", (weight / self.scale.detach()).round().to(torch.int8))

    def forward(self, data):
        return data @ (self.weight.float() * self.scale).T


def quantized_weights():
    model = Eighths()
    loop([model], adam(model), lambda: loss_of(model), data=[X, Y])


def a_teacher():
    student, teacher = Plain(), Net().eval()
    optimizer = adam(student)
    watch([student, teacher], [optimizer], data=[X, Y])
    for _ in range(6):
        with torch.no_grad():
            wanted = teacher(X).softmax(1)
        nn.functional.kl_div(student(X).log_softmax(1), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()
        del wanted


def two_target_networks():
    actor, critic = Plain(), Plain()
    targets = [copy.deepcopy(actor), copy.deepcopy(critic)]
    optimizers = [adam(critic), adam(actor)]
    watch([actor, critic, *targets], optimizers, data=[X, Y])
    for _ in range(6):
        with torch.no_grad():
            wanted = Y + targets[1](targets[0](X))
        (critic(X) - wanted).square().mean().backward()
        optimizers[0].step()
        optimizers[0].zero_grad()
        (-critic(actor(X)).mean()).backward()
        optimizers[1].step()
        for optimizer in optimizers:
            optimizer.zero_grad()
        with torch.no_grad():
            for target, model in zip(targets, (actor, critic), strict=True):
                for t, p in zip(target.parameters(), model.parameters(), strict=True):
                    t.mul_(0.9).add_(p, alpha=0.1)


def checkpoints_in_memory():
    model, saved = Plain(), io.BytesIO()
    optimizer = adam(model)
    copies = []
    watch([model], [optimizer], data=[X, Y], copies=copies)
    for step in range(6):
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            torch.save(model.state_dict(), saved)
        if step == 3:
            saved.seek(0)
            copies.append(torch.load(saved))
            model.load_state_dict(copies[0])


def best_state_on_validation():
    model, best, losses = Net(), [], []
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y], copies=best)
    for step in range(8):
        model.train()
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            losses.append(float((model(X) - Y).square().mean()))
        if step % 3 == 0:
            best[:] = [{name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}]


def truncated_backpropagation():
    cell, head = nn.GRUCell(32, 32), nn.Linear(32, 32)
    optimizer = adam(nn.ModuleList([cell, head]))
    hidden = [torch.zeros(16, 32)]
    watch([cell, head], [optimizer], data=[X, Y], kept=hidden)
    for _ in range(6):
        state = hidden[0].detach()
        for _ in range(3):
            state = cell(X, state)
        (head(state) - Y).square().mean().backward()
        hidden[0] = state.detach()
        del state
        optimizer.step()
        optimizer.zero_grad()


def activations_in_a_hook():
    model, seen = Plain(), {}
    model.lower.register_forward_hook(lambda module, args, out: seen.__setitem__("lower", out.detach()))
    loop([model], adam(model), lambda: loss_of(model), data=[X, Y], kept=[seen])


def features_of_a_frozen_model():
    backbone, head, features = Net().eval(), nn.Linear(32, 4), []
    with torch.no_grad():
        for part in X.split(4):
            features.append(backbone(part))
    optimizer = adam(head)
    watch([backbone, head], [optimizer], data=[X, Y], kept=features)
    for step in range(6):
        head(features[step % 4]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def mixup():
    model, mixed = Plain(), []
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y, mixed])
    for _ in range(6):
        order = torch.randperm(16)
        mixed[:] = [0.3 * X + 0.7 * X[order], 0.3 * Y + 0.7 * Y[order]]
        del order
        (model(mixed[0]) - mixed[1]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def gradient_penalty():
    judge = Plain()
    optimizer = adam(judge)
    data = []
    watch([judge], [optimizer], data=[X, Y, data])
    for _ in range(6):
        between = (0.5 * X + 0.5 * Y).requires_grad_()
        data[:] = [between]
        (slope,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
        (judge(X).mean() - judge(Y).mean() + ((slope.norm(2, 1) - 1) ** 2).mean()).backward()
        optimizer.step()
        optimizer.zero_grad()
        del between, slope


def meta_learning():
    model = Plain()
    names = [name for name, _ in model.named_parameters()]
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y])

    def outer():
        fast = dict(model.named_parameters())
        for _ in range(2):
            inner = (torch.func.functional_call(model, fast, (X,)) - Y).square().mean()
            slopes = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
            fast = {name: p - 0.1 * s for name, p, s in zip(names, fast.values(), slopes, strict=True)}
        return (torch.func.functional_call(model, fast, (Y,)) - X).square().mean()

    for _ in range(6):
        outer().backward()
        optimizer.step()
        optimizer.zero_grad()


def an_ensemble_of_functions():
    models = [Plain() for _ in range(3)]
    parameters, _ = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    optimizer = torch.optim.Adam(parameters.values())

    def loss():
        each = torch.func.vmap(lambda p, x: torch.func.functional_call(base, p, (x,)), (0, None))
        outputs = each(parameters, X)
        return (outputs - Y).square().mean()

    loop(models, optimizer, loss, parameters=[parameters], data=[X, Y])


def pruning():
    model = Plain()
    for layer in (model.lower, model.upper):
        prune.random_unstructured(layer, "weight", 0.3)
    kept = [[model.lower.weight, model.upper.weight]]
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y], kept=kept)
    for _ in range(6):
        loss_of(model).backward()
        kept[0][:] = [model.lower.weight, model.upper.weight]
        optimizer.step()
        optimizer.zero_grad()


def spectral_norm_of_a_judge():
    model = nn.Sequential(torch.nn.utils.spectral_norm(nn.Linear(32, 64)), nn.ReLU(), nn.Linear(64, 32))
    kept = [[]]
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y], kept=kept)
    for _ in range(6):
        loss_of(model).backward()
        kept[0][:] = [model[0].weight]
        optimizer.step()
        optimizer.zero_grad()


def groups_added_midway():
    model = Plain()
    model.lower.requires_grad_(False)
    optimizer = torch.optim.Adam(model.upper.parameters())
    watch([model], [optimizer], data=[X, Y])
    for step in range(8):
        if step == 3:
            model.lower.requires_grad_(True)
            optimizer.add_param_group({"params": list(model.lower.parameters()), "lr": 1e-4})
        if step == 6:
            model.upper.requires_grad_(False)
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()


def bags_of_embeddings():
    model = nn.EmbeddingBag(300, 32, mode="sum", sparse=True)
    ids = torch.randint(0, 300, (16, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watch([model], [optimizer], data=[X, Y, ids])
    for _ in range(6):
        (model(ids) - Y).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def surgery():
    """A layer more in the middle of training, and another model's weights put into the first."""
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
    optimizer = adam(model)
    owners = [optimizer]
    watch([model], owners, data=[X, Y])
    for step in range(8):
        if step == 3:
            model.append(nn.Linear(32, 32))
            optimizer.add_param_group({"params": list(model[2].parameters())})
        if step == 5:
            with torch.no_grad():
                model[0].weight.data = torch.randn(32, 32)
                model[0].bias.copy_(torch.zeros(32))
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()


def weights_swapped_for_their_average():
    model = Plain()
    average = [p.detach().clone() for p in model.parameters()]
    optimizer = adam(model)
    copies = [average]
    watch([model], [optimizer], data=[X, Y], copies=copies)
    for _ in range(7):
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        for p, mean in zip(model.parameters(), average, strict=True):
            p.data, mean.data = mean.data, p.data


def state_that_is_moved_away():
    """After each step the optimizer's state goes elsewhere, and comes back as other memory."""
    model = Plain()
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y])
    for _ in range(6):
        loss_of(model).backward()
        optimizer.step()
        optimizer.zero_grad()
        for state in optimizer.state.values():
            for name in ("exp_avg", "exp_avg_sq"):
                elsewhere = state[name].numpy().copy()
                state[name] = None
                state[name] = torch.from_numpy(elsewhere).clone()


def scaled_loss_and_autocast():
    model = Plain()
    optimizer, scaler = adam(model), torch.amp.GradScaler("cpu")
    watch([model], [optimizer], data=[X, Y])
    for _ in range(6):
        with torch.autocast("cpu", torch.bfloat16):
            loss = (model(X) - Y).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        del loss


class Counted(nn.Module):
    """A buffer that is another tensor after each call."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)
        self.register_buffer("mean", torch.zeros(32))

    def forward(self, data):
        out = self.layer(data) - self.mean
        self.mean = 0.9 * self.mean + 0.1 * out.detach().mean(0)
        return out


def a_buffer_that_is_made_anew():
    model = Counted()
    loop([model], adam(model), lambda: loss_of(model), data=[X, Y])


def a_loss_that_is_kept():
    model, losses = Plain(), []
    optimizer = adam(model)
    watch([model], [optimizer], data=[X, Y], kept=losses)
    for _ in range(6):
        loss = loss_of(model)
        loss.backward()
        losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()


def elastic_weights():
    """What was learnt before, and how much it matters: copies of weights, and constants of the loss that look alike."""
    model = Plain()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    matters = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    loss_of(model).backward()
    for name, p in model.named_parameters():
        matters[name] += p.grad.square()
    model.zero_grad()

    def loss():
        far = sum((matters[n] * (p - before[n]) ** 2).sum() for n, p in model.named_parameters())
        return loss_of(model) + far

    loop([model], adam(model), loss, data=[X, Y, matters], copies=[before])


def optimizers_one_after_the_other():
    model = Plain()
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop):
        optimizer = kind(model.parameters(), 0.01)
        watch([model], [optimizer], data=[X, Y])
        for _ in range(3):
            loss_of(model).backward()
            optimizer.step()
            optimizer.zero_grad()
        del optimizer
        gc.collect()  # what walks it holds it, and it what walks
        model.zero_grad()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    write(sys.argv[2])
