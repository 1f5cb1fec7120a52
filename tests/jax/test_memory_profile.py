"""JAX's device_memory_profile(): what the reader says is what arithmetic on the arrays, and JAX itself, say."""
import collections
import gzip
import json

import pytest

import harness
from jax_helpers import environment, python

OWN = harness.ROOT / "tests" / "fixtures" / "jax" / "memory_profile.pb.gz"
SHARED = harness.ROOT.parent / "shared" / "jax" / "live_memory.pprof"
FLOAT = 4


def profiles():
    return [pytest.param(path, id=path.name, marks=() if path.exists() else pytest.mark.skip(reason=f"no {path}"))
            for path in (OWN, SHARED)]


@pytest.mark.parametrize("path", profiles())
def test_fifty_arrays_of_a_function_are_its_holders_to_the_byte(path):
    analysis = harness.analysis(path)
    (cpu,) = [d for d in analysis["devices"] if d["device"] == "jax:cpu:0"]
    held = collections.Counter()
    for holder in cpu["holders_at_end"] if "holders_at_end" in cpu else cpu["holders_at_peak"]:
        stack = " ".join(holder["stack"])
        held["load_params" if "load_params" in stack else "ones" if ".py:" in stack and " ones" in stack else "rest"] += holder["bytes"]
    assert held["load_params"] == sum((100 + i) * 64 * FLOAT for i in range(50))
    assert held["ones"] == (256 * 512 + 512 * 512) * FLOAT
    assert cpu["end"]["requested_bytes"] == sum(held.values())


def test_a_profile_says_that_it_is_a_moment():
    analysis = harness.analysis(OWN)
    assert analysis["source"]["kind"] == "jax_memory_profile"
    assert any("one moment" in str(reason) for reason in analysis["lost"]["reasons"])
    text = harness.execute([harness.COMMAND, "analyze", OWN]).ok().stdout.decode()
    assert "one moment" in text


def test_diff_of_two_profiles_is_what_came_between(tmp_path):
    program = tmp_path / "two.py"
    program.write_text(
        "import sys, jax, jax.numpy as jnp\n"
        "a = [jnp.zeros((1000 + i,)) for i in range(10)]\n"
        "open(sys.argv[1], 'wb').write(jax.profiler.device_memory_profile())\n"
        "def grow(): return [jnp.zeros((300, 7)) for i in range(5)]\n"
        "b = grow()\n"
        "open(sys.argv[2], 'wb').write(jax.profiler.device_memory_profile())\n")
    before, after = tmp_path / "before.pprof", tmp_path / "after.pprof"
    harness.execute([python(), program, before, after], env=environment(tmp_path), timeout=120).ok()
    done = harness.execute([harness.COMMAND, "diff", before, after, "--device", "jax:cpu:0", "--format", "json"]).ok()
    diff = json.loads(done.stdout)
    assert diff["end"]["delta_bytes"] == 5 * 300 * 7 * FLOAT
    grown = [row for row in diff["by_stack"] if row["delta_end_bytes"]]  # the first call's stack is deeper
    assert all(any("grow" in line for line in row["stack"]) for row in grown)
    assert sum(row["b_count"] - row["a_count"] for row in grown) == 5


@pytest.mark.parametrize("format", ["folded", "pprof", "speedscope"])
def test_what_is_live_can_be_exported_by_stack(tmp_path, format):
    out = tmp_path / "out"
    harness.execute([harness.COMMAND, "export", OWN, "--to", format, "-o", out]).ok()
    data = out.read_bytes()
    assert b"load_params" in (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def test_damage_is_one_line_with_the_byte_and_exit_code_2(tmp_path):
    data = gzip.decompress(OWN.read_bytes())
    for name, bad in {"cut.pprof": OWN.read_bytes()[:300], "plain.pprof": data[:200], "more.pprof": OWN.read_bytes() + b"x"}.items():
        (tmp_path / name).write_bytes(bad)
        done = harness.execute([harness.COMMAND, "analyze", tmp_path / name])
        assert done.rc == 2 and done.stdout == b"", done
        assert done.stderr.count(b"\n") == 1 and b"byte" in done.stderr, done
