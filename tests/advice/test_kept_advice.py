"""What a program keeps of calls and of objects that it makes now and then: the saving is that of the remedy."""

import pytest
from advice.test_graph_advice import recorded

LOOKS = ["-q", "--explain-leaks"]
EVALUATION = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2048))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(8):
    optimizer.zero_grad()
    net(torch.randn(128, 64)).square().mean().backward()
    optimizer.step()
@torch.no_grad()
def evaluate():
    store = []
    for _ in range(40):
        logits = net(torch.randn(128, 64))
        store.append(KEPT)
    return store
store = evaluate()
print(len(store))
"""


def evaluated(tmp_path, kept, name):
    return recorded(tmp_path, EVALUATION.replace("KEPT", kept), name, LOOKS)


def test_results_of_results_are_told_as_results(tmp_path):
    """As large as the logits; of them a mean would be enough."""
    advice, peak = evaluated(tmp_path, "logits.softmax(1)", "kept")
    _, without = evaluated(tmp_path, "logits.softmax(1).mean()", "mean")
    told = advice["results_kept"]
    assert f"{told['evidence']['blocks']} results of kept.py:15 are live together" in told["title"]
    assert 0.8 * (peak - without) < told["bytes"] <= peak - without


BRANCHES = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.rare, self.head = nn.Linear(64, 256), nn.Linear(256, 256), nn.Linear(256, 1024)
    def forward(self, x, is_rare):
        x = self.body(x).relu()
        return self.head(self.rare(x).relu() if is_rare else x)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(8):
    optimizer.zero_grad()
    net(torch.randn(64, 64), True).square().mean().backward()
    optimizer.step()
@torch.no_grad()
def evaluate():
    store = []
    for i in range(47):
        store.append(net(torch.randn(64, 64), i % 3 == 0))
    return store
print(len(evaluate()))
"""


def test_results_are_as_many_as_their_blocks_where_calls_differ(tmp_path):
    """16 of the 47 calls run a layer that the others leave out."""
    advice, _ = recorded(tmp_path, BRANCHES, "branches")
    told, each = advice["results_kept"], 64 * 1024 * 4
    assert told["evidence"] == {"kept_bytes": 47 * each, "blocks": 47}
    assert told["title"] == "47 results of branches.py:21 are live together: 11.8 MiB at the peak"


def test_labels_are_no_results_that_argmax_would_shorten(tmp_path):
    advice, _ = evaluated(tmp_path, "logits.argmax(1)", "labels")
    assert "results_kept" not in advice


def test_views_of_results_are_copied_first(tmp_path):
    """Of each batch 16 of 128 examples are kept, and are needed."""
    advice, peak = evaluated(tmp_path, "logits[:16]", "kept")
    _, without = evaluated(tmp_path, "logits[:16].clone()", "cloned")
    told = advice["results_kept"]
    assert told["fix"].startswith("Copy each view with clone() before it is kept; or keep ")
    assert told["evidence"]["shown_bytes"] * 8 == told["evidence"]["kept_bytes"]
    assert 0.8 * (peak - without) < told["bytes"] <= peak - without


TRIALS = """
import copy, torch
from torch import nn
kept = []
def trial(width):
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(model.parameters())
    best = None
    for step in range(8):
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 3:
            best = copy.deepcopy(model.state_dict())
    KEEPS
for i in range(12):
    trial((256, 384, 512)[i % 3])
"""


@pytest.mark.parametrize(("keeps", "kind"), [("kept.append((model, optimizer))", "models_kept"), ("kept.append(best)", "leak")])
def test_the_model_or_the_copy_that_is_in_use_is_no_saving(tmp_path, keeps, kind):
    advice, peak = recorded(tmp_path, TRIALS.replace("KEEPS", keeps), "kept", LOOKS)
    _, without = recorded(tmp_path, TRIALS.replace("KEEPS", "pass"), "without")
    assert 0.8 * (peak - without) < advice[kind]["bytes"] <= peak - without


