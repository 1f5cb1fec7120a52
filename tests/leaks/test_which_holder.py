"""Which object keeps what grows decides what is told: one cause is one leak, with a remedy that ends it."""

import json

import harness
import nested
import pytest
from advice.test_kept_advice import KEY_BANK

pytest.importorskip("torch")

CHAIN = """
import copy, torch, gpumemprof
class Member:
    def __init__(self, parent=None):
        self.model, self.parent = torch.nn.Linear(200, 100), PARENT
        self.optimizer = torch.optim.Adam(self.model.parameters())
    def train(self):
        for _ in range(4):
            self.optimizer.zero_grad()
            self.model(torch.randn(4, 200)).sum().backward()
            self.optimizer.step()
    def follow(self, best):
        new = Member(self)
        new.model.load_state_dict(best.model.state_dict())
        new.optimizer.load_state_dict(copy.deepcopy(best.optimizer.state_dict()))
        return new
members = [Member() for _ in range(3)]
for round in range(14):
    for member in members:
        member.train()
    members[round % 2] = members[round % 2].follow(members[2])
"""
STATES = """
import torch, gpumemprof
kept = {}
def train(round):
    model = torch.nn.Linear(200, 100)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(4, 200)).sum().backward()
        optimizer.step()
    kept[round] = optimizer.state_dict()
for round in range(20):
    train(round)
"""
BANK = """
import torch, gpumemprof
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.bank = torch.nn.Linear(64, 128), []
    def forward(self, x):
        made = self.layer(x)
        against = made @ torch.cat([*self.bank, made.detach()]).T
        self.bank.append(made.detach())
        return torch.cat([against, made], 1) / 0.2
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for step in range(60):
    logits = model(torch.randn(64, 64))
    loss = logits.logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NET = """
import torch, gpumemprof
layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.SGD(layers.parameters(), 1e-3)
for step in range(12):
    optimizer.zero_grad()
    layers(torch.randn(64, 64)).pow(2).mean().backward()
    optimizer.step()
def render():
    images = []
    for image in range(4):
        images.append(torch.cat([layers(torch.randn(64, 64)) for chunk in range(12)]).reshape(-1))
    return torch.stack(images)
with torch.set_grad_enabled(GRAD):
    kept = render()
print(kept.sum().item())
"""
STATE = """
import torch, gpumemprof
cell = torch.nn.GRUCell(64, 256)
state = torch.zeros(64, 256)
for step in range(48):
    state = cell(torch.randn(64, 64), state)
    BACKWARD
    gpumemprof.step()
"""
RESULTS = """
import torch, gpumemprof
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
results = []
for batch in range(40):
    results.append(model(torch.randn(32, 64)).softmax(-1))
scores = torch.cat(results)
"""
SPECULATIVE = """
import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    def forward(self, x, cache):
        q, k, v = self.qkv(x).chunk(3, -1)
        if cache[0] is not None:
            k = torch.cat([cache[0], k], 1); v = torch.cat([cache[1], v], 1)
        cache[0], cache[1] = k, v
        return self.out((q @ k.transpose(1, 2)).softmax(-1) @ v)
