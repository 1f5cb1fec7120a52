"""A KV cache that is kept has one name: as a leak, as a type of memory and as advice. Bytes are arithmetic on the sizes of
programs/kept_caches.py."""

import json
import sys

import pytest

pytest.importorskip("torch")

import harness  # noqa: E402
import nested  # noqa: E402


def kept_bytes(tokens, sessions):
    return sessions * 2 * 2 * (20 + tokens) * 64 * 4  # two layers, keys and values, floats


@pytest.mark.parametrize(
    ("tokens", "options"),
    [(1, ["--explain-leaks"]), (12, ["--explain-leaks"])],
    ids=["by its holder", "with more tokens"],
)
def test_a_kept_cache_has_one_name(tokens, options, tmp_path):
    folder = tmp_path / "kept.gmp"  # a folder may be called like a file of a recording
    nested.record(folder, [sys.executable, harness.PROGRAMS / "kept_caches.py", str(tokens)], options, timeout=300).ok()
    said = harness.analysis(folder)
    device = next(d for d in said["devices"] if d["device"] == "cpu")
    (leak,) = [one for one in said["findings"] if one["kind"] == "leak"]
    assert leak["name"] == "kv_cache_growth", leak
    types = device["categories_at_peak"]
    assert kept_bytes(tokens, 39) <= types["KV cache"] <= kept_bytes(tokens, 41)
    assert types.get("unknown", 0) < 64 * 1024
    assert {holder["category"] for holder in device["holders_at_peak"][:2]} == {"KV cache"}
    assert max(device["category_timeline"]["bytes"]["KV cache"]) >= kept_bytes(tokens, 38)
    advice = json.loads(harness.execute([harness.COMMAND, "advise", folder, "--format", "json"], timeout=120).ok().stdout)
    assert "kv_cache_growth" in {one["kind"] for one in advice["advice"]}
    assert "activations_kept" not in {one["kind"] for one in advice["advice"]}


def test_what_is_kept_beside_a_cache_is_none(tmp_path):
    tokens, folder = 12, tmp_path / "kept"
    program = [sys.executable, harness.PROGRAMS / "kept_caches.py", str(tokens), "scores"]
    nested.record(folder, program, ["--explain-leaks"], timeout=300).ok()
    device = next(d for d in harness.analysis(folder)["devices"] if d["device"] == "cpu")
    types, scores = device["categories_at_peak"], tokens * 20 * 64 * 4
    assert kept_bytes(tokens, 39) <= types["KV cache"] <= kept_bytes(tokens, 41)
    assert 39 * scores <= types["unknown"] <= 40 * scores + 64 * 1024
