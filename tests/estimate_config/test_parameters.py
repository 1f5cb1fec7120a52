"""Parameters of a configuration, against the models that Transformers makes of it."""

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

import small_models  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402


def parameters_of(config, make):
    with torch.device("meta"):
        model = make(config)
    return sum(p.numel() for p in {id(p): p for p in model.parameters()}.values()), type(model).__name__


@pytest.mark.parametrize("name", small_models.NAMES)
def test_weights_are_those_of_the_model_itself(name):
    config = small_models.make(name, 3)
    count, architecture = parameters_of(config, small_models.class_of(name))
    for precision, size in (("fp32", 4), ("bf16", 2)):
        held = small_models.shares(config, architecture, inference=True, precision=precision, sequence=8)
        assert held["parameter", "weights"] == count * size


@pytest.mark.parametrize("kind", ["BertModel", "BertForSequenceClassification", "BertForPreTraining"])
def test_berts_other_heads(kind):
    config = small_models.make("bert", 2)
    count, architecture = parameters_of(config, getattr(transformers, kind))
    assert architecture == kind
    held = small_models.shares(config, kind, inference=True, precision="fp32", sequence=8)
    assert held["parameter", "weights"] == count * 4
