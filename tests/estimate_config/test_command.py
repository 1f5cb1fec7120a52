"""`estimate --config`: what it prints, and what it refuses."""

import json

import harness
import jsonschema
import pytest

SCHEMA = json.loads((harness.ROOT / "docs" / "schemas" / "estimate.schema.json").read_text())
LLAMA = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}  # fmt: skip
MEGATRON = """ENV_VARS:
  SOME_VARIABLE: 1
MODEL_ARGS:
  --num-layers: 12
  --hidden-size: 512
  --num-attention-heads: 8
  --seq-length: 1024
  --max-position-embeddings: 1024
  --micro-batch-size: 4
  --global-batch-size: 32
  --vocab-file: ${DATA_PATH}/vocab.json
  --merge-file: ${DATA_PATH}/merges.txt
  --tensor-model-parallel-size: 2
  --bf16: true
  --attention-backend: unfused
TEST_TYPE: regular
"""


def estimate(path, *options):
    return harness.execute([harness.COMMAND, "estimate", "--config", path, *options])


def answer(path, *options):
    out = json.loads(estimate(path, "--format", "json", *options).ok().stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(out)
    return out


@pytest.fixture
def llama(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    return path


def test_the_text_says_peaks_parts_boards_and_what_was_assumed(llama):
    text = estimate(llama, "--batch", "1", "--sequence", "2048").ok().stdout.decode()
    head = text.splitlines()
    assert head[0] == "config.json (llama): training, adamw, bf16, sequence 2048"
    assert head[1] == "By arithmetic over the configuration; nothing was run, batch 1 per device."
    for title in ("Memory at the peak, by type", "By part:", "Does it fit on an otherwise empty GPU:", "Assumed:",
                  "Not known:"):  # fmt: skip
        assert title in text


def test_weights_states_and_shares_add_up(llama):
    out = answer(llama, "--batch", "1")
    held = {share["name"]: share["bytes"] for share in out["at_peak"]}
    assert held["weights"] == 2 * 8_030_261_248
    assert held["optimizer"] == 4 * 8_030_261_248
    assert sum(held.values()) == out["peaks"]["allocated"]["expected_bytes"] == sum(out["by_category"].values())
    assert out["peaks"]["live"] is None and out["unknown"]
    assert {board["verdict"] for board in out["boards"]} <= {"fits", "may fit", "does not fit"}


def test_megatrons_own_files_are_read_with_their_parallelism(tmp_path):
    path = tmp_path / "model_config.yaml"
    path.write_text(MEGATRON)
    out = answer(path)
    assert out["subject"] == "model_config.yaml (megatron)"
    assert out["batch"] == 4
    assert "tp 2" in out["setup"]
    # 50257 tokens padded to a multiple of 128 for each of two ranks; 18 bytes a weight in all.
    h, vocabulary = 512, 50432
    layer = 12 * h * h // 2 + (3 * h + 4 * h) // 2 + 2 * h + 4 * h
    weights = 12 * layer + vocabulary * h // 2 + 1024 * h + 2 * h
    held = {share["name"]: share["bytes"] for share in out["at_peak"]}
    assert (held["weights"], held["gradients"], held["optimizer"]) == (2 * weights, 4 * weights, 12 * weights)
    assert any("GPT-2" in assumption["source"] for assumption in out["assumptions"])
    more = answer(path, "--tp", "4", "--sequence-parallel", "--batch", "2")
    assert more["batch"] == 2 and "sequence parallel" in more["setup"]
    assert more["peaks"]["allocated"]["expected_bytes"] < out["peaks"]["allocated"]["expected_bytes"]


def test_inference_has_a_cache_and_no_gradients(llama):
    out = answer(llama, "--inference", "--context", "8192", "--kv-dtype", "fp8", "--batch", "4")
    assert out["by_category"]["KV cache"] == 4 * 8192 * 64 * 1024
    assert "gradient" not in out["by_category"]
    assumed = [assumption["what"] for assumption in out["assumptions"]]
    assert "run by Transformers, without gradients" in assumed and not any("training" in what for what in assumed)


def test_the_largest_batch_and_the_next_one(llama):
    options = ("--dp", "8", "--zero", "3", "--sequence", "512")
    out = answer(llama, "--batch", "auto", "--capacity", "40GiB", *options)
    batch = out["largest_batch"]["batch"]
    assert batch == out["batch"] > 1 and out["capacity"]["verdict"] == "fits"
    over = answer(llama, "--batch", str(batch + 1), "--capacity", "40GiB", *options)
    assert over["peaks"]["device"]["high_bytes"] > 40 << 30


def test_a_table_over_settings(llama):
    out = answer(llama, "--table", "--sequence", "1024")
    rows = {row["settings"]: row["allocated"]["expected_bytes"] for row in out["table"]}
    assert len(rows) == 24
    assert rows["adamw, bf16, checkpointing full"] <= rows["adamw, bf16, checkpointing none"]
    assert rows["adamw8bit, bf16, checkpointing none"] < rows["adamw, bf16, checkpointing none"]
    assert "Other settings, expected peaks:" in estimate(llama, "--table").ok().stdout.decode()


def test_prices_are_the_users_own(llama, tmp_path):
    prices = tmp_path / "prices.csv"
    rows = ("board,memory,price_per_hour,currency", "small,8GiB,0.2,EUR", "large,500GiB,9,EUR", "huge,900GiB,20,EUR")
    prices.write_text("\n".join(rows) + "\n")
    out = answer(llama, "--sequence", "512", "--prices", prices)
    assert out["cheapest"] == {"board": "large", "usable_bytes": 500 << 30, "price_per_hour": 9, "currency": "EUR"}
    assert answer(llama)["cheapest"] is None


@pytest.mark.parametrize(
    "text,message",
    [
        (b"", "is empty (at byte 0)"),
        (b"{", "is not valid JSON (at byte 1)"),
        (b'{"model_type": "llama", }', "is not valid JSON (at byte 24)"),
        (b"\x00\x01\x02", "is neither JSON nor YAML (at byte 0)"),
        (b"a: &x [1]\nb: *x\n", "aliases are not supported (at byte 13)"),
        (b'{"model_type": "resnet"}', 'model_type "resnet" is not supported'),
        (b'{"model_type": "llama", "num_hidden_layers": -4}', "num_hidden_layers is out of range: 1 to 4096"),
        (b'{"model_type": "llama", "num_hidden_layers": 1e400}', "is not valid JSON"),
        (b'{"a":' * 1000, "is nested too deeply"),
        (b"num-layers: 2\nhidden-size: 1e18\nnum-attention-heads: 2\n", "hidden_size is out of range"),
    ],
)
def test_hostile_files_end_in_one_line(tmp_path, text, message):
    path = tmp_path / "config"
    path.write_bytes(text)
    done = estimate(path)
    assert done.rc == 2 and done.stdout == b""
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"gpumemprof: {path}: ")
    assert message in lines[0]


@pytest.mark.parametrize(
    "options,message",
    [
        (["--tp", "3"], "tp does not divide the 32 heads"),
        (["--zero", "9"], "zero is a number from 0 to 3"),
        (["--optimizer", "magic"], "optimizer is one of adamw, adam,"),
        (["--set", "speed=9"], "unknown setting speed"),
        (["--capacity", "much"], "much"),
        (["--inference", "--table"], "the table covers training settings"),
        (["--settings", "expandable_segments:True"], "--settings needs a trace or a program"),
        (["--distributed-optimizer"], "distributed-optimizer is Megatron's option; use --zero 1"),
        (["--prices", "/nowhere/prices.csv"], "/nowhere/prices.csv"),
    ],
)
def test_settings_that_make_no_sense_are_named(llama, options, message):
    done = estimate(llama, *options)
    assert done.rc == 2 and done.stdout == b""
    assert len(done.stderr.splitlines()) == 1 and message in done.stderr.decode()


def test_an_output_that_is_an_input_is_refused(llama, tmp_path):
    prices = tmp_path / "prices.csv"
    prices.write_text("board,memory,price_per_hour,currency\nsmall,8GiB,0.2,EUR\n")
    for path in (prices, llama):
        before = path.read_bytes()
        done = estimate(llama, "--sequence", "512", "--prices", prices, "--output", path)
        assert done.rc == 2 and len(done.stderr.splitlines()) == 1
        assert path.read_bytes() == before


def test_heads_of_keys_that_do_not_divide_the_heads_are_refused(llama):
    llama.write_text(json.dumps(dict(LLAMA, num_key_value_heads=3)))
    done = estimate(llama)
    assert done.rc == 2 and done.stdout == b"" and len(done.stderr.splitlines()) == 1
    assert b"num_key_value_heads: 3 does not divide the 32 heads" in done.stderr


def test_every_truncation_of_a_configuration_is_refused_or_read(llama, tmp_path):
    """No length of a torn file crashes the parser."""
    import gpumemprof

    whole = llama.read_bytes()
    torn = tmp_path / "torn.json"
    refused = 0
    for length in range(len(whole)):
        torn.write_bytes(whole[:length])
        with pytest.raises(ValueError):
            gpumemprof.estimate_config(torn)
        refused += 1
    assert refused == len(whole)
