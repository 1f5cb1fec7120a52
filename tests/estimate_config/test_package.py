"""`gpumemprof.estimate_config`, and the accuracy that the documentation states."""

import importlib.util
import json
import statistics

import harness
import jsonschema
import pytest

import gpumemprof

SCHEMA = json.loads((harness.ROOT / "docs" / "schemas" / "estimate.schema.json").read_text())
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257}


def test_a_mapping_and_a_file_say_the_same(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GPT2))
    of_file = gpumemprof.estimate_config(path, batch=4, optimizer="sgd", precision="fp32")
    of_mapping = gpumemprof.estimate_config(GPT2, batch=4, optimizer="sgd", precision="fp32")
    jsonschema.Draft202012Validator(SCHEMA).validate(of_file)
    assert of_file.pop("subject") == "config.json (gpt2)"
    assert of_mapping.pop("subject") == "configuration (gpt2)"
    assert of_file == of_mapping
    assert of_file["by_category"]["parameter"] == 4 * 124_439_808


def test_what_can_only_be_a_slip_is_refused():
    for wrong, says in (({"capacity": 80}, '"80" is a number of bytes: write a unit, such as 80GiB'),
                        ({"batch": True}, "batch is a number, or 'auto'")):  # fmt: skip
        with pytest.raises(ValueError, match=says):
            gpumemprof.estimate_config(GPT2, **{"batch": "auto", "capacity": "80GiB"} | wrong)
    with pytest.raises(ValueError, match="float values"):
        gpumemprof.estimate_config(GPT2 | {"resid_pdrop": float("nan")})


def test_settings_have_pythons_names_too():
    of = [gpumemprof.estimate_config(GPT2, inference=True, settings={name: "fp8"}) for name in ("kv_dtype", "kv-dtype")]
    assert of[0]["by_category"] == of[1]["by_category"]


def test_settings_of_every_kind_are_passed_on():
    out = gpumemprof.estimate_config(
        GPT2, batch="auto", capacity="24GiB", sequence=512, checkpointing="full", settings={"dp": 2, "fsdp": True}
    )
    assert out["largest_batch"]["batch"] == out["batch"] > 1
    assert out["setup"] == "training, adamw, bf16, sequence 512, checkpointing full, dp 2, FSDP on 2 GPUs"
    cached = gpumemprof.estimate_config(GPT2, inference=True, settings={"context": 100, "kv-dtype": "int8"})
    assert cached["by_category"]["KV cache"] == 100 * 12 * 2 * 768


def test_errors_are_pythons_own(tmp_path):
    with pytest.raises(ValueError, match="tp does not divide the 12 heads"):
        gpumemprof.estimate_config(GPT2, settings={"tp": 5})
    with pytest.raises(ValueError, match="configuration: has no n_layer"):
        gpumemprof.estimate_config({"model_type": "gpt2"})
    with pytest.raises(FileNotFoundError):
        gpumemprof.estimate_config(tmp_path / "nothing.json")
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"{\xff\x00")
    with pytest.raises(ValueError, match="is not valid JSON"):
        gpumemprof.estimate_config(binary)


@pytest.fixture(scope="module")
def accuracy():
    path = harness.ROOT / "bench" / "accuracy_megatron.py"
    spec = importlib.util.spec_from_file_location("accuracy_megatron", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.table()
    except SystemExit:
        pytest.skip("Megatron-LM's reference values are not here")
    return module


def test_the_stated_accuracy_is_what_the_command_finds(accuracy):
    rows = [row for row in accuracy.table() if not accuracy.left_out(row)]
    accuracy.choose_kernels(rows)
    errors = {id(row): accuracy.judged(row) for row in rows}
    reported = [
        abs(predicted / measured - 1)
        for row in rows
        if not accuracy.is_for_choosing(row) and accuracy.group(row) in ("dense", "MoE")
        and accuracy.flags(row)[0] in ("TP", "PP", "CP", "EP")
        for predicted, measured in [errors[id(row)]]
    ]
    assert len(reported) > 200
    assert statistics.median(reported) <= 0.10
    assert accuracy.written(accuracy.table()) == accuracy.OUT.read_text()
