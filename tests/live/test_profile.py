"""/debug/pprof/gpu while real programs run: pprof's own tool and another reader, against analyze, to the byte."""

import collections
import contextlib
import gzip
import http.client
import os
import re
import shutil
import subprocess
import time

import harness
import pytest
from commands.programs_for_commands import LIVE_BYTES
from exports.pprof_reader import pprof_profile, pprof_stacks
from live_helpers import TOKEN, needs, serving

PATH = "/debug/pprof/gpu"

# A model that has trained for three steps, and a tensor that is none of its.
TRAINING = """
import sys, torch, gpumemprof
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(32, 64)).sum().backward()
    optimizer.step()
    gpumemprof.step()
kept = torch.empty(1_000_003, dtype=torch.uint8)
print("ready", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def training(folder, **environment):
    argv = harness.run_argv(folder, [harness.PYTHON, "-c", TRAINING], ["--quiet"])
    env = os.environ | environment
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield folder
        finally:
            process.communicate("\n", timeout=60)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("ranks")
    with training(folder / "a", RANK="0"), training(folder / "b", RANK="1"):
        yield [folder / "a", folder / "b"]


@pytest.fixture(scope="module")
def server():
    with serving() as started:
        yield started


def fetch(server, path=PATH, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path, headers=headers or {})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def profile_of(body):
    profile = pprof_profile()()
    profile.ParseFromString(gzip.decompress(body))
    return profile


def labelled(profile):
    """[(labels, count, bytes)] of the samples."""
    text = profile.string_table
    return [({text[one.key]: text[one.str] for one in sample.label}, *sample.value) for sample in profile.sample]


def pid_of(folder):
    return harness.analysis(folder)["processes"][0]["pid"]


def test_it_is_the_bytes_that_the_program_holds(server, standing):
    response, body = fetch(server)
    assert response.status == 200 and response.headers["Content-Type"] == "application/octet-stream"
    profile = profile_of(body)
    text = profile.string_table
    assert [(text[t.type], text[t.unit]) for t in profile.sample_type] == [("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert text[profile.default_sample_type] == "inuse_space"
    assert abs(profile.time_nanos / 1e9 - time.time()) < 600
    own = [(count, size) for labels, count, size in labelled(profile) if labels["pid"] == str(standing.pid)]
    assert sum(size for _, size in own) == LIVE_BYTES and sum(count for count, _ in own) == 4


def test_every_stack_is_that_of_the_recording(server, ranks):
    """The stacks that are live at the end, in the file as it is now, by another path through the core."""
    profile = profile_of(fetch(server)[1])
    for rank, folder in enumerate(ranks):
        exported = profile_of(harness.execute([harness.COMMAND, "export", folder, "--to", "pprof", "--no-seal"]).ok().stdout)
        text = profile.string_table
        own = type(profile)()
        own.CopyFrom(profile)
        del own.sample[:]
        for sample in profile.sample:
            if {(text[one.key], text[one.str]) for one in sample.label} >= {("rank", str(rank)), ("pid", str(pid_of(folder)))}:
                own.sample.append(sample)
        sums = collections.Counter()
        for sample in own.sample:  # several samples have one stack, with other categories
            (one,) = pprof_stacks(type(own)(string_table=own.string_table, location=own.location, function=own.function,
                                            sample=[sample]), 1).items()
            sums[one[0]] += one[1]
        assert sums == pprof_stacks(exported, 5)


def test_categories_are_those_of_analyze(server, ranks):
    samples = labelled(profile_of(fetch(server)[1]))
    for rank, folder in enumerate(ranks):
        found = collections.Counter()
        for labels, _, size in samples:
            if labels.get("rank") == str(rank) and labels["pid"] == str(pid_of(folder)):
                assert labels["device"] == "cpu" and "stream" not in labels
                found[labels["category"]] += size
        (device,) = harness.analysis(folder)["devices"]
        assert sum(found.values()) == device["end"]["allocated_bytes"]
        # 64 * 256 + 256 + 256 * 8 + 8 numbers of four bytes; Adam keeps two of each, and a step of four bytes for each tensor.
        parameters = (64 * 256 + 256 + 256 * 8 + 8) * 4
        assert found["parameter"] == parameters
        assert found["optimizer state"] == 2 * parameters + 4 * 4


def test_pprofs_own_tool_reads_it(server, ranks, tmp_path):
    go = needs("go")
    (tmp_path / "gpu.pb.gz").write_bytes(fetch(server)[1])
    env = os.environ | {"HOME": str(tmp_path), "PPROF_TMPDIR": str(tmp_path)}

    def pprof(*options):
        done = subprocess.run([go, "tool", "pprof", *options, tmp_path / "gpu.pb.gz"], capture_output=True, text=True, env=env,
                              timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    wanted = sum(harness.analysis(folder)["devices"][0]["end"]["allocated_bytes"] for folder in ranks)
    shown = pprof("-top", "-unit=B", "-tagfocus=rank=[01]", f"-tagfocus=pid=^({pid_of(ranks[0])}|{pid_of(ranks[1])})$")
    assert "Type: inuse_space" in shown
    one = harness.analysis(ranks[1])["devices"][0]["end"]["allocated_bytes"]
    shown = pprof("-top", "-unit=B", f"-tagfocus=pid=^{pid_of(ranks[1])}$")  # a bare number would be a quantity
    assert f"accounting for {one}B," in shown.replace("Showing nodes ", ""), shown
    tags = pprof("-tags", "-unit=B")
    assert re.search(r"category:", tags) and re.search(r"rank:", tags) and re.search(r"\bparameter\b", tags)
    raw = pprof("-raw")
    assert wanted <= sum(int(line.split(":")[0].split()[1]) for line in raw.splitlines() if re.match(r"\s+\d+\s+\d+:", line))


def test_it_is_taken_by_those_who_may_see(tmp_path):
    with serving(env=dict(os.environ, GPUMEMPROF_TOKEN=TOKEN)) as server:
        assert fetch(server)[0].status == 401
        response, body = fetch(server, headers={"Authorization": f"Bearer {TOKEN}"})
        assert response.status == 200
        profile_of(body)
    with serving() as server:
        assert fetch(server, headers={"Host": "rebound.example"})[0].status == 421
        assert server.get(PATH, method="HEAD")[1] == ""


def test_streams_are_told_where_the_allocator_was_followed(tmp_path):
    """A committed recording of a CUDA allocator, as if it still grew: which block is on which stream is in the snapshot that
    PyTorch wrote beside it."""
    fixtures = harness.ROOT / "tests" / "fixtures" / "recordings"
    shutil.copy(fixtures / "streams_2.13.gmp", tmp_path / "other.1.1.gmp")
    import pickle

    snapshot = pickle.loads((fixtures / "streams_2.13.pickle").read_bytes())
    wanted = collections.Counter()
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                wanted[str(segment["stream"])] += block["size"]
    with serving(tmp_path) as server:
        found = collections.Counter()
        for labels, _, size in labelled(profile_of(fetch(server)[1])):
            if labels["device"].startswith("cuda"):
                found[labels["stream"]] += size
    assert len(wanted) > 1 and found == wanted
