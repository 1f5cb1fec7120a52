"""Which layers see a window only, against what Transformers makes of the same configuration."""

import json

import pytest

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import gpumemprof  # noqa: E402

LAYERS, CONTEXT, WINDOW = 6, 1000, 100
WIDTH = dict(hidden_size=256, intermediate_size=704, num_attention_heads=8, num_key_value_heads=4, vocab_size=512,
             num_hidden_layers=LAYERS, sliding_window=WINDOW)  # fmt: skip
QWEN = dict(WIDTH, use_sliding_window=True)


def make(name):
    t = transformers
    return {
        "qwen2, none": lambda: t.Qwen2Config(**QWEN),
        "qwen2, from the third": lambda: t.Qwen2Config(**QWEN, max_window_layers=2),
        "qwen2, as many as layers": lambda: t.Qwen2Config(**QWEN, max_window_layers=LAYERS),
        "qwen3, from the fifth": lambda: t.Qwen3Config(**QWEN, max_window_layers=4),
        "qwen3, off": lambda: t.Qwen3Config(**WIDTH, max_window_layers=2),
        "qwen2_moe": lambda: t.Qwen2MoeConfig(**QWEN, max_window_layers=3),
        "gemma2": lambda: t.Gemma2Config(**WIDTH, head_dim=32),
        "gemma3": lambda: t.Gemma3TextConfig(**WIDTH, head_dim=32),
    }[name]()


NAMES = ["qwen2, none", "qwen2, from the third", "qwen2, as many as layers", "qwen3, from the fifth", "qwen3, off",
         "qwen2_moe", "gemma2", "gemma3"]  # fmt: skip


@pytest.mark.parametrize("names_types", [True, False], ids=["layer_types", "without"])
@pytest.mark.parametrize("name", NAMES)
def test_layers_with_a_window_are_those_of_transformers(name, names_types):
    config = make(name)
    types = list(config.layer_types)
    written = json.loads(config.to_json_string(use_diff=False))
    written["architectures"] = ["AnyForCausalLM"]
    if not names_types:
        del written["layer_types"]
    if name != "qwen3, off":  # the library writes what it made of it; a file has what its author said
        written["sliding_window"] = WINDOW
    answer = gpumemprof.estimate_config(
        written, settings={"inference": "true", "context": str(CONTEXT), "kv-dtype": "bf16"})  # fmt: skip
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    tokens = sum(WINDOW if kind == "sliding_attention" else CONTEXT for kind in types)
    assert answer["by_category"]["KV cache"] == tokens * 2 * config.num_key_value_heads * head_dim * 2
