"""JAX on the CPU, recorded: sizes, addresses and lines as the program knows them, and nothing else touched."""
import collections

import pytest

import harness
from jax_helpers import environment, python

PROGRAM = harness.PROGRAMS / "jax_known.py"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What the program said, all events, and those of JAX."""
    where = tmp_path_factory.mktemp("jax")
    done = harness.record(where / "recording", [python(), PROGRAM], env=environment(where), timeout=180)
    (said,) = done.ok().printed()
    events = harness.events(where / "recording")
    return said, events, harness.analysis(where / "recording")


def lines(event, program=PROGRAM):
    return [frame.line for frame in harness.frames(event) if getattr(frame, "file", None) == str(program)]


def test_every_array_is_there_once_with_its_size_its_address_and_its_line(recorded):
    said, events, _ = recorded
    found = [e for e in harness.allocs(events) if 13 in lines(e) and e["size_bytes"] >= 25_600]
    assert [e["size_bytes"] for e in found] == said["sizes"]
    assert [e["address"] for e in found] == said["addresses"]
    assert {tuple(lines(e)) for e in found} == {(13, 24)}
    assert {e["device"] for e in found} == {"jax:cpu"}


def test_sizes_are_those_that_were_asked_for(recorded):
    assert all(e["requested_bytes"] == e["size_bytes"] for e in harness.allocs(recorded[1]))


def test_the_arrays_that_were_dropped_are_the_ones_that_were_freed(recorded):
    said, events, _ = recorded
    ones = next(i for i, e in enumerate(events) if e["action"] == "alloc" and e["size_bytes"] == 512 * 512 * 4)
    freed = {e["address"] for e in events[:ones] if e["action"] == "free_completed"}
    assert [i for i, a in enumerate(said["addresses"]) if a in freed] == said["dropped"]


def test_no_free_is_of_a_block_that_was_not_seen(recorded):
    naive = harness.NaivePeak(recorded[1])
    assert naive.unmatched == naive.repeated == 0
    (device,) = recorded[2]["devices"]
    assert (device["device"], device["framework"], device["backend"]) == ("jax:cpu", "jax", "CPU")
    assert device["peak"]["requested_bytes"] == naive.peak_bytes
    assert device["peak"]["basis"] == "requested"


def test_a_jitted_function_takes_the_temporaries_that_its_compiler_planned_and_its_outputs(recorded):
    said, events, _ = recorded
    begin = max(i for i, e in enumerate(events) if e["action"] == "alloc" and 27 in lines(e))
    sizes = collections.Counter(e["size_bytes"] for e in harness.allocs(events[begin + 1:]))
    table = 2 * 8  # of the tuple that it returns: a pointer for each output
    assert sizes == collections.Counter([said["temp_bytes"], table, *said["outputs"]])


def test_the_programs_output_and_exit_code_are_the_same_with_and_without_us(tmp_path):
    program = tmp_path / "fails.py"
    program.write_text("import jax.numpy as jnp\nx = jnp.arange(1000)\nprint(int(x.sum()), flush=True)\n"
                       "print(jnp.zeros((3,)).tolist(), flush=True)\nraise SystemExit(7)\n")
    env = environment(tmp_path)
    plain = harness.execute([python(), program], env=env, timeout=120)
    ours = harness.record(tmp_path / "recording", [python(), program], env=env, timeout=120)
    assert (ours.rc, ours.stdout) == (plain.rc, plain.stdout) == (7, b"499500\n[0.0, 0.0, 0.0]\n")
    assert harness.without_summary(ours, plain).startswith("gpumemprof: ")


STEP = """
import jax, jax.numpy as jnp
SWITCH
@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(w)
w = jnp.ones((512, 1024))
for i in range(5):
    w = step(w, jax.random.normal(jax.random.key(i), (256, 512)))
w.block_until_ready()
"""


def test_what_jax_makes_on_its_own_threads_says_how_it_gets_stacks_and_it_does(tmp_path):
    words = 'jax.config.update("jax_cpu_enable_async_dispatch", False)'
    held = []
    for name, switch in (("own", ""), ("yours", words)):
        program = tmp_path / f"{name}.py"
        program.write_text(STEP.replace("SWITCH", switch))
        folder = harness.record(tmp_path / name, [python(), program], ["-q"], env=environment(tmp_path), timeout=120).ok().folder
        text = harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode()
        without = [line for line in text.splitlines()[:6] if "(no stack recorded)" in line]
        assert all(f"made on JAX's own threads, which run no Python; {words} runs operations whose inputs are ready" in line for line in without)
        report = harness.analysis(folder)
        assert (f"Next: {words} runs operations" in report["explanation"]) == (name == "own")
        holders = report["devices"][0]["holders_at_peak"]
        held.append(sum(one["bytes"] for one in holders if not one["stack"]) / sum(one["bytes"] for one in holders))
    assert held[0] > 0.5 and held[1] < 0.1, held


KEEPS = """
import jax, jax.numpy as jnp
kept = []
@jax.jit
def step(w, x):
    return w - 0.001 * (x.T @ (x @ w)), jnp.tanh(x @ w)
