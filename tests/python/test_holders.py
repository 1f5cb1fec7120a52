"""Who holds tensors: named by the shortest way from a variable, without touching what is the program's."""

import gc
import json
import weakref

import harness
import jsonschema
import nested
import pytest

torch = pytest.importorskip("torch")

PROGRAM = """
import collections, functools, sys, types
import torch

torchmetrics = sys.modules["torchmetrics.metric"] = types.ModuleType("torchmetrics.metric")

class Metric(torch.nn.Module):
    pass

torchmetrics.Metric = Metric

class AUROC(Metric):
    def __init__(self):
        super().__init__()
        self.preds = []

class Box:
    __slots__ = ("inside",)
    def __getattr__(self, name):
        raise SystemExit("asked for " + name)
    def __eq__(self, other):
        raise SystemExit("compared")
    def __repr__(self):
        raise SystemExit("printed")
    __hash__ = None

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(101))
        self.seen = []
    def forward(self, x):
        self.seen.append(x * 2)
        return (x * self.weight).sum()

class History:
    kept = []

@functools.lru_cache(None)
def cached(n):
    return torch.ones(1000 + n)

def fail():
    scratch = torch.ones(2001)
    raise ValueError("no")

def main():
    net, losses, box, errors = Net(), [], Box(), []
    box.inside = torch.ones(3001)
    hooked, auroc = [], AUROC()
    other = torch.nn.Linear(7, 7)
    other.register_forward_hook(lambda m, a, out: hooked.append(out.detach()))
    for n in range(30):
        losses.append(net(torch.ones(101)))
        cached(n)
        auroc.preds.append(torch.ones(13))
        History.kept.append(torch.ones(11))
        other(torch.ones(7, 7))
        try:
            fail()
        except ValueError as error:
            errors.append(error)
    for _ in range(2000):
        torch.ones(1)
    return len(losses)

print(main())
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("holders")
    program = folder / "held.py"
    program.write_text(PROGRAM)
    plain = nested.execute([harness.PYTHON, program]).ok()
    done = nested.record(folder / "recording", [harness.PYTHON, program], ["--explain-leaks"], timeout=300).ok()
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    return done.folder


@pytest.fixture(scope="module")
def told(recording):
    (path,) = recording.glob("holders.*.json")
    assert path.stat().st_mode & 0o777 == 0o600
    return json.loads(path.read_text())


def holders(told):
    return {(one["owner"], one["name"]): one for look in told["looks"] for one in look["holders"]}


def test_the_file_follows_its_schema_and_stands_beside_its_recording(recording, told):
    schema = json.loads((harness.ROOT / "docs" / "schemas" / "holders.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(told)
    (recorded,) = harness.files(recording)
    assert f".{told['pid']}.{told['start_ticks']}." in recorded.name


@pytest.mark.parametrize(
    ("owner", "name"),
    [("variable", "losses"), ("module attribute", "Net.seen"), ("metric", "AUROC.preds"), ("cache", "cached"), ("exception", "errors"),
     ("hook", "hooked"), ("attribute", "Box.inside"), ("attribute", "History.kept")],
)  # fmt: skip
def test_a_holder_is_called_by_what_a_person_would_look_for(told, owner, name):
    assert (owner, name) in holders(told), sorted(holders(told))


def test_the_last_look_names_the_script_though_python_has_removed_its_name(told):
    paths = {one["path"] for one in told["looks"][-1]["holders"]}
    assert "History.kept, by History in <module> (held.py)" in paths, sorted(paths)


def test_a_holder_tells_what_it_holds(told):
    losses = holders(told)["variable", "losses"]
    assert losses["through"] == ["list"]
    assert losses["tensors"] == losses["with_graph"] == losses["scalars"] > 0
    assert {"SumBackward0", "MulBackward0"} <= set(losses["operations"])


def test_why_alive_names_the_variable_of_the_caller_and_keeps_nothing():
    import gpumemprof

    def inner():
        kept = [torch.ones(11) for _ in range(4)]
        kept[0].requires_grad_().sum().backward()
        found = gpumemprof.why_alive(kept[2])
        assert [one["name"] for one in found] == ["kept"]
        return [weakref.ref(one) for one in (*kept, kept[0].grad)]

    was = gc.isenabled()
    gc.disable()
    try:
        assert [one() for one in inner()] == [None] * 5
    finally:
        if was:
            gc.enable()


ASKING = """import json
import gpumemprof, torch

class Table:
    def __init__(self):
        self.store = {}

def main():
    table, losses = Table(), []
    for n in range(5):
        table.store[n] = torch.randn(100)
        losses.append(torch.ones(3))
        torch.ones(7).sum()
    return [gpumemprof.why_alive(line) for line in ("asking.py:11", "asking.py:12", "asking.py:13", "king.py:11")]