class Model(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.embed, self.head = nn.Embedding(64, width), nn.Linear(width, 64)
        self.layers = nn.ModuleList(Attention(width) for _ in range(depth))
    def forward(self, tokens, caches):
        x = self.embed(tokens)
        for layer, cache in zip(self.layers, caches):
            x = x + layer(x, cache)
        return self.head(x)
def cut(caches, length):
    for cache in caches:
        cache[0], cache[1] = cache[0][:, :length], cache[1][:, :length]
@torch.inference_mode()
def answer(target, draft, sessions, request):
    ids = torch.randint(0, 64, (4, 48))
    of_target, of_draft = ([[None, None] for _ in model.layers] for model in (target, draft))
    sessions[request] = of_target, of_draft
    target(ids[:, :-1], of_target), draft(ids[:, :-1], of_draft)
    length = 47
    for _ in range(16):
        token, guesses = ids[:, -1:], []
        for _ in range(4):
            token = draft(token, of_draft)[:, -1:].argmax(-1)
            guesses.append(token)
        given = torch.cat([ids[:, -1:], *guesses[:-1]], 1)
        checked = torch.cat([target(given[:, j : j + 1], of_target) for j in range(4)], 1).argmax(-1)
        ids = torch.cat([ids, checked[:, :2]], 1)
        length += 2
        cut(of_target, length), cut(of_draft, length)
    FORGET
target, draft, sessions = Model(128, 4).eval(), Model(64, 2).eval(), {}
for request in range(14):
    answer(target, draft, sessions, request)
"""
MEMBER_BYTES = 4 * (200 * 100 + 100)


def analysis_of(tmp_path, text, name="program"):
    program = tmp_path / f"{name}.py"
    program.write_text(text)
    done = nested.record(tmp_path / name, [harness.PYTHON, program], ["-q", "--explain-leaks"]).ok()
    return harness.analysis(done.folder)


def leaks_in(report):
    return [one for one in report["findings"] if one["kind"] == "leak"]


def categories_of(report):
    (device,) = report["devices"]
    return device["categories_at_peak"]


def peak_of(report):
    return max(one["peak"]["requested_bytes"] for one in report["devices"])


def test_a_chain_of_objects_is_one_leak_held_by_what_links_them(tmp_path):
    report = analysis_of(tmp_path, CHAIN.replace("PARENT", "parent"))
    (leak,) = leaks_in(report)
    assert leak["name"] == "chain_of_objects" and leak["severity"] != "info"
    assert leak["evidence"]["holder"] == "Member.parent, by members in <module> (program.py)"
    assert len(leak["lines"]) > 1
    without = analysis_of(tmp_path, CHAIN.replace("PARENT", "None"), "without")
    assert leaks_in(without) == []
    # An old member has weights, gradients and two states of Adam.
    assert peak_of(report) - peak_of(without) >= 11 * 4 * MEMBER_BYTES


def test_state_dicts_of_optimizers_that_are_gone_are_told_as_that(tmp_path):
    report = analysis_of(tmp_path, STATES)
    (leak,) = leaks_in(report)
    assert leak["name"] == "optimizer_recreated" and leak["evidence"]["holder_name"] == "kept"
    assert leak["fix"] == "keep the last state alone, or one a key that comes again, and save earlier ones to files"
    assert leak["bytes"] >= 20 * 2 * MEMBER_BYTES  # and a step count each
    # They were in an optimizer's state at the end of their last step.
    assert categories_of(report)["optimizer state"] >= 20 * 2 * MEMBER_BYTES


def test_what_is_computed_from_all_that_leaks_is_told_with_the_leak(tmp_path):
    (leak,) = leaks_in(analysis_of(tmp_path, BANK))
    assert leak["evidence"]["holder_name"] == "Model.bank" and leak["evidence"]["bytes_a_step"] == 64 * 128 * 4
    assert leak["evidence"]["grows_with_it"].endswith(", by 16.0 KiB a step")  # 64 x 64 more logits


def test_what_is_joined_from_all_that_leaks_has_no_graph_and_is_told_with_the_leak(tmp_path):
    (leak,) = leaks_in(analysis_of(tmp_path, "import gpumemprof" + KEY_BANK.replace("KEEP", "bank.append(made)")))
    evidence = leak["evidence"]
    assert (evidence["holder_name"], evidence["bytes_a_step"]) == ("bank", 64 * 128 * 4)
    assert "program.py:12, by 32.0 KiB a step" in evidence["grows_with_it"]  # all keys


def test_chunks_that_lie_side_by_side_are_no_state_and_no_grad_comes_first(tmp_path):
    report = analysis_of(tmp_path, NET.replace("GRAD", "True"))
    (leak,) = leaks_in(report)
    assert leak["name"] == "outputs_kept_with_graph"
    assert leak["fix"].startswith("run the loop under torch.no_grad()") and "state" not in leak["fix"]
    without = analysis_of(tmp_path, NET.replace("GRAD", "False"), "without")
    assert peak_of(without) < peak_of(report) - leak["bytes"] // 2


def test_what_is_made_of_all_results_at_the_end_does_not_hold_their_graphs(tmp_path):
    (leak,) = leaks_in(analysis_of(tmp_path, RESULTS))
    assert leak["name"] == "outputs_kept_with_graph" and leak["evidence"]["holder"] == "results in <module> (program.py)"
    assert leak["evidence"]["bytes_a_step"] == 4 * 32 * (64 + 256 + 8)  # input, hidden, softmax


@pytest.mark.parametrize(("backward", "fix"), [
    ("", "run the loop under torch.no_grad()"), ("state.mean().backward(retain_graph=True)", "detach the state"),
])  # fmt: skip
def test_a_state_of_steps_without_a_backward_pass_needs_no_graph(tmp_path, backward, fix):
    leaks = leaks_in(analysis_of(tmp_path, STATE.replace("BACKWARD", backward)))
    (leak,) = [one for one in leaks if one["name"] == "hidden_state_not_detached"]
    assert leak["fix"].startswith(fix) and "state.detach()" in leak["fix"]


def test_caches_that_one_line_makes_for_two_models_have_one_type_and_the_leak_is_theirs(tmp_path):
    report = analysis_of(tmp_path, SPECULATIVE.replace("FORGET", "pass"))
    (leak,) = leaks_in(report)
    assert leak["name"] == "kv_cache_growth" and leak["evidence"]["holder_name"] == "sessions"
    assert "cache of a request when it ends" in leak["fix"]
    # K and V of the 4 layers of 128 and the 2 of 64, of 4 sequences of 79 tokens, but for the request that is answered.
    a_request = 2 * (4 * 128 + 2 * 64) * 4 * 79 * 4
    assert categories_of(report)["KV cache"] >= 12 * a_request
    assert leaks_in(analysis_of(tmp_path, SPECULATIVE.replace("FORGET", "del sessions[request]"), "without")) == []


LIBRARY = """
import ctypes, torch, gpumemprof
def fit(steps):
    parts = []
    for _ in range(steps):
        part = torch.ones(1000)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(part))  # native code has it for good
        parts.append(part)
        gpumemprof.step()
