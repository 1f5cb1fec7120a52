"""Modules, nodes, modes and saved tensors as the probe writes them, against what the program itself knows."""
import json
import os
from collections import Counter
from pathlib import Path

import pytest

import harness
import nested
from probe import exact
from probe.raw_records import Raw

PROGRAM = Path(__file__).parent / "attribution_programs.py"
BATCH = 40


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """recorded(NAME): what the program said, and what the probe wrote that nobody sealed."""
    shared = tmp_path_factory.mktemp("recording")

    def run(name, *, attach=False, **more):
        folder = tmp_path_factory.mktemp("apart") if more else shared
        preload = {"LD_PRELOAD": exact.library(), "GPUMEMPROF_DIR": str(folder)}
        late = {"ATTACH": exact.library(), "ATTACH_TO": str(folder)}
        env = {**os.environ, **(late if attach else preload), **more}
        before = harness.files(folder)
        execute = harness.execute if more else nested.execute
        done = execute([harness.PYTHON, PROGRAM, name], env=env, timeout=300).ok()
        (file,) = [path for path in harness.files(folder) if path not in before]
        return json.loads(done.stdout), Raw(file)

    return run


def named(event, place):
    """The name that a frame of the file `place` has in the stack; None where there is no such frame."""
    found = [frame.removeprefix(place + " ") for frame in event["stack"] if frame.startswith(place + " ")]
    assert len(found) <= 1, event
    return found[0] if found else None


def attributed(raw):
    """(bytes, module, node) of every allocation, in order."""
    return [(e["size_bytes"], named(e, "<torch module>"), named(e, "<torch backward>"))
            for e in raw.events if e["action"] == "alloc"]


@pytest.mark.parametrize("attach", [False, True], ids=["preloaded", "attached"])
def test_every_layer_has_what_it_allocates_in_forward_and_in_backward(recorded, attach):
    said, raw = recorded("chain", attach=attach)
    m = said["modules"]
    first, relu, second, tanh, last = m["0"], m["1"], m["2.0"], m["2.1"], m["3"]
    assert len({first, second, last}) == 3 and {name.split("@")[0] for name in (first, second, last)} == {"Linear"}
    wide, narrow = 4 * BATCH * 56, 4 * BATCH * 36
    expected = [
        (wide, first, None), (wide, relu, None), (narrow, second, None), (narrow, tanh, None), (narrow, last, None),
        (narrow, None, None),  # ones_like
        (narrow, last, "AddmmBackward0"), (4 * 36 * 36, last, "AddmmBackward0"), (4 * 36, last, "AddmmBackward0"),
        (narrow, tanh, "TanhBackward0"),
        (wide, second, "AddmmBackward0"), (4 * 56 * 36, second, "AddmmBackward0"), (4 * 36, second, "AddmmBackward0"),
        (wide, relu, "ReluBackward0"),
        (4 * 24 * 56, first, "AddmmBackward0"), (4 * 56, first, "AddmmBackward0"),
    ]  # the input needs no gradient
    assert [e for e in attributed(raw) if e[0] > 130] == expected
    saved = [mark for mark in raw.marks if mark["kind"] == "saved"]
    is_output = [mark["value"] & 1 for mark in saved]  # input, result of ReLU, weight, …, result of Tanh, …
    assert len(saved) == 7 and sum(is_output) == 2


def test_without_attribution_the_same_blocks_have_stacks_alone(recorded):
    said, raw = recorded("chain", GPUMEMPROF_NO_ATTRIBUTION="1")
    wide, narrow = 4 * BATCH * 56, 4 * BATCH * 36
    blocks = [e for e in raw.events if e["action"] == "alloc" and e["size_bytes"] > 130]
    assert [e["size_bytes"] for e in blocks[:6]] == [wide, wide, narrow, narrow, narrow, narrow] and len(blocks) == 16
    assert not [frame for e in raw.events for frame in e.get("stack", []) if frame.startswith("<")]
    assert all(len(e["stack"]) > 1 for e in blocks[:5]) and raw.marks == []


def test_gradients_that_are_switched_off_are_told(recorded):
    said, raw = recorded("modes")
    outputs = [e for e in raw.events if e["action"] == "alloc" and e["size_bytes"] == 4 * BATCH * 56]
    assert [named(e, "<torch mode>") for e in outputs] == [None, "no grad", "inference"]
    assert [named(e, "<torch module>") for e in outputs] == [said["modules"][""]] * 3


def test_a_module_inside_one_of_its_own_class_is_the_innermost(recorded):
    said, raw = recorded("recursion")
    m, size = said["modules"], 4 * BATCH * 20
    prefix = ["inner." * depth for depth in range(6)]
    forward = [name for p in prefix for name in (m[p.rstrip(".")], m[p + "linear"])]
    found = [e for e in attributed(raw) if e[0] == size]
    assert [name for _, name, node in found if node is None] == [*forward, None]  # and ones_like
    backward = Counter(name for _, name, node in found if node == "AddmmBackward0")
    # The outermost has an input that needs no gradient: no node for its product, no gradient of this size.
    assert backward == Counter(m[p + "linear"] for p in prefix[1:])
    assert Counter(name for _, name, node in found if node == "MulBackward0") == Counter(
        m[p.rstrip(".")] for p in prefix[1:])