print(json.dumps(main()))
"""


def test_why_alive_of_a_temporary_names_the_call_itself():
    import gpumemprof

    (holder,) = gpumemprof.why_alive(torch.ones(109))
    assert (holder["path"], holder["owner"]) == ("nothing in Python but this call, or a graph or cycle that holds itself", "nothing")


def test_an_array_holds_the_tensor_whose_memory_it_shows():
    pytest.importorskip("numpy")
    import gpumemprof

    def inner():
        rows = [torch.zeros(64, 64).numpy()[0, :4] for _ in range(5)]
        return [one for one in gpumemprof.why_alive() if one["name"] == "rows"], len(rows)

    (holder,), count = inner()
    assert (holder["owner"], holder["through"], holder["tensors"], holder["storages"]) == ("variable", ["list"], count, count)


class Replay:
    def __init__(self):
        self.kept = [torch.zeros(3) for _ in range(5)]

    def names(self):
        import gpumemprof

        return next({one["name"] for one in gpumemprof.why_alive()} for _ in self.kept)


def test_the_hidden_iterator_of_a_comprehension_is_no_name():
    names = Replay().names()
    assert "Replay.kept" in names and ".0" not in names


class Study:
    def __init__(self):
        self.callbacks, self.by_name = [], {}


def test_of_functions_in_a_list_the_list_is_the_holder_unless_they_fill_one_of_their_own():
    import gpumemprof

    study = Study()

    def add():
        model = torch.nn.Linear(3, 3)
        study.callbacks.append(lambda: model)

    def add_filling():
        seen = [torch.zeros(3) for _ in range(5)]
        study.by_name["seen"] = lambda: seen

    add()
    add()
    add_filling()
    found = {(one["name"], one["owner"]): one["tensors"] for one in gpumemprof.why_alive()}
    assert found["Study.callbacks", "attribute"] == 4  # two models with a weight and a bias each
    assert found["seen", "closure"] == 5


class Queue(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("queue", torch.zeros(7))


def test_a_buffer_is_called_by_its_module_and_name():
    import gpumemprof

    net = torch.nn.Sequential(Queue())
    (holder,) = gpumemprof.why_alive(net[0].queue)
    assert (holder["name"], holder["owner"]) == ("Queue.queue", "variable")


def test_a_graph_keeps_its_leaves_with_their_gradients():
    import gpumemprof

    def inner():
        kept = []
        for _ in range(5):
            kept.append(torch.rand(7).requires_grad_().tanh())
            kept[-1].sum().backward()
        return gpumemprof.why_alive(kept[2])

    (holder,) = inner()
    assert (holder["name"], holder["tensors"], holder["leaves"]) == ("kept", 5, 10)  # 5 leaves, 5 gradients


def test_why_alive_of_a_line_is_who_holds_what_it_allocated(tmp_path):
    program = tmp_path / "asking.py"
    program.write_text(ASKING)
    done = nested.record(tmp_path / "recording", [harness.PYTHON, program], ["-q"], timeout=300).ok()
    first, second, freed, no_such_file = json.loads(done.stdout)
    assert [(one["name"], one["owner"], one["storages"]) for one in first] == [("Table.store", "attribute", 5)]
    assert [(one["name"], one["owner"], one["storages"]) for one in second] == [("losses", "variable", 5)]
    assert (freed, no_such_file) == ([], [])


def test_why_alive_of_a_line_needs_a_recording():
    import gpumemprof

    with pytest.raises(RuntimeError, match="nothing is recorded"):
        gpumemprof.why_alive("train.py:3")


def test_why_alive_wants_a_tensor_or_a_line():
    import gpumemprof

    with pytest.raises(TypeError, match="a tensor, a line such as"):
        gpumemprof.why_alive(3)
    for text in ("train.py", ":7", "train.py:x", ""):
        with pytest.raises(ValueError, match="a line of the program is expected, such as 'train.py:41'"):
            gpumemprof.why_alive(text)


# The second is what PyTorch 2.11 said on an H100: blocks of 8 and 4 MiB, of which the second was freed, taken again and freed.
@pytest.mark.parametrize(("told", "said"), [
    ({"allocated_bytes": {"current": 48}, "reserved_bytes": {"current": 64}}, (64, 48)),
    ({"allocated_bytes": {"current": 12582912}, "active_bytes": {"current": 16777217}}, (12582912, None)),
    ({"allocated_bytes": {"current": 65}, "reserved_bytes": {"current": 64}}, (64, None)),
    ({}, (None, None)),
    ({"allocated_bytes": 1}, (None, None)),
])
def test_the_cache_of_pinned_memory_is_read_as_each_release_counts_it(monkeypatch, told, said):
    look = pytest.importorskip("gpumemprof._recorded.holders.look")
    monkeypatch.setattr(torch._C, "_cuda_hostMemoryStats", lambda: told, raising=False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert look._pinned() == said
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert look._pinned() == (None, None)


IN_A_NOTEBOOK = """
import sys, torch
from gpumemprof import why_alive
def cell():
    outputs = [torch.ones(1000) for _ in range(4)]
    raise ValueError("a cell failed")
try:
    cell()
except ValueError as error:
    sys.last_value, sys.last_traceback = error, error.__traceback__  # as IPython keeps them
(held,) = (one for one in why_alive() if one["storages"] == 4)
assert held["owner"] == "exception", held
"""


def test_what_the_last_error_of_a_notebook_keeps_is_held_by_the_error():
    harness.execute([harness.PYTHON, "-c", IN_A_NOTEBOOK]).ok()


LIBRARY = """
def call(see):
    kept, closed = [1], [2]
    def inner():
        return closed
    return see()
def generate(see):
    kept = [3]
    yield see()
"""


def test_variables_of_a_librarys_function_are_told_as_such_where_they_end_with_its_call():
    from gpumemprof._recorded.holders.roots import Function, Roots, add_frames

    space = {}
    exec(compile(LIBRARY, "/x/site-packages/library.py", "exec"), space)

    def see():
        roots = Roots()
        add_frames(roots, own=False, at_end=False)
        every = [roots[at] for at in range(len(roots.names))]
        return {one.name: one.function for one in every if one.place.endswith("(library.py)")}

    function = Function("call", "/x/site-packages/library.py")
    # Another function may keep a cell, and a generator its variables while it does not run.
    assert space["call"](see) == {"see": function, "kept": function, "closed": None, "inner": function}
    assert next(space["generate"](see)) == {"see": None, "kept": None}
