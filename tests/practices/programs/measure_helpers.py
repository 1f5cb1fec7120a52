"""Runs every helper beside the recipe that it is for, and prints what the recorder counted."""

import contextlib
import copy
import io
import json
import tempfile

import torch

import gpumemprof
from gpumemprof import counters
from gpumemprof import practices as helpers

gpumemprof.attach()
SOURCE = counters.source_for("cpu")
MIB = 1 << 20
torch.manual_seed(0)
nn, functional = torch.nn, torch.nn.functional


def measured(call):
    """(what it gave, its peak over the start, what it left allocated)."""
    span = SOURCE.begin()
    result = call()
    figures = counters.figures_of(SOURCE, span.end())
    assert figures.peak_is_exact
    before = figures.before.allocated_bytes
    return result, figures.peak_bytes - before, figures.after.allocated_bytes - before


def gradients(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def zero_grad():
    model = nn.Sequential(nn.Linear(300, 300), nn.Linear(300, 300))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def backward():
        model(torch.ones(2, 300)).sum().backward()

    backward()
    _, _, kept = measured(lambda: optimizer.zero_grad(set_to_none=False))
    _, _, freed = measured(lambda: optimizer.zero_grad(set_to_none=True))
    return -kept, -freed


def checkpointed():
    def block():
        return nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(128, 128), nn.Tanh())))

    plain = nn.Sequential(*(block() for _ in range(6)))
    wrapped = helpers.CheckpointedModel(copy.deepcopy(plain))
    data = torch.randn(512, 128)
    for model in (plain, wrapped):
        model(data).sum().backward()  # the gradients are there from now on
    first = gradients(plain)
    second = gradients(wrapped)
    out, _, kept_without = measured(lambda: plain(data))
    del out
    out, _, kept_with = measured(lambda: wrapped(data))
    del out
    _, peak_without, _ = measured(lambda: plain(data).sum().backward())
    _, peak_with, _ = measured(lambda: wrapped(data).sum().backward())
    return {
        "kept_without": kept_without, "kept_with": kept_with, "peak_without": peak_without, "peak_with": peak_with,
        "same_gradients": same(first, second), "random_state": torch.get_rng_state().nbytes,
    }  # fmt: skip


def accumulated():
    model = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs, targets = torch.randn(1024, 32), torch.randn(1024, 1)
    kept = []

    def criterion(outputs, wanted):
        kept.append(SOURCE.read().allocated_bytes)
        return functional.mse_loss(outputs, wanted)

    def activations(accumulator):
        kept.clear()
        before = SOURCE.read().allocated_bytes
        loss = accumulator.step_whole((inputs, targets))
        return kept[0] - before, loss

    whole = helpers.GradientAccumulator(model, optimizer, 1, criterion)
    pieces = helpers.GradientAccumulator(model, optimizer, 8, criterion)
    whole_bytes, whole_loss = activations(whole)
    piece_bytes, piece_loss = activations(pieces)
    return {"whole": whole_bytes, "pieces": piece_bytes, "close": abs(whole_loss - piece_loss) < 1e-6}


def frozen():
    model = nn.Sequential(nn.Linear(100, 100), nn.Linear(100, 10))
    trained = helpers.freeze_layers(model, ["1"])
    loss = model(torch.ones(1, 100)).sum()
    loss.backward()
    return {"trained": trained, "gradient_bytes": sum(p.grad.nbytes for p in model.parameters() if p.grad is not None)}


def inference():
    model = nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(200, 200), nn.Tanh())))
    data = torch.randn(1000, 200)
    out, _, with_grad = measured(lambda: model(data))
    del out
    out, _, without = measured(lambda: helpers.inference_mode(model, data))
    return {"kept_with_grad": with_grad, "kept_without": without}


