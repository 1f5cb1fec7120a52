"""Profiles of TensorFlow: sizes that were chosen, and every event against TensorFlow's own reader of the format."""
import json

import harness
import pytest
import with_tensorflow

FIXTURES = harness.ROOT / "tests" / "fixtures" / "tensorflow"
OWN = FIXTURES / "fills.xplane.pb"
FACTS = json.loads((FIXTURES / "facts.json").read_text())
SHARED = harness.ROOT.parent / "shared" / "tensorflow" / "train3_cpu_bfc.xplane.pb"
FILES = [OWN, *filter(lambda path: path.exists(), [SHARED])]
PEAKS = {OWN.name: "tensorflow:bfc_cpu_allocator_for_gpu", SHARED.name: "tensorflow:bfc_cpu_allocator_for_gpu"}

# Prints every memory event as [time in ps, is an allocation, {property: value}], in the file's order.
DUMP = """
import json, sys
from tensorflow.tsl.profiler.protobuf import xplane_pb2
space = xplane_pb2.XSpace.FromString(open(sys.argv[1], "rb").read())
rows = []
for plane in space.planes:
    names = {key: value.name for key, value in plane.stat_metadata.items()}
    for line in plane.lines:
        for event in line.events:
            kind = plane.event_metadata[event.metadata_id].name
            if kind not in ("MemoryAllocation", "MemoryDeallocation"):
                continue
            stats = {}
            for stat in event.stats:
                value = getattr(stat, stat.WhichOneof("value"))
                stats[names[stat.metadata_id]] = names[value] if stat.HasField("ref_value") else value
            rows.append([line.timestamp_ns * 1000 + event.offset_ps, kind == "MemoryAllocation", stats, line.name])
print(json.dumps(rows))
"""


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.name)
def pair(request):
    """The path, and its memory events as TensorFlow reads them, by time."""
    rows = json.loads(with_tensorflow.run(DUMP, None, request.param).stdout)
    return request.param, sorted(rows, key=lambda row: row[0])


def test_chosen_sizes_are_there_once_each_with_the_operation():
    by_operation = {}
    for event in harness.allocs(harness.events(OWN)):
        by_operation.setdefault(event.get("stack", ["none"])[0], []).append(event)
    for prime in FACTS["primes"]:
        (event,) = by_operation[f"<tensorflow> fill_{prime}"]
        assert event["requested_bytes"] == 4 * prime
        # The pool rounds up to 256 bytes; of a chunk that it does not split the request gets all.
        assert event["size_bytes"] % 256 == 0 and event["size_bytes"] >= event["requested_bytes"]
    assert [e["requested_bytes"] for e in by_operation["<tensorflow> Fill"]] == [300 * 301 * 4]
    assert [e["requested_bytes"] for e in by_operation["<tensorflow> MatMul"]] == [300 * 300 * 4]


def test_times_lie_where_the_clock_of_the_wall_was_read():
    times = [peak["time_us"] * 1000 for peak in (d["peak"] for d in harness.analysis(OWN)["devices"])]
    assert all(FACTS["before_ns"] <= time <= FACTS["after_ns"] for time in times) and times


# By TensorFlow's numbers, as tf.dtypes.as_dtype(number).name gives them.
TYPES = {0: "", 1: "float32", 3: "int32", 4: "uint8", 7: "string", 9: "int64", 10: "bool", 20: "resource", 21: "variant"}


def test_every_event_is_the_one_that_tensorflow_reads(pair):
    path, rows = pair
    exported = harness.events(path)
    assert len(exported) == len(rows) > 100
    for event, (time_ps, is_alloc, stats, _) in zip(exported, rows, strict=True):
        expected = {
            "time_ns": time_ps // 1000,
            "action": "alloc" if is_alloc else "free_completed",
            "address": stats["addr"],
            "size_bytes": stats["allocation_bytes"],
            "device": "tensorflow:" + stats["allocator_name"],
            "layer": "allocator",
        }
        if is_alloc and stats["requested_bytes"] != stats["allocation_bytes"]:
            expected["requested_bytes"] = stats["requested_bytes"]
        if "tf_op" in stats:
            expected["stack"] = ["<tensorflow> " + stats["tf_op"]]
            if "shape" in stats:
                expected["stack"].append("<tensorflow tensor> " + TYPES[stats["data_type"]] + stats["shape"])
            if is_alloc:
                expected["step"] = stats["id"]
        assert {k: v for k, v in event.items() if k not in ("thread", "process")} == expected


