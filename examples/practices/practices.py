"""Each practice as a small program, without it and with it: practices.py NAME before|after.

`scripts/practices` records both and writes their peaks into the pages under docs/practices.
"""

import contextlib
import sys
import tempfile

import torch

from gpumemprof import practices as helpers

nn, functional = torch.nn, torch.nn.functional
KIB = 1024


def chain(layers, width, last=None):
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(*parts, *([last] if last else []))


def train(model, optimizer, inputs, steps=4, **zero):
    for _ in range(steps):
        optimizer.zero_grad(**zero)
        model(inputs).square().mean().backward()
        optimizer.step()


def mixed_precision(better):
    model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(2048, 256)
    with torch.autocast("cpu", dtype=torch.bfloat16) if better else contextlib.nullcontext():
        train(model, optimizer, inputs)


def checkpointing(better):
    model = nn.Sequential(*(chain(4, 128) for _ in range(6)))
    model = helpers.CheckpointedModel(model) if better else model
    train(model, torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(1024, 128))


def zero_grad(better):
    model = chain(4, 768)
    train(model, torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(384, 768), set_to_none=better)


def skipping_gradients(better):
    model, inputs = chain(6, 256), torch.randn(2048, 256)
    for _ in range(3):
        helpers.inference_mode(model, inputs) if better else model(inputs)


def data_loading(better):
    model = nn.Linear(1024, 8)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(64):
            torch.save(torch.full((256, 1024), float(number)), f"{folder}/sample_{number}.pt")
        samples = helpers.OptimizedDataset(folder)
        batches = (samples[i] for i in range(64)) if better else [samples[i] for i in range(64)]
        for batch in batches:
            helpers.inference_mode(model, batch)


def quantization(better):
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).eval()
    if better:
        model = helpers.dynamic_quantization(model)
    torch.zeros(128 * KIB * KIB // 4)  # what a server allocates for its requests
    helpers.inference_mode(model, torch.randn(8, 1024))


def redundant_variables(better):
    pieces = (torch.ones(256, KIB) for _ in range(16))
    if better:
        helpers.memory_efficient_processing(pieces, torch.sin)
    else:
        torch.stack([torch.sin(piece) for piece in pieces]).sum(0)


def dynamic_batch_size(better):
    """The room is 128 rows; a step that asks for more ends as a GPU's would."""
    model = chain(4, 256)

    def step(batch):
        if len(batch) > 128:
            raise RuntimeError("out of memory")
        model.zero_grad(set_to_none=True)
        model(batch).square().mean().backward()

    batch = torch.randn(1024, 256)
    if better:
        for _ in helpers.DynamicBatchSizer(256).run(step, batch):
            pass
    else:
        model(batch).square().mean().backward()  # as it would need


def pruning(better):
    model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 1024))
    helpers.prune_model(model, 0.5, structured=better)
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer, torch.randn(8, 1024))


def distributed(better):
    """One rank of two: its part of Adam's state."""
    model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(8)))
    mine = list(model.parameters())[: 8 if better else 16]
    optimizer = torch.optim.Adam(mine)
    train(model, optimizer, torch.randn(8, 512))


def sparse(better):
    model = helpers.SparseEmbedding(100_000, 32) if better else nn.Embedding(100_000, 32)
    train(model, torch.optim.SGD(model.parameters(), lr=0.01), torch.randint(100_000, (64,)))


def distillation(better):
    teacher, student = chain(8, 512), nn.Linear(512, 512)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    inputs, labels = torch.randn(1024, 512), torch.randint(512, (1024,))
    if better:
        helpers.KnowledgeDistillation(teacher, student).train_step(
            inputs, labels, optimizer, functional.cross_entropy
        )
    else:
        wanted = teacher(inputs)
        functional.kl_div(student(inputs).log_softmax(1), wanted.softmax(1), reduction="batchmean").backward()


def offloading(better):
    """A model that another program has written: read as a whole, or a layer at a time from its file."""
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8)))
    inputs = torch.randn(8, 1024)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        if better:
            helpers.LayerOffloader(model, "cpu", folder=folder)
        torch.zeros(64 * KIB * KIB // 4)  # what the machine wants beside the weights
        model(inputs)


def accumulation(better):
    model = chain(6, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    accumulator = helpers.GradientAccumulator(model, optimizer, 8 if better else 1, functional.mse_loss)
    for _ in range(3):
        accumulator.step_whole((torch.randn(2048, 256), torch.zeros(2048, 256)))


def monitoring(better):
    """What is watched is not changed: the figures are equal."""
    model, inputs = chain(4, 256), torch.randn(512, 256)
    with helpers.MemoryMonitor("cpu").monitor_context("a step") if better else contextlib.nullcontext():
        model(inputs).square().mean().backward()


def profile_first(better):
    """`gpumemprof.optimize` with a budget of half of what the profile shows."""
    model = nn.Sequential(*(chain(4, 128) for _ in range(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(1024, 128)

    def step():
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    if better:
        helpers.checkpoint_modules(model, [str(number) for number in range(6)])
    step()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    name, which = sys.argv[1:]
    globals()[name](which == "after")
