"""gpumemprof.estimate(): a function of this process, in a child of it."""

import os

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture
def parts():
    model = torch.nn.Linear(100, 10)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.randn(32, 100)


def step(model, optimizer, x):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()


def test_bytes_are_those_of_the_model_and_this_process_is_left_alone(parts):
    import gpumemprof

    model, optimizer, x = parts
    before, process = model.weight.clone(), os.getpid()
    found = gpumemprof.estimate(step, model, optimizer, x)
    assert (
        found.report["by_category"]["parameter"]
        == found.report["by_category"]["optimizer state"]
        == 4 * (100 * 10 + 10)
    )
    assert (
        found.live_bytes
        <= found.allocated_bytes
        <= found.reserved_bytes
        < found.device_bytes
        <= found.device_high_bytes
    )
    assert os.getpid() == process and model.weight.device.type == "cpu" and torch.equal(model.weight, before)
    assert not torch.cuda.is_available() or torch.version.cuda
    assert not optimizer.state


def test_what_fails_says_why(parts):
    import gpumemprof

    def wrong(model):
        raise KeyError("labels")

    with pytest.raises(gpumemprof.EstimateError, match="KeyError: 'labels'"):
        gpumemprof.estimate(wrong, parts[0])
    with pytest.raises(gpumemprof.EstimateError, match="nothing on a GPU"):
        gpumemprof.estimate(lambda: None)