def test_threads_that_use_the_same_numbers_never_mix_their_modules(recorded):
    said, raw = recorded("threads")
    own = [set(modules.values()) for modules in said["modules"]]
    by_stream = {}
    for event in raw.events:
        if event["action"] == "alloc" and (module := named(event, "<torch module>")):
            by_stream.setdefault(event["stream"], Counter())[module] += 1
    assert len(by_stream) == 3
    assert sorted(map(sorted, by_stream.values())) == sorted(map(sorted, [modules - {said["modules"][i][""]}
                                                                        for i, modules in enumerate(own)]))
    weights = Counter(named(e, "<torch module>") for e in raw.events
                      if e["size_bytes"] == 4 * 24 * 24 and named(e, "<torch backward>") == "AddmmBackward0")
    linear = {name for modules in own for name in modules if name.startswith("Linear@")}
    # While one thread looks up how nodes are laid out, what the others make is no node's; never is it another's.
    named_alike = {name: weights[name] for name in linear}
    assert weights.keys() <= linear | {None} and max(named_alike.values()) == 50
    assert sum(named_alike.values()) > 50 * len(linear) / 2


def test_backward_on_a_thread_without_frames_has_its_modules(recorded):
    said, raw = recorded("no_frames")
    m = said["modules"]
    streams = {e["stream"] for e in raw.events if named(e, "<torch backward>") == "AddmmBackward0"}
    assert len(streams) == 1
    others = [e for e in raw.events if e["stream"] in streams and e["action"] == "alloc"]
    assert not [e for e in others if any(".py:" in frame for frame in e["stack"])]
    found = {(e["size_bytes"], named(e, "<torch module>"), named(e, "<torch backward>")) for e in others}
    assert {e for e in found if e[2] in ("AddmmBackward0", "ReluBackward0")} == {
        (4 * BATCH * 36, m["2"], "AddmmBackward0"),  # the gradient of a sum, as a whole
        (4 * BATCH * 56, m["2"], "AddmmBackward0"),
        (4 * BATCH * 56, m["1"], "ReluBackward0"),
        (4 * 24 * 56, m["0"], "AddmmBackward0"),
    }


def test_what_checkpointing_computes_again_is_its_modules(recorded):
    said, raw = recorded("recomputed")
    m = said["modules"]
    wide = [(module, node) for size, module, node in attributed(raw) if size == 4 * BATCH * 56]
    forward = [(m["0"], None), (m["1"], None)]
    assert wide[:2] == forward
    assert [module for module, _ in wide[2:4]] == [m["0"], m["1"]]  # again, now while a node runs
    assert wide[4:] == [(m["2"], "AddmmBackward0"), (m["1"], "ReluBackward0")]


def test_backward_inside_of_a_module_is_the_forward_s_not_the_caller_s(recorded):
    said, raw = recorded("nested_backward")
    inner, outer = said["modules"]["inner"], said["modules"][""]
    found = attributed(raw)
    assert (4 * BATCH * 56, inner, None) in found
    # The slope, made with a graph of its own inside of the outer module's call.
    assert [e for e in found if e[0] == 4 * BATCH * 24 and e[2] == "AddmmBackward0"][0][1] == inner
    assert [e for e in found if e[2] == "PowBackward0"] and all(e[1] == outer for e in found if e[2] == "PowBackward0")
    # The node that made the slope was made in backward: it belongs to the module whose backward that was.
    weights = [e for e in found if e[0] == 4 * 24 * 56]
    assert weights and all(e[1] == inner for e in weights)


def test_the_storages_that_autograd_saves_are_those_that_its_nodes_keep(recorded):
    said, raw = recorded("saved")
    marks = [mark for mark in raw.marks if mark["kind"] == "saved"]
    assert sorted({mark["address"] for mark in marks}) == said["kept"]
    size_of = {int(address): size for address, size in said["older"].items()}
    size_of.update({e["address"]: e["size_bytes"] for e in raw.events if e["action"] == "alloc"})
    assert sorted(size_of[address] for address in said["kept"]) == said["hook_sizes"]


def test_nothing_is_marked_where_no_stacks_are_wanted(recorded):
    _, raw = recorded("chain", GPUMEMPROF_STACKS="none")
    assert raw.marks == [] and all(e["stack"] == [] for e in raw.events)


LEFT_ALONE = [harness.PYTHON, "-W", "error", PROGRAM, "left_alone"]


@pytest.fixture(scope="module")
def alone():
    return harness.execute(LEFT_ALONE, timeout=300).ok()


@pytest.mark.parametrize("options", [(), ("--stacks", "none")], ids=["python stacks", "no stacks"])
def test_a_program_computes_and_prints_the_same(tmp_path, alone, options):
    with_us = harness.record(tmp_path / "recording", LEFT_ALONE, options, timeout=300).ok()
    assert with_us.stdout == alone.stdout
    assert harness.normal_text(with_us.stderr).startswith(harness.normal_text(alone.stderr))
    assert all(is_dead for _, is_dead in json.loads(alone.stdout)["states"])
