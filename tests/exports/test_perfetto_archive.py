"""The archive of all processes: read by Python's own reader of TAR, its traces by Perfetto's own protos."""

import io
import json
import os
import tarfile

import harness
import pytest
from programs_to_export import record_acme

pytest.importorskip("torch")
pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="scripts/setup tests installs it")

PROGRAM = "import torch; kept = torch.empty({0}, dtype=torch.uint8)"


def record(folder, rank, size):
    env = os.environ | {"RANK": str(rank)}
    return harness.record(folder, [harness.PYTHON, "-c", PROGRAM.format(size)], env=env).ok().folder


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    return [record(folder / str(rank), rank, 1_000_003 * (rank + 1)) for rank in range(2)]


def archive(*argv):
    done = harness.execute([harness.COMMAND, "export", *argv, "--to", "perfetto-tar"])
    return done, tarfile.open(fileobj=io.BytesIO(done.stdout)) if done.stdout else None


def traces(tar):
    found = {}
    for member in tar.getmembers():
        if member.name.endswith(".pftrace"):
            found[member.name] = pb.Trace()
            found[member.name].ParseFromString(tar.extractfile(member).read())
    return found


def test_every_rank_is_a_trace_with_its_peak(ranks):
    done, tar = archive(*ranks)
    done.ok()
    found = traces(tar)
    assert [name.split(".")[0] for name in found] == ["rank-0", "rank-1"]
    for rank, trace in enumerate(found.values()):
        (peak,) = [p for p in trace.packet if p.track_event.name == "peak of cpu"]
        assert peak.track_event.debug_annotations[0].uint_value == harness.analysis(ranks[rank])["devices"][0]["peak"]["allocated_bytes"]


def test_the_manifest_says_whose_they_are(ranks):
    _, tar = archive(*ranks)
    text = tar.extractfile("perfetto_manifest.json").read().decode()
    assert "".join(text.split()).startswith('{"perfetto_manifest"'), "by which it is recognized"
    said = json.loads(text)["perfetto_manifest"]
    host = harness.analysis(ranks[0])["processes"][0]["host"]
    assert said["version"] == 1 and said["attributes"]["gpumemprof.processes"] == 2
    assert [file["path"] for file in said["files"]] == [name for name in tar.getnames() if name.endswith(".pftrace")]
    assert {file["machine"]["name"] for file in said["files"]} == {host}
    # One boot of one machine: its monotonic clock is that of both, and every trace tells its own in it.
    assert said["trace_time"] == {"clock": "MONOTONIC", "file": said["files"][0]["path"]}
    for trace in traces(tar).values():
        assert {clock.clock_id for packet in trace.packet for clock in packet.clock_snapshot.clocks} >= {1, 3}


def test_the_same_as_one_trace_of_one_process(ranks):
    _, tar = archive(ranks[0])
    (trace,) = traces(tar).values()
    alone = pb.Trace()
    alone.ParseFromString(harness.execute([harness.COMMAND, "export", ranks[0], "--to", "perfetto"]).ok().stdout)
    assert trace == alone


def test_what_cannot_be_read_is_named_and_left_out(ranks, tmp_path):
    (tmp_path / "torn.gmp").write_bytes(b"no recording")
    done, tar = archive(ranks[0], tmp_path / "torn.gmp", ranks[1])
    assert done.rc == 1 and done.stderr.count(b"\n") == 1 and b"torn.gmp" in done.stderr
    assert len(traces(tar)) == 2
    done, tar = archive(tmp_path / "torn.gmp", "-o", tmp_path / "out.tar")
    assert done.rc == 2 and not (tmp_path / "out.tar").exists()


def test_names_are_replaced_in_it_as_well(tmp_path):
    recording = record_acme(tmp_path, 1_000, 2_000)
    done, tar = archive(recording, "--anonymize")
    done.ok()
    assert b"acme" not in done.stdout
    host = harness.analysis(recording)["processes"][0]["host"]
    assert host.encode() not in done.stdout and not any(host in name for name in tar.getnames())
