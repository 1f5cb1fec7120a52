"""Modules and training loops under the profiler."""

import copy
import pickle

import pytest
import torch

from exactly import run
from gpumemprof import GPUMemoryProfiler, ProfiledModule, profile_model, profile_model_training


@pytest.fixture
def profiler():
    return GPUMemoryProfiler("cpu")


def test_a_profiled_module_is_the_module_with_a_result_a_forward(profiler):
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    wrapped = ProfiledModule(model, name="net", profiler=profiler)
    x = torch.ones(2, 4)
    assert torch.equal(wrapped(x), model(x))
    assert [r.function_name for r in profiler.results] == ["net_forward"]
    assert len(wrapped) == 2 and wrapped[0] is model[0]


def test_names_of_parameters_and_checkpoints_are_the_models_own(profiler):
    model = torch.nn.Linear(4, 3)
    wrapped = profile_model(model, profiler=profiler)
    assert list(wrapped.state_dict()) == ["weight", "bias"] == [n for n, _ in wrapped.named_parameters()]
    wrapped.load_state_dict(torch.nn.Linear(4, 3).state_dict())
    assert wrapped.in_features == 4 and wrapped.weight is model.weight
    with pytest.raises(AttributeError):
        wrapped.nothing
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    before = model.weight.clone()
    wrapped(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    assert not torch.equal(before, model.weight)
    assert not wrapped.eval().module.training


def test_training_really_trains(profiler):
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    data = [(torch.tensor([[1.0, 2.0]]), torch.tensor([[5.0]]))] * 3
    expected = copy.deepcopy(model)
    optimizer = torch.optim.SGD(expected.parameters(), lr=0.01)
    losses = []
    for _ in range(2):
        for x, y in data:
            loss = torch.nn.functional.mse_loss(expected(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    report = profile_model_training(model, data, epochs=2, profiler=profiler)
    assert [row["loss"] for row in report["batch_results"]] == losses
    assert torch.equal(model.weight, expected.weight)
    assert report["total_epochs"] == 2 and [s["batches"] for s in report["epoch_summaries"]] == [3, 3]
    assert report["overall_summary"]["total_function_calls"] == 6


def test_integer_targets_take_cross_entropy(profiler):
    model = torch.nn.Linear(2, 3)
    x, y = torch.ones(4, 2), torch.tensor([0, 1, 2, 0])
    expected = torch.nn.functional.cross_entropy(model(x), y).item()
    report = profile_model_training(model, [(x, y)], profiler=profiler)
    assert report["batch_results"][0]["loss"] == expected


def test_no_epoch_and_no_batch_are_no_error(profiler):
    report = profile_model_training(torch.nn.Linear(1, 1), [], epochs=1, profiler=profiler)
    assert report["epoch_summaries"] == [
        {"epoch": 0, "batches": 0, "mean_loss": None, "peak_memory": None, "total_time": 0}
    ]


def test_the_peak_of_a_forward_is_the_sum_of_its_activations(tmp_path):
    seen = run(
        """
        profiler = GPUMemoryProfiler()
        class Twice(torch.nn.Module):
            def forward(self, x):
                return torch.neg(torch.neg(x))
        twice = gpumemprof.ProfiledModule(Twice(), name="twice", profiler=profiler)
        x = torch.ones(256, 1024)       # 1 MiB
        y = twice(x)
        r = profiler.results[-1]
        show(rise=rise(r), kept=r.memory_diff(), created=r.tensors_created)
        """,
        tmp_path,
    )
    # The inner result is alive while the outer one is made.
    assert seen == {"kept": 2**20, "rise": 2 * 2**20, "created": 2}


def test_a_wrapped_module_can_be_copied(profiler):
    wrapped = ProfiledModule(torch.nn.Linear(2, 2), profiler=profiler)
    assert torch.equal(copy.copy(wrapped).weight, wrapped.weight)
    assert pickle.loads(pickle.dumps(wrapped.module.state_dict()))["weight"].shape == (2, 2)