def test_what_was_asked_for_is_what_the_shape_needs(pair):
    """The profile's own second account: element sizes by TensorFlow's numbers of types."""
    element = {1: 4, 2: 8, 3: 4, 9: 8, 10: 1, 21: 64}  # float, double, int32, int64, bool, variant
    checked = 0
    for _, is_alloc, stats, _ in pair[1]:
        if not is_alloc or not stats.get("shape") or stats["data_type"] not in element:
            continue
        count = 1
        for size in filter(None, stats["shape"].strip("[]").split(",")):
            count *= int(size)
        assert stats["requested_bytes"] >= count * element[stats["data_type"]]
        checked += 1
    assert checked > 20


def test_peak_and_end_are_those_of_the_allocator_itself(pair):
    path, rows = pair
    (device,) = harness.analysis(path)["devices"]
    totals = [stats["bytes_allocated"] for _, _, stats, _ in rows]
    assert device["device"] == PEAKS[path.name]
    assert device["peak"]["allocated_bytes"] == max(totals)
    assert device["peak"]["event_index"] == totals.index(max(totals))
    assert device["end"]["allocated_bytes"] == totals[-1]
    assert device["total"]["unmatched_frees"] == device["total"]["repeated_allocs"] == 0
    assert sum(holder["bytes"] for holder in device["holders_at_peak"]) == max(totals)


def test_blocks_of_before_the_profile_are_told(pair):
    path, rows = pair
    _, is_alloc, first, _ = rows[0]
    held = first["bytes_allocated"] - first["allocation_bytes"] * (1 if is_alloc else -1)
    live, freed = set(), []
    for _, is_alloc, stats, _ in rows:
        if is_alloc:
            live.add(stats["addr"])
        elif stats["addr"] in live:
            live.remove(stats["addr"])
        else:
            freed.append(stats["allocation_bytes"])
    (reason,) = harness.analysis(path)["lost"]["reasons"]
    assert f"{len(freed)} blocks of it freed later" in reason["reason"]
    jump = harness.analysis(path)["devices"][0]["timeline"]
    assert jump["max_bytes"][0] >= held >= sum(freed) > 0


def test_layers_phases_and_steps_come_from_the_names():
    (device,) = harness.analysis(OWN)["devices"]
    work = {(w["phase"], w["mode"], w["module"]) for w in device["work_at_peak"] + device["work_at_end"]}
    assert ("gradient", "graph", "sequential_1/hidden_1") in work or ("optimizer", "graph", None) in work
    # No Python frame says whether "Fill" was called by Python or by a graph.
    fill = [h for h in device["holders_at_peak"] if h["operation"] == "Fill"]
    assert [h["mode"] for h in fill] == [None]


@pytest.mark.parametrize("to", ["csv", "perfetto", "pprof", "speedscope", "folded"])
def test_every_format_can_be_written(to):
    done = harness.execute([harness.COMMAND, "export", OWN, "--to", to]).ok()
    assert done.stdout
    if to == "folded":
        sums = [int(line.rsplit(b" ", 1)[1]) for line in done.stdout.splitlines()]
        (device,) = harness.analysis(OWN)["devices"]
        assert sum(sums) == device["peak"]["allocated_bytes"]


def test_two_profiles_are_compared():
    done = harness.execute([harness.COMMAND, "diff", OWN, OWN, "--format", "json"]).ok()
    assert all(row["delta_bytes"] == 0 for row in json.loads(done.stdout)["by_stack"])


def test_a_profile_is_read_alone_and_is_no_snapshot(tmp_path):
    done = harness.execute([harness.COMMAND, "analyze", OWN, OWN])
    assert done.rc == 2 and b"is a profile of TensorFlow, which cannot be combined with others" in done.stderr
    done = harness.execute([harness.COMMAND, "export", OWN, "--to", "snapshot"])
    assert done.rc == 2 and done.stderr.count(b"\n") == 1
    cut = tmp_path / "cut.xplane.pb"
    cut.write_bytes(OWN.read_bytes()[:20_000])
    done = harness.execute([harness.COMMAND, "analyze", cut])
    assert done.rc == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1 and b"(at byte " in done.stderr