def pieces():
    def make():
        return (torch.ones(MIB // 4) for _ in range(10))

    def recipe():
        kept = list(make())
        return torch.stack(kept).flatten()[0].item()

    _, recipe_peak, _ = measured(recipe)
    total, helper_peak, _ = measured(lambda: helpers.memory_efficient_processing(make(), lambda piece: piece))
    assert total[0] == 10
    return {"recipe": recipe_peak, "helper": helper_peak}


def sparse():
    def gradient_bytes(model):
        model(torch.arange(0, 20000, 400)).sum().backward()
        weight = next(model.parameters())
        gradient = weight.grad
        if not gradient.is_sparse:
            return gradient.nbytes
        return gradient._values().nbytes + gradient._indices().nbytes

    model = helpers.SparseEmbedding(20000, 64)
    result = {"dense": gradient_bytes(nn.Embedding(20000, 64)), "sparse": gradient_bytes(model)}
    model.optimizer().step()
    return result


def sparse_matrix():
    places, values = torch.randint(0, 2000, (2, 100)), torch.randn(100)
    vector = torch.randn(2000)
    product, peak, _ = measured(lambda: helpers.sparse_matrix_operations(places, values, (2000, 2000), vector))
    dense = torch.zeros(2000, 2000).index_put_(tuple(places), values, accumulate=True)
    return {"same": torch.allclose(product, dense @ vector, atol=1e-5), "peak": peak}


def teacher():
    large = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Dropout(0.5), nn.Linear(512, 10))
    small = nn.Linear(64, 10)
    inputs, labels = torch.randn(256, 64), torch.randint(10, (256,))
    distillation = helpers.KnowledgeDistillation(large, small)
    _, _, with_graph = measured(lambda: None)
    kept, _, with_graph = measured(lambda: large(inputs))
    del kept
    kept, _, without = measured(lambda: helpers.inference_mode(large, inputs))
    logits = small(inputs)
    loss = distillation.distillation_loss(logits, kept, labels, functional.cross_entropy)
    by_hand = 0.7 * functional.cross_entropy(logits, labels) + 0.3 * 16 * functional.kl_div(
        (logits / 4).log_softmax(1), (kept / 4).softmax(1), reduction="batchmean"
    )
    optimizer = torch.optim.SGD(small.parameters(), lr=0.1)
    losses = [distillation.train_step(inputs, labels, optimizer, functional.cross_entropy) for _ in range(2)]
    assert losses[1] < losses[0]
    return {
        "with_graph": with_graph, "without": without, "is_documented_loss": torch.allclose(loss, by_hand),
        "in_training_mode": large.training,
    }  # fmt: skip


def offloaded():
    plain = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8)))
    model = copy.deepcopy(plain)
    data = torch.randn(4, 256)
    wanted = plain(data).detach()
    plain(data).sum().backward()
    with tempfile.TemporaryDirectory() as folder:
        offloader, _, change = measured(lambda: helpers.LayerOffloader(model, "cpu", folder=folder))
        with torch.no_grad():
            output, peak, _ = measured(lambda: offloader.forward_with_offloading(data))
        model(data).sum().backward()
        return {
            "peak": peak, "freed": -change, "same_output": torch.equal(output, wanted),
            "same_gradients": same(gradients(plain), gradients(model)),
        }  # fmt: skip


def pruned():
    def model():
        return nn.Sequential(nn.Linear(1000, 500), nn.ReLU(), nn.Linear(500, 100))

    first, second = model(), model()
    _, _, zeros = measured(lambda: helpers.prune_model(first, 0.3))
    _, _, neurons = measured(lambda: helpers.prune_model(second, 0.3, structured=True))
    weights = torch.cat([layer.weight.flatten() for layer in first if isinstance(layer, nn.Linear)])
    assert second(torch.ones(2, 1000)).shape == (2, 100)
    return {"zeros": -zeros, "neurons": -neurons, "share_of_zeros": round(float((weights == 0).float().mean()), 4)}


def quantized():
    model = nn.Sequential(nn.Linear(512, 512, bias=False))
    data = torch.randn(8, 512)
    small, _, _ = measured(lambda: helpers.dynamic_quantization(model))
    static = helpers.quantize_model(model, [data])
    packed = io.BytesIO()
    torch.save(small.state_dict(), packed)
    close = all((out(data) - model(data)).abs().max() < 0.1 for out in (small, static))
    bare = helpers.dynamic_quantization(nn.Linear(8, 8))
    return {"bytes": packed.tell(), "close": close, "bare_layer": "quantized" in type(bare).__module__}


def mixed():
    model = nn.Sequential(nn.Linear(128, 128), nn.Linear(128, 128))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        model(torch.randn(64, 128)).sum()
        full = sum(t.nbytes for t in saved if t.shape == (64, 128))
        saved.clear()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(torch.randn(64, 128)).sum()
        half = sum(t.nbytes for t in saved if t.shape == (64, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = {"input": torch.randn(64, 128), "target": torch.zeros(64, 128)}
    losses = helpers.mixed_precision_training_example(model, optimizer, [batch] * 3, functional.mse_loss)
    assert losses[2] < losses[0]
    return {"activations_32": full, "activations_16": half}


def loader():
    samples = [torch.ones(3)] * 10
    made = helpers.create_optimized_dataloader(samples, batch_size=32, num_workers=2)
    plain = helpers.create_optimized_dataloader(samples, batch_size=4, num_workers=0)
    return {
        "read_ahead": made.num_workers * made.prefetch_factor, "drops_none": not made.drop_last,
        "plain": len(list(plain)) == 2 and plain.prefetch_factor is None,
    }  # fmt: skip


def folder():
    with tempfile.TemporaryDirectory() as path:
        for number in (10, 2, 0):
            torch.save(torch.full((1000,), number), f"{path}/sample_{number}.pt")
        samples = helpers.OptimizedDataset(path)
        order = [int(samples[i][0]) for i in range(len(samples))]
        _, _, kept = measured(lambda: [samples[i].shape for i in range(len(samples))] and None)
        return {"kept": kept, "order": order}


def monitor():
    watch = helpers.MemoryMonitor("cpu")
    with contextlib.redirect_stdout(io.StringIO()):
        before = SOURCE.read().allocated_bytes
        with watch.monitor_context("three"):
            torch.ones(3 * MIB // 4)
        watch.print_summary()
    return {"peak": round(watch.peak_memory * (1 << 30)) - before, "basis": watch.basis}


kept, freed = zero_grad()
print(json.dumps(
    {"set_to_zero": kept, "set_to_none": freed}
    | {call.__name__: call() for call in (
        checkpointed, accumulated, frozen, inference, pieces, sparse, sparse_matrix, teacher, offloaded, pruned,
        quantized, mixed, loader, folder, monitor,
    )}
))  # fmt: skip