GATHERED = """
import tempfile, torch
import torch.distributed as dist
from torch import nn
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2048))
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
@torch.no_grad()
def evaluate():
    kept = []
    for _ in range(24):
        logits = net(torch.randn(128, 64))
        kept.append(KEPT)
    of_ranks = [None] * dist.get_world_size()
    dist.all_gather_object(of_ranks, kept)
    whole = torch.cat([one.reshape(-1, one.shape[-1]) for part in of_ranks for one in part])
    return (whole / 2).log_softmax(1).max().item()
print(evaluate())
dist.destroy_process_group()
"""


def test_what_is_gathered_of_all_ranks_goes_with_the_results(tmp_path):
    """What came of all ranks, the whole that is joined of it, its half and what is computed of that have 24 MiB each, as the
    results have."""
    advice, peak = recorded(tmp_path, GATHERED.replace("KEPT", "logits"), "kept")
    _, without = recorded(tmp_path, GATHERED.replace("KEPT", "logits.logsumexp(1, True)"), "sums")
    told, each = advice["results_kept"], 24 * 128 * 2048 * 4
    assert told["evidence"]["of_all_ranks_bytes"] >= 4 * each
    assert "(kept.py:14, kept.py:15, kept.py:16)" in told["title"]
    assert 0.7 * (peak - without) < told["bytes"] <= peak - without


FEATURES = """
import torch
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 256, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(8):
    optimizer.zero_grad()
    net(torch.randn(8, 3, 16, 16)).square().mean().backward()
    optimizer.step()
features = []
hook = net[3].register_forward_hook(lambda module, inputs, output: features.append(output.detach()KEPT))
for _ in range(16):
    with torch.set_grad_enabled(GRAD):
        net(torch.randn(64, 3, 16, 16))
hook.remove()
joined = torch.cat(features)
with torch.no_grad():
    print(net(torch.randn(64, 3, 16, 16)).mean(), joined.mean())
"""


def test_features_that_a_hook_collects_are_results_and_no_graph_or_data(tmp_path):
    """16 of 64 x 16 x 16 x 16 numbers, 1 MiB each: autograd saved them, and their graphs are gone."""
    said = {}
    for name, kept, grad in (("graph", "", "True"), ("alone", "", "False"), ("mean", ".mean((2, 3))", "True")):
        said[name] = recorded(tmp_path, FEATURES.replace("KEPT", kept).replace("GRAD", grad), name, LOOKS)
    advice, peak = said["graph"]
    assert peak == said["alone"][1], "no_grad saves nothing"
    assert not {"graph_not_needed", "data_in_memory"} & advice.keys()
    told = advice["results_kept"]
    assert told["evidence"] == {"kept_bytes": 16 << 20, "blocks": 16, "joined_bytes": 16 << 20}
    assert 14 << 20 == told["bytes"] <= peak - said["mean"][1]


KEY_BANK = """
import torch
query, key = torch.nn.Linear(64, 128), torch.nn.Linear(64, 128)
optimizer = torch.optim.SGD(query.parameters(), 1e-3)
bank = []
for step in range(60):
    x = torch.randn(64, 64)
    asked = query(x)
    with torch.no_grad():
        made = key(x)
    KEEP
    keys = torch.cat(bank)
    loss = (asked @ keys.T).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_is_computed_from_all_that_leaks_goes_with_it(tmp_path):
    """The keys of the bank are joined, and multiplied: that is most of what the bank costs."""
    advice, peak = recorded(tmp_path, KEY_BANK.replace("KEEP", "bank.append(made)"), "bank", LOOKS)
    _, without = recorded(tmp_path, KEY_BANK.replace("KEEP", "bank = [made]"), "last", LOOKS)
    (told,) = (one for one in advice.values() if one["evidence"].get("kept_bytes"))
    assert told["bytes"] > 2 * 60 * 64 * 128 * 4
    assert abs(told["bytes"] - (peak - without)) <= 0.02 * peak
    assert "bank.py:12" in told["title"] and told["title"].endswith(" work on all of it")
