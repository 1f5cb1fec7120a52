"""What a layer keeps for the backward pass, against what autograd really saved: on the CPU, so without the kernels that
only a GPU has (attention with dropout, heads of unequal width)."""

import pytest

pytest.importorskip("transformers", reason="transformers is not installed")

import small_models  # noqa: E402
import torch  # noqa: E402

BATCH, SEQUENCE = 2, 64
LOGITS = 512  # tokens enough that the logits are most of what is there
# Both where attention by one kernel is to be had on a CPU.
CASES = [
    ("llama", "sdpa"), ("llama", "eager"), ("qwen3", "sdpa"), ("qwen3", "eager"), ("gemma2", "eager"), ("gpt2", "sdpa"),
    ("gpt2", "eager"), ("gpt_neox", "eager"), ("bert", "sdpa"), ("bert", "eager"), ("mixtral", "sdpa"),
    ("mixtral", "eager"), ("qwen3_moe", "sdpa"),
]  # fmt: skip
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def saved_bytes(model):
    """Of the distinct storages that autograd keeps, parameters and buffers aside."""
    own = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage  # held, so that no address comes twice
        return tensor

    ids = torch.randint(0, 512, (BATCH, SEQUENCE))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(input_ids=ids, labels=ids)
    return sum(storage.nbytes() for storage in kept.values())


@pytest.fixture(autouse=True)
def one_thread():
    """Tensors of this size are not worth more, and other tests run beside."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("precision", sorted(TYPES))
@pytest.mark.parametrize("name,attention", CASES)
def test_a_layer_keeps_what_autograd_saves(name, attention, precision):
    torch.manual_seed(0)
    measured, predicted = [], []
    for layers in (1, 2):
        config = small_models.make(name, layers)
        config._attn_implementation = attention
        config.use_cache = False
        model = small_models.class_of(name)(config).to(TYPES[precision]).train()
        measured.append(saved_bytes(model))
        kept = small_models.shares(
            config, type(model).__name__, batch=BATCH, sequence=SEQUENCE, precision=precision, optimizer="sgd",
            # With gradients of an earlier micro batch there, the loss is always the largest moment of a step.
            **{"micro-batches": 2}, attention="flash" if attention == "sdpa" else "unfused")  # fmt: skip
        predicted.append(sum(size for (category, _), size in kept.items() if category == "activation"))
    # Of the second layer alone: embedding and loss are in both models. Within a hundredth: row sums of norms,
    # positions, and the choice of experts are left out or spread evenly.
    assert predicted[1] - predicted[0] == pytest.approx(measured[1] - measured[0], rel=0.01)


@pytest.mark.parametrize("precision", sorted(TYPES))
def test_the_loss_at_its_worst_is_what_pytorchs_tracker_sees(precision):
    mem_tracker = pytest.importorskip("torch.distributed._tools.mem_tracker")
    config = small_models.make("llama", 1)
    config.vocab_size = 32000
    model = small_models.class_of("llama")(config).to(TYPES[precision])
    ids = torch.randint(0, 32000, (1, LOGITS))
    tracker = mem_tracker.MemTracker()
    tracker.track_external(model)
    with tracker:
        output = model(input_ids=ids, labels=ids, use_cache=False)
        output.loss.backward()
    measured = tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]
    kept = small_models.shares(config, "LlamaForCausalLM", batch=1, sequence=LOGITS, precision=precision,
                               optimizer="sgd")  # fmt: skip
    assert kept["activation", "logits and loss"] == (16 if precision == "fp32" else 14) * LOGITS * 32000
    # With one small layer nearly all of the peak are the logits.
    assert sum(kept.values()) == pytest.approx(measured, rel=0.02)
