"""Modules and training loops under the profiler."""

import copy
import pickle

import pytest
import torch

from exactly import run
from gpumemprof import GPUMemoryProfiler, ProfiledModule, get_global_profiler, profile_model, profile_model_training


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


def network():
    torch.manual_seed(0)
    return torch.nn.ModuleDict({
        "enc": torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)), "head": torch.nn.Linear(3, 2),
    })  # fmt: skip


def test_a_part_of_a_model_keeps_the_models_names(profiler):
    plain, model = network(), network()
    model["enc"] = ProfiledModule(model["enc"], profiler=profiler)
    assert list(model.state_dict()) == list(plain.state_dict())
    assert [n for n, _ in model.named_parameters()] == [n for n, _ in plain.named_parameters()]
    assert [n for n, _ in model.named_buffers()] == [n for n, _ in plain.named_buffers()]
    assert dict(model.named_modules()).keys() == dict(plain.named_modules()).keys()
    assert model.state_dict()._metadata == plain.state_dict()._metadata
    assert sum(p.numel() for p in model.parameters()) == 4 * 3 + 3 + 2 * 3 + 3 * 2 + 2


@pytest.mark.parametrize("times", [1, 2])
def test_checkpoints_go_between_a_model_and_one_with_a_wrapped_part(profiler, times):
    plain, model = network(), network()
    for _ in range(times):
        model["enc"] = ProfiledModule(model["enc"], profiler=profiler)
    with torch.no_grad():
        plain["enc"][0].weight.fill_(7)
    assert str(model.load_state_dict(plain.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(model["enc"][0].weight, torch.full((3, 4), 7.0))
    with torch.no_grad():
        model["enc"][0].weight.fill_(9)
    assert str(plain.load_state_dict(model.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(plain["enc"][0].weight, torch.full((3, 4), 9.0))


def test_a_part_that_calls_something_module_itself_loads_what_it_saved(profiler):
    inner = torch.nn.ModuleDict({"module": torch.nn.Linear(2, 2)})
    inner.weight = torch.nn.Parameter(torch.ones(1))
    model = torch.nn.ModuleDict({"enc": ProfiledModule(inner, profiler=profiler)})
    assert list(model.state_dict()) == ["enc.weight", "enc.module.weight", "enc.module.bias"]
    assert model.load_state_dict(copy.deepcopy(model.state_dict())).missing_keys == []


def test_keys_that_do_not_fit_are_named_as_the_checkpoint_has_them(profiler):
    plain, model = network(), network()
    model["enc"] = ProfiledModule(model["enc"], profiler=profiler)
    state = plain.state_dict()
    state["enc.other"] = state.pop("enc.0.weight")
    assert tuple(model.load_state_dict(state, strict=False)) == tuple(plain.load_state_dict(state, strict=False))
    assert model.load_state_dict(state, strict=False).missing_keys == ["enc.0.weight"]
    state["enc.0.weight"] = torch.ones(1)
    with pytest.raises(RuntimeError) as ours:
        model.load_state_dict(state)
    with pytest.raises(RuntimeError) as theirs:
        plain.load_state_dict(state)
    assert str(ours.value) == str(theirs.value)


def test_a_copy_has_the_same_profiler_and_weights_of_its_own(profiler):
    model = torch.nn.ModuleDict({"enc": ProfiledModule(torch.nn.Linear(2, 2), name="enc", profiler=profiler)})
    deep, shallow = copy.deepcopy(model), copy.copy(model["enc"])
    assert deep["enc"].profiler is shallow.profiler is profiler
    assert shallow.weight is model["enc"].weight and deep["enc"].weight is not model["enc"].weight
    deep["enc"](torch.ones(1, 2))
    assert [r.function_name for r in profiler.results] == ["enc_forward"]


def test_a_pickled_module_takes_the_shared_profiler_where_it_is_loaded(profiler, tmp_path):
    model = ProfiledModule(torch.nn.Linear(2, 2), name="enc", profiler=profiler)
    torch.save(model, tmp_path / "model.pt")
    for loaded in (pickle.loads(pickle.dumps(model)), torch.load(tmp_path / "model.pt", weights_only=False)):
        assert loaded.profiler is get_global_profiler()
        assert torch.equal(loaded.weight, model.weight)
        x = torch.ones(1, 2)
        assert torch.equal(loaded(x), model(x)) and get_global_profiler().results[-1].function_name == "enc_forward"
        assert loaded.load_state_dict(model.state_dict()).missing_keys == []
    assert model.profiler is profiler
