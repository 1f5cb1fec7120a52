#!/usr/bin/env python3
"""How far the closed form is from Megatron-LM's own reference values: make accuracy-megatron.

The table (megatron_golden_memory.csv: a configuration a row, the peak of torch's allocator on the last rank) is not
part of the project: it is read from ../shared/prediction or from the folder that GPUMEMPROF_PREDICTION names. What the
table leaves out is said in `facts` below. Everything that was chosen was chosen on one half of the configurations, and
the other half is what is reported; a hash of the configuration decides which is which.
"""

import csv
import os
import statistics
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import gpumemprof  # noqa: E402

MIB = 1 << 20
OUT = ROOT / "docs" / "accuracy-megatron.md"

# Mixers of state space models, towers for images, engines that generate: no configuration of these is read here.
OTHER_MODELS = {"hybrid", "nemotron", "mimo", "multimodal-llava"}


def table():
    folder = Path(os.environ.get("GPUMEMPROF_PREDICTION", ROOT.parent / "shared" / "prediction"))
    path = folder / "megatron_golden_memory.csv"
    if not path.exists():
        print(f"accuracy-megatron: skipped, there is no {path.name} in {folder}")
        sys.exit(0)
    with path.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["maxalloc"]]


def left_out(row):
    """Why a row is not judged, or an empty string."""
    case = row["case"]
    if row["kind"] in OTHER_MODELS:
        return "another kind of model (state space, image)"
    if "grpo" in case:
        return "reinforcement learning: the generation engine holds most of the memory"
    if "offloading" in case:
        return "activations are offloaded to the host"
    if "reruns" in case:
        return "a restart test: no training"
    return ""


# What makes two rows the same configuration, whatever their tests are called.
SAME = ("kind", "layers", "hidden", "heads", "seq", "mbs", "gbs", "tp", "pp", "cp", "ep", "experts", "recompute",
        "distopt", "sp", "vpl", "bf16", "fp8", "fsdp", "mla")  # fmt: skip


def is_for_choosing(row):
    return zlib.crc32("/".join(row[name] for name in SAME).encode()) % 2 == 0


def integer(row, name, default=0):
    return int(float(row[name])) if row[name] else default


def uses_engine(case):
    """Transformer Engine's layers, or Megatron's local ones."""
    if "release" in case or "memory_speed" in case or case.startswith(("deepseek", "gpt3_moe", "gpt3_weekly")):
        return True
    return "_te_" in case.split("tp")[0]


def kernel_by_name(row):
    """Which attention a test of this name runs, or nothing where its values were made with both over the years."""
    case = row["case"]
    if "t5_11b" in case:
        return "flash"
    if "release" in case or integer(row, "cp", 1) > 1 or "memory_speed" in case and row["mla"] != "True":
        return "flash" if row["kind"] not in ("bert", "t5") else "unfused"
    if not uses_engine(case) or row["kind"] in ("bert", "t5") or row["mla"] == "True":
        return "unfused"
    if "resume" not in case and row["fsdp"] != "True" and "fp8" not in case:
        return "unfused"
    return ""


# Of the tests that resume: system -> attention, chosen by choose_kernels() on one half.
CHOSEN = {}


def kernel(row):
    return kernel_by_name(row) or CHOSEN.get(row["gold"], "flash")


def choose_kernels(rows):
    """The table does not say when a value was made: for each system, what explains the choosing half better."""
    CHOSEN.clear()
    open_rows = [row for row in rows if is_for_choosing(row) and not kernel_by_name(row)]
    for system in sorted({row["gold"] for row in open_rows}):
        found = {}
        for attention in ("flash", "unfused"):
            CHOSEN[system] = attention
            found[attention] = statistics.median(abs(error_of(row)) for row in open_rows if row["gold"] == system)
        CHOSEN[system] = min(found, key=found.get)


def ranks(row):
    case, system = row["case"], row["gold"]
    if "release" in case or row["kind"] == "nemotron":
        return 128 if "8x22b" in case else 64
    if "1node" in case and "gb200" in system:
        return 4
    return 8