"""
CALLER = """
import torch, gpumemprof, fitting
fitting.fit(200)  # looks after 64 and 128 events, and at the end
for _ in range(20):
    torch.ones(10)
    gpumemprof.step()
"""


def test_a_variable_of_a_librarys_call_that_is_over_holds_nothing(tmp_path):
    """The looks are in the call, and a later one finds no name: 4,000 bytes a step stay."""
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "fitting.py").write_text(LIBRARY)
    program = tmp_path / "program.py"
    program.write_text(f"import sys\nsys.path.append({str(library)!r})\n{CALLER}")
    folder = nested.record(tmp_path / "recording", [harness.PYTHON, program], ["--explain-leaks"]).ok().folder
    (path,) = folder.glob("holders.*.json")
    held = [one for look in json.loads(path.read_text())["looks"] for one in look["holders"] if one["name"] == "parts"]
    assert held and all(one["function"] == {"name": "fit", "file": str(library / "fitting.py")} for one in held)
    (leak,) = [one for one in harness.analysis(folder)["findings"] if one["kind"] == "leak"]
    assert leak["evidence"]["holder"].startswith("no name in Python")


STORE = """
import torch
class Handlers:
    def __init__(self):
        self.handlers = {"end": []}
class Store:
    def __init__(self):
        self.data = []
    def update(self, output):
        self.data.append(output)
"""
STORED = """
import torch, gpumemprof, storing
net = torch.nn.Linear(64, 256)
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
engine = storing.Handlers()
engine.handlers["end"].append(storing.Store().update)
for step in range(60):
    optimizer.zero_grad()
    output = net(torch.randn(64, 64))
    output.square().mean().backward()
    optimizer.step()
    engine.handlers["end"][0](output.detach())
"""


def test_an_object_of_a_library_that_keeps_outputs_is_named_with_its_attribute(tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "storing.py").write_text(STORE)
    (leak,) = leaks_in(analysis_of(tmp_path, f"import sys\nsys.path.append({str(library)!r})\n{STORED}"))
    assert leak["evidence"]["holder"] == "Store.data, by engine in <module> (program.py)"
    assert leak["evidence"]["bytes_a_step"] == 64 * 256 * 4
