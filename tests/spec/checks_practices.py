"""What the blocks of the page on practices do: each is run, its functions are called, and our helper of the same name
is held against it where both can be called alike.
"""

import contextlib
import os
import types

import torch
from given import CLASSES, FEATURES

import gpumemprof
from gpumemprof import practices

SIZE = 1000  # of the page's layers
ROWS = 4


def nothing(ran):
    pass


def batches(*shape, count=3):
    return [torch.randn(*shape) for _ in range(count)]


def _give(ran, **names):
    """What the page's functions take for granted at the moment of their call."""
    ran.ns.update(names)


def _mean_square(outputs, targets):
    return torch.nn.functional.mse_loss(outputs, targets)


def mixed_precision(ran):
    _give(ran, criterion=_mean_square)
    _give(ran, dataloader=[{"input": torch.randn(ROWS, SIZE), "target": torch.randn(ROWS, SIZE)}])
    ran["mixed_precision_training_example"]()


def checkpointing(ran):
    model, own = ran["model"], gpumemprof.CheckpointedModel()
    own.load_state_dict(model.state_dict())  # the same names
    data = torch.randn(ROWS, SIZE)
    for one in (model, own):
        one(data).sum().backward()
    for theirs, ours in zip(model.parameters(), own.parameters(), strict=True):
        assert torch.equal(theirs.grad, ours.grad)


def zero_grad(ran):
    assert all(parameter.grad is None for parameter in ran["model"].parameters())
    _give(ran, dataloader=batches(ROWS, SIZE), targets=torch.randn(ROWS, SIZE), criterion=_mean_square)
    ran["efficient_training_loop"]()


def skipping(ran):
    model = torch.nn.Sequential()
    model.add_module("body", torch.nn.Linear(FEATURES, FEATURES))
    model.add_module("classifier", torch.nn.Linear(FEATURES, CLASSES))
    data = torch.randn(ROWS, FEATURES)
    assert not ran["inference_mode"](model, data).requires_grad
    assert torch.equal(ran["inference_mode"](model, data), gpumemprof.inference_mode(model, data))
    ran["freeze_layers"](model)
    theirs = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert gpumemprof.freeze_layers(model) == theirs == ["classifier.weight", "classifier.bias"]
    _give(ran, model=model, preprocess=lambda x: x * 2, data=data, target=torch.randn(ROWS, CLASSES))
    _give(ran, criterion=_mean_square)
    ran["selective_gradients"]()
    assert model.body.weight.grad is None and model.classifier.weight.grad is not None


def loading(ran):
    os.makedirs("samples", exist_ok=True)
    for number in range(3):
        torch.save(torch.full((2,), float(number)), f"samples/sample_{number}.pt")
    _give(ran, num_samples=3)
    theirs, ours = ran["OptimizedDataset"]("samples"), gpumemprof.OptimizedDataset("samples")
    assert len(theirs) == len(ours) == 3 and all(torch.equal(theirs[i], ours[i]) for i in range(3))
    assert ran["create_optimized_dataloader"](ours, batch_size=2).batch_size == 2
    assert len(list(gpumemprof.create_optimized_dataloader(ours, batch_size=2, num_workers=0))) == 1


def quantization(ran):
    assert ran.number("Original size:") >= 0
    # The page's example gives back the layer as it came, its static function a model that cannot be called.
    assert type(ran["quantized_model"]) is torch.nn.Linear
    assert type(gpumemprof.dynamic_quantization(ran["original_model"])) is not torch.nn.Linear
    _give(ran, calibration_data=batches(ROWS, FEATURES))
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, CLASSES))
    own = gpumemprof.quantize_model(model, ran["calibration_data"])
    data = torch.randn(ROWS, FEATURES)
    assert own(data).shape == (ROWS, CLASSES)
    theirs = ran["quantize_model"](model)
    with contextlib.suppress(NotImplementedError, RuntimeError):
        theirs(data)
        raise AssertionError("the documented model can be called after all")


def variables(ran):
    assert ran["memory_efficient_processing"]() is None  # it only defines three functions
    total = practices.memory_efficient_processing(batches(3, 3, count=10), torch.sum)
    assert total.dim() == 0


def batch_size(ran):
    theirs, ours = ran["DynamicBatchSizer"](), gpumemprof.DynamicBatchSizer()
    theirs.handle_oom(), ours.handle_oom()
    assert theirs.get_batch_size() == ours.get_batch_size() == 16
    for _ in range(100):
        theirs.try_increase_batch_size(), ours.try_increase_batch_size()
    assert theirs.get_batch_size() == 16 < ours.get_batch_size()  # the page's never grows again
    _give(ran, epochs=1, create_dataloader=lambda size: batches(size, SIZE), criterion=lambda out, _: out.sum())
    _give(ran, targets=None)
    ran["train_with_dynamic_batching"]()