def workspace(row):
    """cuBLAS has one a thread that calls it, forward and backward; Transformer Engine one of its own."""
    case, hopper = row["case"], "h100" in row["gold"]
    is_set = not ("release" in case or "te" in case and "cp2" in case and row["kind"] == "gpt")
    cublas = 32 * MIB if is_set or hopper else 8 * MIB + 128 * 1024
    engine = (32 if hopper or "gb200" in row["gold"] else 4) * MIB if uses_engine(case) else 0
    return 2 * cublas + engine


def facts(row):
    """What the tests of this name have besides the columns of the table, from their public configuration files."""
    case, kind = row["case"], row["kind"]
    out = {}
    if kind == "bert":
        out = {"vocab_size": 30522, "masked_lm_head": True, "token_type_count": 2, "max_position_embeddings": 512}
    elif kind == "t5":
        heads = integer(row, "heads")
        out = {"vocab_size": 29096, "encoder_num_layers": 24 if "11b" in case else 12, "encoder_seq_length": 512,
               "decoder_seq_length": 128, "max_position_embeddings": 512, "kv_channels": 64,
               "ffn_hidden_size": 10240 if "11b" in case else 3072, "num_attention_heads": heads}
    else:
        out = {"vocab_size": 50257, "max_position_embeddings": integer(row, "seq", 1024)}
    if kind in ("moe", "mixtral"):
        out["disable_bias_linear"] = True
        out["moe_router_topk"] = 2 if any(w in case for w in ("top2", "etp1_ep4", "ep8_", "mixtral", "op_fuser")) else 1
    if "_moe_mcore_te_ep8" in case:
        out["moe_ffn_hidden_size"] = 1024
    if integer(row, "cp", 1) > 1 or "release" in case and kind not in ("bert", "t5") or row["mla"] == "True":
        out.update(hidden_dropout=0.0, attention_dropout=0.0)
    if "swiglu" in case:
        out["swiglu"] = True
    if "untie" in case:
        out["untie_embeddings_and_output_weights"] = True
    if "rope" in case:
        out["position_embedding_type"] = "rope"
    if "disable_bias" in case:
        out["disable_bias_linear"] = True
    if "cross_entropy_loss_fusion" in case:
        out["cross_entropy_loss_fusion"] = True
    if "qk_layernorm" in case:
        out["qk_layernorm"] = True
    if case.startswith("gpt3_7b"):
        out.update(vocab_size=131072, group_query_attention=True, num_query_groups=8,
                   untie_embeddings_and_output_weights=True)
    if case.startswith("gpt3_15b"):
        out.update(vocab_size=256000, group_query_attention=True, num_query_groups=8, position_embedding_type="rope",
                   untie_embeddings_and_output_weights=True, disable_bias_linear=True)
    if case.startswith("mixtral"):
        out.update(vocab_size=32000 if "8x22b" in case else 256000, group_query_attention=True, num_query_groups=8,
                   position_embedding_type="rope", untie_embeddings_and_output_weights=True, swiglu=True,
                   normalization="RMSNorm", ffn_hidden_size=16384 if "8x22b" in case else 14336)
    if case.startswith("deepseekv3"):
        out.update(vocab_size=256000, make_vocab_size_divisible_by=3232, ffn_hidden_size=18432, kv_channels=128,
                   position_embedding_type="rope", normalization="RMSNorm", swiglu=True, q_lora_rank=1536,
                   kv_lora_rank=512, qk_layernorm=True, untie_embeddings_and_output_weights=True, mtp_num_layers=1,
                   moe_layer_freq="([0]*3+[1]*11)", moe_ffn_hidden_size=2048, moe_shared_expert_intermediate_size=2048,
                   moe_router_topk=8, expert_tensor_parallel_size=1, cross_entropy_loss_fusion=True)
    if "tp2_pp2_ep4_etp1" in case:
        out.update(make_vocab_size_divisible_by=3232, ffn_hidden_size=4096, kv_channels=128, swiglu=True,
                   position_embedding_type="rope", normalization="RMSNorm", q_lora_rank=1536, kv_lora_rank=512,
                   untie_embeddings_and_output_weights=True, mtp_num_layers=1, moe_layer_freq="([0]*1+[1]*15)",
                   moe_ffn_hidden_size=1024, moe_shared_expert_intermediate_size=1024, moe_router_topk=4,
                   cross_entropy_loss_fusion=True, qk_layernorm=True, num_virtual_stages_per_pipeline_rank=4)
    if "selective_recompute_experimental" in case:
        out["recompute_modules"] = "layernorm mla_up_proj mlp moe_act"
    if "etp1" in case:
        out["expert_tensor_parallel_size"] = 1
    if "ep2_etp2_te_4experts" in case:
        out["expert_tensor_parallel_size"] = 2
    if "_etp2_" in case:
        out["expert_tensor_parallel_size"] = 2
    return out


