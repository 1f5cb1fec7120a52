"""What the helpers do where the documented recipes go wrong."""

import copy
import json
import subprocess
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")

from gpumemprof import practices as helpers  # noqa: E402


class Device:
    """Memory for so many samples at once; what a step holds is seen to be gone when the next one begins."""

    def __init__(self, room):
        self.room, self.sizes, self.held = room, [], None

    def step(self, batch):
        assert self.held is None or self.held() is None, "the failed attempt is still alive"
        local = torch.ones(10)
        self.held = weakref.ref(local)
        self.sizes.append(len(batch))
        if len(batch) > self.room:
            raise RuntimeError("CUDA out of memory. Tried to allocate 1 GiB")
        return int(batch.sum())


def test_a_batch_that_does_not_fit_is_halved_and_nothing_is_lost():
    device, sizer = Device(room=20), helpers.DynamicBatchSizer(64, grow_after=100)
    done = list(sizer.run(device.step, torch.arange(100)))
    assert device.sizes == [64, 32, 16, 16, 16, 16, 16, 16, 4]
    assert sum(size for size, _ in done) == 100 and sum(result for _, result in done) == sum(range(100))
    assert sizer.oom_count == 2 and sizer.get_batch_size() == 16


def test_it_grows_again_and_tries_what_failed_only_after_a_while():
    sizer = helpers.DynamicBatchSizer(32, increment=8, grow_after=2)
    sizer.handle_oom()
    sizes = []
    for _ in range(12):
        sizer.try_increase_batch_size()
        sizes.append(sizer.get_batch_size())
    # 16 until two have succeeded, 24; then one below what failed; after four more successes that again.
    assert sizes == [16, 24, 24, 31, 31, 31, 31, 39, 39, 47, 47, 55]


def test_the_smallest_batch_that_does_not_fit_is_an_error():
    sizer = helpers.DynamicBatchSizer(2)
    with pytest.raises(MemoryError, match="a batch of 1, the smallest allowed"):
        list(sizer.run(Device(room=0).step, torch.arange(4)))


def test_other_errors_come_through():
    def step(batch):
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes"):
        list(helpers.DynamicBatchSizer().run(step, torch.arange(4)))


@pytest.mark.parametrize("sizes", [(0, 1, 2), (8, 9, 10), (8, 1, 4)])
def test_sizes_that_contradict_each_other_are_refused(sizes):
    with pytest.raises(ValueError):
        helpers.DynamicBatchSizer(*sizes)


def parts():
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.5), torch.nn.functional.mse_loss


def test_accumulated_steps_are_those_of_the_whole_batch():
    model, optimizer, criterion = parts()
    whole = copy.deepcopy(model)
    inputs, targets = torch.randn(12, 6), torch.randn(12, 2)
    accumulator = helpers.GradientAccumulator(model, optimizer, 3, criterion)
    losses = [accumulator.step((inputs[i : i + 4], targets[i : i + 4])) for i in (0, 4, 8)]
    loss = criterion(whole(inputs), targets)
    loss.backward()
    torch.optim.SGD(whole.parameters(), lr=0.5).step()
    assert torch.allclose(model.weight, whole.weight, atol=1e-6)
    assert sum(losses) / 3 == pytest.approx(float(loss.detach()), rel=1e-5)
    assert model.weight.grad is None and accumulator.current_step == 3


def test_unequal_pieces_and_the_rest_of_an_epoch_have_their_weight():
    model, optimizer, criterion = parts()
    first, second = copy.deepcopy(model), copy.deepcopy(model)
    inputs, targets = torch.randn(7, 6), torch.randn(7, 2)
    accumulator = helpers.GradientAccumulator(first, torch.optim.SGD(first.parameters(), lr=0.5), 3, criterion)
    accumulator.step_whole((inputs, targets))
    rest = helpers.GradientAccumulator(second, torch.optim.SGD(second.parameters(), lr=0.5), 4, criterion)
    rest.step((inputs, targets))
    assert rest.finish() and not rest.finish()
    criterion(model(inputs), targets).backward()
    optimizer.step()
    for one in (first, second):
        assert torch.allclose(one.weight, model.weight, atol=1e-6)


def test_a_copy_of_a_checkpointed_model_runs_its_own_weights():
    block = lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))  # noqa: E731
    model = helpers.CheckpointedModel(torch.nn.Sequential(block(), block()))
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert torch.count_nonzero(other(torch.ones(2, 4))) == 0
    assert model(torch.ones(2, 4)).shape == (2, 4)


def test_checkpoints_can_be_taken_away():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    taken = helpers.checkpoint_modules(model, ["0"])
    assert "forward" in model[0].__dict__
    taken.remove()
    assert "forward" not in model[0].__dict__
    with pytest.raises(ValueError, match="no list of equal modules"):
        helpers.CheckpointedModel(model)


def test_names_that_are_not_there_are_errors():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4))
    with pytest.raises(LookupError, match="'head'"):
        helpers.freeze_layers(model, ["head"])
    with pytest.raises(LookupError, match="'head'"):
        helpers.fine_grained_pruning(model, ["head"])
    with pytest.raises(TypeError, match="Conv2d"):
        helpers.prune_model(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Conv2d(1, 1, 1)), 0.5, structured=True)


def test_cleanup_looks_at_what_there_is():
    class Full(helpers.MemoryMonitor):
        def get_memory_info(self):
            return {"allocated": 1.0, "reserved": 9.0, "max_allocated": 9.0, "free": 1.0}

    assert helpers.auto_cleanup(Full("cpu"))
    assert not helpers.auto_cleanup(Full("cpu"), threshold=0.95)


def test_training_in_pieces_goes_through_all_batches():
    model, optimizer, criterion = parts()
    batches = [(torch.randn(10, 6), torch.randn(10, 2))] * 3
    sizer = helpers.DynamicBatchSizer(4, grow_after=100)
    losses = helpers.train_with_dynamic_batching(model, optimizer, batches, criterion, epochs=2, batch_sizer=sizer)
    assert len(losses) == 2 * 3 * 3
    assert len(helpers.efficient_training_loop(model, optimizer, batches, criterion)) == 3
    assert helpers.selective_gradients(model, lambda x: x * 2, criterion, *batches[0]) > 0


RANKS = """
import json, sys, torch, os
from gpumemprof import practices as helpers
import torch.distributed.optim as zero

def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    return [(torch.randn(4, 64, generator=generator), torch.zeros(4, 64)) for _ in range(3)]

def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))

def rank_main(rank, folder):
    made = []
    kept = zero.ZeroRedundancyOptimizer
    class Watched(kept):
        def __init__(self, *a, **k):
            super().__init__(*a, **k)
            made.append(self)
    zero.ZeroRedundancyOptimizer = Watched
    losses = helpers.train_distributed(rank, 2, model, batches, torch.nn.functional.mse_loss)
    state = made[0].optim.state
    held = sum(v.nbytes for s in state.values() for v in s.values() if v.dim())
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump([held, losses], file)

if __name__ == "__main__":
    torch.multiprocessing.spawn(rank_main, args=(sys.argv[1],), nprocs=2)
"""


@pytest.mark.slow
def test_two_ranks_have_half_of_the_optimizer_state_each(tmp_path):
    program = tmp_path / "ranks.py"
    program.write_text(RANKS)
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    held = [json.loads((tmp_path / f"{rank}.json").read_text())[0] for rank in range(2)]
    assert held == [4 * (64 * 64 + 64) * 4 * 2 // 2] * 2  # Adam's two numbers a weight, between two