def pruning(ran):
    assert ran.number("Original parameters:") == ran.number("Pruned parameters:") == 1000 * 500 + 500 + 500 * 100 + 100
    ran["fine_grained_pruning"](ran["model"], ["0"])
    zeros = sum(int((layer.weight == 0).sum()) for layer in (ran["model"][0], ran["model"][2]))
    assert zeros >= 0.3 * (1000 * 500 + 500 * 100)


def distributed(ran):
    """The group of one process; the page's names of devices and of NCCL need GPUs."""
    dist, made = ran["dist"], torch.distributed.init_process_group
    _give(ran, os=os, dist=types.SimpleNamespace(
        init_process_group=lambda _, **options: made("gloo", **options),
        destroy_process_group=dist.destroy_process_group,
    ))  # fmt: skip
    os.environ["MASTER_PORT"] = "0"
    torch.cuda.set_device = lambda _: None
    gpumemprof.setup_distributed(0, 1)
    assert dist.is_initialized()
    gpumemprof.cleanup_distributed()
    assert not dist.is_initialized()


def sparse(ran):
    assert ran["sparse_matrix_operations"]().shape == (10000,)
    assert ran["embeddings"].shape == (1000, 300)
    own = gpumemprof.SparseEmbedding(vocab_size=100000, embed_dim=300)
    own.load_state_dict(ran["sparse_embed"].state_dict())
    assert torch.equal(own(ran["indices"]), ran["embeddings"])


def distillation(ran):
    theirs = ran["distillation"]
    own = gpumemprof.KnowledgeDistillation(ran["teacher_model"], ran["student_model"])
    inputs, labels = torch.randn(ROWS, SIZE), torch.randint(10, (ROWS,))
    criterion = torch.nn.functional.cross_entropy
    outputs = ran["student_model"](inputs), ran["teacher_model"](inputs)
    assert torch.equal(*(one.distillation_loss(*outputs, labels, criterion) for one in (theirs, own)))
    optimizer = torch.optim.SGD(ran["student_model"].parameters(), lr=0.01)
    assert own.train_step(inputs, labels, optimizer, criterion) > 0
    assert theirs.train_step(inputs, labels, optimizer, criterion) > 0


def offloading(ran):
    model = torch.nn.Sequential()
    for number in range(1, 5):
        model.add_module(f"layer{number}", torch.nn.Linear(8, 8))
    data = torch.randn(ROWS, 8)
    theirs = ran["LayerOffloader"](model, device="cpu").forward_with_offloading(data)
    own = gpumemprof.LayerOffloader(model, device="cpu", folder="home").forward_with_offloading(data)
    assert torch.equal(theirs, own)
    _give(ran, model=model)
    assert torch.equal(gpumemprof.memory_efficient_forward(model, data), own)


def accumulation(ran):
    assert ran["accumulator"].current_step == len(ran["dataloader"]) == 8
    ran.number("Accumulated loss:")
    own = gpumemprof.GradientAccumulator(ran["model"], ran["optimizer"], 8, ran["criterion"])
    for batch in ran["dataloader"]:
        own.step(batch)
    assert own.current_step == 8 and ran["model"].weight.grad is None


def monitoring(ran):
    monitor = ran["monitor"]
    monitor.update_peak_memory()
    monitor.print_summary()
    ran["auto_cleanup"]()
    own = gpumemprof.MemoryMonitor()
    assert set(own.get_memory_info()) == set(monitor.get_memory_info())
    with own.monitor_context("rows"):
        torch.ones(1 << 18)
    own.update_peak_memory()
    assert own.basis == ran.basis and own.get_memory_info()["free"] > 0


def profile_first(ran):
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, FEATURES), torch.nn.ReLU())
    data = batches(ROWS, FEATURES, count=20)
    frame = ran["analyze_profiling_results"](ran["profile_model"](model, data, num_batches=2))
    ran["optimize_based_on_profiling"](frame)
    ran["profile_memory_usage"](model)
    rows = gpumemprof.analyze_profiling_results(practices.profile_model(model, data, num_batches=2))
    assert {"aten::addmm", "forward_pass"} <= {row["name"] for row in rows} & set(frame["name"])
    assert set(rows[0]) == set(frame.columns)
    assert all(isinstance(words, str) for words in gpumemprof.optimize_based_on_profiling(rows))