def configuration(row):
    world = ranks(row)
    tp, pp, cp = (integer(row, name, 1) for name in ("tp", "pp", "cp"))
    out = {
        "num_layers": integer(row, "layers", 12), "hidden_size": integer(row, "hidden"),
        "num_attention_heads": integer(row, "heads"), "seq_length": integer(row, "seq", 512),
        "micro_batch_size": integer(row, "mbs", 1), "tensor_model_parallel_size": tp,
        "pipeline_model_parallel_size": pp, "context_parallel_size": cp,
        "expert_model_parallel_size": integer(row, "ep", 1),
        "data_parallel_size": max(1, world // (tp * pp * cp)),
        "use_distributed_optimizer": row["distopt"] == "True", "sequence_parallel": row["sp"] == "True",
        "bf16": row["bf16"] == "True", "fp16": row["bf16"] != "True", "use_megatron_fsdp": row["fsdp"] == "True",
        "attention_backend": kernel(row),
    }  # fmt: skip
    if row["gbs"]:
        out["global_batch_size"] = integer(row, "gbs")
    if row["experts"]:
        out["num_experts"] = integer(row, "experts")
    if row["vpl"]:
        out["num_layers_per_virtual_pipeline_stage"] = integer(row, "vpl")
    if row["recompute"]:
        out["recompute_granularity"] = row["recompute"]
    if row["mla"] == "True":
        out["multi_latent_attention"] = True
    out.update(facts(row))
    if row["kind"] == "t5":
        del out["num_layers"]
    return out


def judged(row):
    """(predicted, measured) bytes of the last rank."""
    settings = {"stage": "last", "workspace": str(workspace(row))}
    answer = gpumemprof.estimate_config(configuration(row), settings=settings)
    peak = answer["peaks"]["allocated"]
    parts = tuple(round(peak[end] / peak["expected_bytes"], 4) for end in ("low_bytes", "high_bytes"))
    assert parts == INTERVAL, f"the command's interval is {parts}"
    return peak["expected_bytes"], int(float(row["maxalloc"]))


def group(row):
    return "MoE" if row["kind"] in ("moe", "mixtral") else {"gpt": "dense"}.get(row["kind"], row["kind"].upper())


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


# The interval that the command prints around an estimate (closed_form.cc): parts of the expected figure.
INTERVAL = (0.93, 1.19)


def is_within(error):
    """Whether the measured value lies in the interval of an estimate that is off by this."""
    return INTERVAL[0] <= 1 / (1 + error) <= INTERVAL[1]


def interval_words(errors):
    within, low = sum(map(is_within, errors)), sum(e < 0 for e in errors)
    return [
        f"Of the {len(errors)} rows of the reporting half, {within} ({100 * within / len(errors):.0f} %) lie within the",
        f"printed interval, {100 * INTERVAL[0]:.0f} % to {100 * INTERVAL[1]:.0f} % of the estimate. "
        f"For {low} ({100 * low / len(errors):.0f} %) the estimate was too low.",
    ]


def line(name, errors):
    sizes = [abs(e) for e in errors]
    under = sum(e < 0 for e in errors) / len(errors)
    return (f"| {name} | {len(errors)} | {100 * statistics.median(sizes):.1f} | {100 * quantile(sizes, 0.9):.1f} | "
            f"{100 * under:.0f} |")  # fmt: skip


HEAD = """| configurations | rows | median error % | p90 error % | estimate too low % |
|---|---:|---:|---:|---:|"""


def flags(row):
    names = []
    for name in ("tp", "pp", "cp", "ep"):
        if integer(row, name, 1) > 1:
            names.append(name.upper())
    names += [word for word, is_so in (
        ("interleaved", row["vpl"] != ""), ("sequence parallel", row["sp"] == "True"),
        ("distributed optimizer", row["distopt"] == "True"), ("recompute", row["recompute"] != ""),
        ("MLA", row["mla"] == "True"), ("FSDP", row["fsdp"] == "True"), ("fp8", row["fp8"] != ""),
    ) if is_so]  # fmt: skip
    return names or ["no parallelism"]


def by_configuration(pairs):
    """The median error of each configuration: some have forty rows, some one."""
    out = {}
    for row, error in pairs:
        out.setdefault(tuple(row[name] for name in SAME), []).append(error)
    return {key: statistics.median(errors) for key, errors in out.items()}


def report(rows, errors, dropped):
    reported = [(row, error) for row, error in zip(rows, errors) if not is_for_choosing(row)]
    chosen = [(row, error) for row, error in zip(rows, errors) if is_for_choosing(row)]
    low, high = quantile([e for _, e in chosen], 0.05), quantile([e for _, e in chosen], 0.95)
    out = [
        "# Accuracy of the closed form: Megatron-LM's reference values", "",
        "`make accuracy-megatron` writes this page. It compares the predicted peak of allocated bytes on the last rank of",
        "the pipeline with the reference values of Megatron-LM's functional tests. A hash of each configuration's properties",
        "splits the configurations into halves. The assumptions were chosen on one half (the choosing half); the figures are",
        "of the other (the reporting half), unless the row says otherwise. The terms of the closed form are described in",
        "[estimate-configurations.md](estimate-configurations.md). They were first checked by hand on values of both halves,",
        "before the split existed.", "", HEAD,
        line("dense and MoE", [e for r, e in reported if group(r) in ("dense", "MoE")]),
        line("dense and MoE with parallelism", [e for r, e in reported
             if group(r) in ("dense", "MoE") and flags(r)[0] in ("TP", "PP", "CP", "EP")]),
        *(line(name, [e for r, e in reported if group(r) == name]) for name in ("dense", "MoE", "BERT", "T5")
          if any(group(r) == name for r, _ in reported)),
        line("all", [e for _, e in reported]),
        line("all, one figure per configuration", list(by_configuration(reported).values())),
        line("choosing half", [e for _, e in chosen]), "",
        f"In the choosing half, 90 % of the measured values lie between {100 / (1 + high):.0f} % and "
        f"{100 / (1 + low):.0f} % of the estimate.", "", *interval_words([e for _, e in reported]), "",
        "## By property of the configuration", "", HEAD,
    ]  # fmt: skip
    names = sorted({flag for row, _ in reported for flag in flags(row)})
    out += [line(name, [e for r, e in reported if name in flags(r)]) for name in names]
    out += ["", "## Rows left out", "", "| why | rows |", "|---|---:|"]
    out += [f"| {why} | {count} |" for why, count in sorted(dropped.items())]
    chosen_words = ", ".join(f"{system} {attention}" for system, attention in sorted(CHOSEN.items()))
    out += ["", f"Attention kernel chosen for the tests that resume: {chosen_words}.",
            "", "`bench/accuracy_megatron.py` lists what the reference values do not say about a configuration: vocabulary, attention",
            "kernel and number of devices.", ""]  # fmt: skip
    return "\n".join(out)


def written(everything):
    """The page's text."""
    dropped = {}
    rows = []
    for row in everything:
        why = left_out(row)
        if why:
            dropped[why] = dropped.get(why, 0) + 1
        else:
            rows.append(row)
    choose_kernels(rows)
    return report(rows, [error_of(row) for row in rows], dropped)


def error_of(row):
    predicted, measured = judged(row)
    return predicted / measured - 1


def main():
    everything = table()
    if "--rows" in sys.argv:  # the choosing half alone, worst last: where a term is missing
        rows = [row for row in everything if not left_out(row) and is_for_choosing(row)]
        choose_kernels(rows)
        for error, row in sorted(((error_of(row), row) for row in rows), key=lambda pair: abs(pair[0])):
            size = int(float(row["maxalloc"])) // MIB
            print(f"{100 * error:7.1f} % {size:7d} MiB {row['kind']} {row['case']} {row['gold']}")
        return
    text = written(everything)
    OUT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
