"""The Perfetto trace, read through Perfetto's own protos."""

import collections
import pickle

import harness
import pytest
from programs_to_export import by_stack, export, nonzero, record_acme

pytest.importorskip("torch")
pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="scripts/setup tests installs it")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return record_acme(tmp_path_factory.mktemp("perfetto"), 1_000_000, 3_000_000, record=harness.record)


@pytest.fixture(scope="module")
def trace(recording):
    trace = pb.Trace()
    trace.ParseFromString(export(recording, "--to", "perfetto"))
    return trace


def tracks(trace):
    return {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}


def test_every_field_is_one_that_perfetto_knows(trace):
    """Parsed and written again by their code, nothing is left over as unknown."""
    from google.protobuf import unknown_fields

    assert len(trace.packet) > 10
    for packet in trace.packet:
        assert len(unknown_fields.UnknownFieldSet(packet)) == 0
        assert packet.trusted_packet_sequence_id == 1
    assert trace.packet[0].sequence_flags == pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED


def test_the_counter_is_the_live_bytes_after_every_event(trace, recording):
    events = [e for e in harness.events(recording) if e["device"] == "cpu"]
    live, level, wanted = {}, 0, []
    for event in events:
        if event["action"] == "alloc":
            live[event["address"]] = event["size_bytes"]
            level += event["size_bytes"]
        else:
            level -= live.pop(event["address"], 0)
        wanted.append((event["time_ns"], level))
    (counter,) = [t for t in tracks(trace).values() if t.name == "cpu live"]
    assert counter.counter.unit == pb.CounterDescriptor.UNIT_SIZE_BYTES
    found = [(p.timestamp, p.track_event.counter_value) for p in trace.packet
             if p.track_event.type == pb.TrackEvent.TYPE_COUNTER and p.track_event.track_uuid == counter.uuid]
    assert found == wanted


def test_tracks_have_the_process_and_hang_together(trace, recording):
    known = tracks(trace)
    (process,) = [t for t in known.values() if t.HasField("process")]
    assert process.process.pid == harness.analysis(recording)["processes"][0]["pid"]
    assert "acme_train.py" in process.process.process_name
    seen = set()
    for packet in trace.packet:  # a track is described before it is used
        if packet.HasField("track_descriptor"):
            seen.add(packet.track_descriptor.uuid)
            assert packet.track_descriptor.parent_uuid in seen | {0}
        elif packet.HasField("track_event"):
            assert packet.track_event.track_uuid in seen


def test_the_peak_is_an_instant_at_its_time(trace, recording):
    (peak,) = [p for p in trace.packet if p.track_event.name == "peak of cpu"]
    wanted = harness.analysis(recording)["devices"][0]["peak"]
    assert peak.timestamp == wanted["time_ns"]
    (annotation,) = peak.track_event.debug_annotations
    assert (annotation.name, annotation.uint_value) == ("live_bytes", wanted["allocated_bytes"])


def test_heap_profiles_have_the_stacks_of_the_peak_and_of_the_end(trace, recording):
    interned = collections.defaultdict(dict)
    dumps = {}
    for packet in trace.packet:
        data = packet.interned_data
        for kind in ("function_names", "source_paths", "mapping_paths", "mappings", "frames", "callstacks"):
            for item in getattr(data, kind):
                assert item.iid not in interned[kind] and item.iid != 0
                interned[kind][item.iid] = item
        for dump in packet.profile_packet.process_dumps:
            stacks = collections.Counter()
            for sample in dump.samples:
                frames = [interned["frames"][i] for i in interned["callstacks"][sample.callstack_id].frame_ids]
                assert all(f.mapping_id in interned["mappings"] for f in frames)
                assert all(f.function_name_id in interned["function_names"] for f in frames)
                stacks[tuple((interned["source_paths"][f.source_path_iid].str.decode(), f.line_number)
                             for f in reversed(frames))] += sample.self_allocated
            dumps[dump.heap_name] = stacks

    def places(counter):
        found = collections.Counter()
        for stack, size in nonzero(counter).items():
            found[tuple((m["file"], int(m["line"])) for m in map(harness.FRAME.match, stack))] += size
        return found

    _, peak, end, _ = by_stack([e for e in harness.events(recording) if e["device"] == "cpu"])
    assert nonzero(dumps["cpu at the peak"]) == places(peak)
    assert nonzero(dumps.get("cpu at the end", {})) == places(end)


def test_the_clocks_are_told(trace):
    clocks = {c.clock_id: c.timestamp for p in trace.packet for c in p.clock_snapshot.clocks}
    first = next(p.timestamp for p in trace.packet if p.timestamp)
    assert clocks[3] == clocks[4] == first
    assert abs(clocks[1] / 1e9 - __import__("time").time()) < 86400, "wall clock of a recording just made"


def profiles(path):
    trace = pb.Trace()
    trace.ParseFromString(export(path, "--to", "perfetto"))
    dumps = [dump for p in trace.packet for dump in p.profile_packet.process_dumps]
    return trace, [(dump.heap_name, sum(s.self_allocated for s in dump.samples)) for dump in dumps]


def test_a_file_of_one_moment_has_its_live_memory_and_an_empty_one_is_a_trace_still(tmp_path):
    block = {"size": 4096, "requested_size": 4000, "state": "active_allocated", "address": 1 << 20,
             "frames": [{"filename": "/me/a.py", "line": 3, "name": "f"}]}
    segment = {"address": 1 << 20, "total_size": 2 << 20, "allocated_size": 4096, "active_size": 4096, "stream": 0, "device": 0,
               "segment_type": "small", "blocks": [block, dict(block, state="inactive", address=(1 << 20) + 4096, size=(2 << 20) - 4096)]}
    moment, empty = tmp_path / "moment.pickle", tmp_path / "empty.pickle"
    moment.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [[]]}))
    empty.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    assert profiles(moment)[1] == [("cuda:0 at the peak", 4000), ("cuda:0 at the end", 4000)]
    trace, found = profiles(empty)
    assert not found and len(trace.packet) == 1
