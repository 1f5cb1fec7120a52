"""Small models of Transformers, one a family, for comparing with what the closed form says of their configurations."""

import json

import pytest

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import gpumemprof  # noqa: E402

WIDTH = dict(hidden_size=256, intermediate_size=704, num_attention_heads=8, num_key_value_heads=4, vocab_size=512,
             max_position_embeddings=2048)  # fmt: skip
LATENT = dict(hidden_size=256, intermediate_size=704, moe_intermediate_size=128, num_attention_heads=8,
              num_key_value_heads=8, vocab_size=512, n_routed_experts=8, n_shared_experts=2, first_k_dense_replace=1,
              kv_lora_rank=64, qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=24,
              num_experts_per_tok=2)  # fmt: skip
T5 = dict(d_model=64, d_kv=16, d_ff=150, num_heads=4, vocab_size=512)
BERT = dict(hidden_size=256, intermediate_size=704, num_attention_heads=8, vocab_size=512, max_position_embeddings=2048)
NO_DROPOUT = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def make(name, layers):
    """The configuration called `name`; with a class of its own where it has one."""
    t = transformers
    deep = dict(num_hidden_layers=layers)
    return {
        "llama": lambda: t.LlamaConfig(**WIDTH, **deep),
        "llama with biases, tied": lambda: t.LlamaConfig(
            **WIDTH, **deep, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
        "mistral": lambda: t.MistralConfig(**WIDTH, **deep, head_dim=48),
        "qwen2": lambda: t.Qwen2Config(**WIDTH, **deep),
        "qwen3": lambda: t.Qwen3Config(**WIDTH, **deep, head_dim=32),
        "gemma": lambda: t.GemmaConfig(**WIDTH, **deep, head_dim=48),
        "gemma2": lambda: t.Gemma2Config(**WIDTH, **deep, head_dim=32),
        "gemma3": lambda: t.Gemma3TextConfig(**WIDTH, **deep, head_dim=48),
        "gpt2": lambda: t.GPT2Config(n_embd=256, n_layer=layers, n_head=8, vocab_size=512, n_positions=2048,
                                     bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, attn_pdrop=0.0, embd_pdrop=0.0),
        "gpt_neox": lambda: t.GPTNeoXConfig(hidden_size=256, intermediate_size=704, num_attention_heads=8,
                                            vocab_size=512, **deep),
        "mixtral": lambda: t.MixtralConfig(**WIDTH, **deep, num_local_experts=4),
        "qwen2_moe": lambda: t.Qwen2MoeConfig(**WIDTH, **deep, num_experts=6, moe_intermediate_size=48,
                                              shared_expert_intermediate_size=80, mlp_only_layers=[1]),
        "qwen3_moe": lambda: t.Qwen3MoeConfig(**WIDTH, **deep, num_experts=8, moe_intermediate_size=128, head_dim=32,
                                              num_experts_per_tok=2),
        "deepseek_v2": lambda: t.DeepseekV2Config(**LATENT, **deep, q_lora_rank=None),
        "deepseek_v3": lambda: t.DeepseekV3Config(**LATENT, **deep, q_lora_rank=96, n_group=2, topk_group=1),
        "bert": lambda: t.BertConfig(**BERT, **deep, **NO_DROPOUT),
        "t5": lambda: t.T5Config(**T5, num_layers=layers, num_decoder_layers=layers + 1),
        "t5, gated": lambda: t.T5Config(
            **T5, num_layers=layers, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    }[name]()  # fmt: skip


NAMES = [
    "llama", "llama with biases, tied", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "gpt2", "gpt_neox",
    "mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3", "bert", "t5", "t5, gated",
]  # fmt: skip


def class_of(name):
    if name == "bert":
        return transformers.BertForMaskedLM
    if name.startswith("t5"):
        return transformers.T5ForConditionalGeneration
    return transformers.AutoModelForCausalLM.from_config


def written(config, architecture):
    """As the library writes it into config.json."""
    out = json.loads(config.to_json_string(use_diff=False))
    out["architectures"] = [architecture]
    return out


def shares(config, architecture, **settings):
    answer = gpumemprof.estimate_config(written(config, architecture), settings={"workspace": "0", **settings})
    return {(share["category"], share["name"]): share["bytes"] for share in answer["at_peak"]}