def train(w, x):
    for _ in range(30):
        w, hidden = step(w, x)
        kept.append(hidden)
    return w
train(jnp.ones((512, 512)), jnp.ones((1024, 512))).block_until_ready()
"""


def test_a_list_that_keeps_an_output_of_each_round_grows_by_its_size_though_jaxs_threads_have_no_stacks(tmp_path):
    program = tmp_path / "keeps.py"
    program.write_text(KEEPS)
    folder = harness.record(tmp_path / "keeps", [python(), program], ["-q"], env=environment(tmp_path), timeout=120).ok().folder
    (finding,) = [one for one in harness.analysis(folder)["findings"] if one["kind"] == "growth_in_loop"]
    hidden = 1024 * 512 * 4
    assert (finding["bytes"], finding["evidence"]["bytes_a_step"]) == (30 * hidden, hidden)
    assert finding["title"].startswith("blocks of 2.00 MiB without a stack keep 2.00 MiB more with every round of a loop")
    text = " ".join(harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode().split())
    assert "Next: mark the end of each step with gpumemprof.step(); jax.config.update(" in text


def test_posix_memalign_of_others_is_neither_recorded_nor_counted(tmp_path):
    program = tmp_path / "others.py"
    program.write_text(
        "import ctypes, jax.numpy as jnp\nx = jnp.zeros((1234,))\nc = ctypes.CDLL(None)\np = ctypes.c_void_p()\n"
        "for _ in range(100):\n"
        "    assert c.posix_memalign(ctypes.byref(p), 64, 98765) == 0\n    c.free(p)\n")
    harness.record(tmp_path / "recording", [python(), program], env=environment(tmp_path), timeout=120).ok()
    sizes = {e["size_bytes"] for e in harness.events(tmp_path / "recording")}
    assert 1234 * 4 in sizes and 98765 not in sizes


def test_attached_after_the_import_it_counts_what_comes_then(tmp_path):
    program = tmp_path / "attached.py"
    program.write_text(
        "import sys, jax.numpy as jnp\nold = jnp.zeros((5000,))\nimport ctypes\nprobe = ctypes.CDLL(sys.argv[1])\n"
        "probe.gpumemprof_attach_error.restype = ctypes.c_char_p\n"
        "assert probe.gpumemprof_attach(sys.argv[2].encode(), 0) == 1, probe.gpumemprof_attach_error()\n"
        "new = jnp.zeros((7777,))\nnew.block_until_ready()\ndel old, new\n")
    probe = harness.os.environ.get("GPUMEMPROF_PROBE", str(harness.ROOT / ".venv" / "lib" / "libgpumemprof_probe.so"))
    env = environment(tmp_path)
    harness.execute([python(), program, probe, tmp_path / "recording"], env=env, timeout=120).ok()
    events = harness.events(tmp_path / "recording")
    blocks = [e for e in events if e["size_bytes"] in (5000 * 4, 7777 * 4)]
    assert [(e["action"], e["size_bytes"]) for e in blocks] == [("alloc", 7777 * 4), ("free_completed", 7777 * 4)]


STEPS = 30
REPLACES = f"""
import jax, jax.numpy as jnp, gpumemprof
jax.config.update("jax_cpu_enable_async_dispatch", False)
@jax.jit
def step(weights, x):
    for w in weights * 6:
        x = jnp.tanh(x @ w)  # XLA makes and drops buffers of its own for each, after the outputs
    return [w * 0.999 for w in weights], x.argmax(-1)
weights, kept = [jnp.ones((256, 256)) for _ in range(24)], []
for i in range({STEPS}):
    x = jnp.full((128, 256), float(i))
    weights, prediction = step(weights, x)
    kept.append(prediction)
    gpumemprof.step()
"""


def test_weights_that_one_call_makes_beside_what_is_kept_are_not_kept(tmp_path):
    program = tmp_path / "replaces.py"
    program.write_text(REPLACES)
    folder = harness.record(tmp_path / "replaces", [python(), program], ["-q"], env=environment(tmp_path), timeout=120).ok().folder
    (leak,) = [one for one in harness.analysis(folder)["findings"] if one["kind"] == "leak"]
    prediction = 128 * 4
    assert leak["evidence"]["bytes_a_step"] == prediction
    assert leak["bytes"] == (STEPS - 1) * prediction, "no weights; the first call has another stack"
    text = " ".join(harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode().split())
    assert "Then stop the leak (14.5 KiB of it in this peak)" in text
