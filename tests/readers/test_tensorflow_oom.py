"""A program of TensorFlow's that ran out of memory: its log and its memory dump against one another and against
TensorFlow's own reader of dumps."""
import json
import re

import harness
import pytest
import with_tensorflow
from carried_page import CarriedPage

FIXTURES = harness.ROOT / "tests" / "fixtures" / "tensorflow"
SHARED = harness.ROOT.parent / "shared" / "tensorflow"
# Log, dump of the same moment, bytes asked for (tensor of float32), limit.
CASES = [
    (FIXTURES / "oom.log", FIXTURES / "oom.pb", 1536 * 1024 * 4, 64 << 20),
    (SHARED / "oom_cpu_bfc.log.txt", SHARED / "oom_bfc_memory_dump.pb", 3072 * 1024 * 4, 128 << 20),
]

DUMP = """
import json, sys
from tensorflow.core.protobuf import bfc_memory_map_pb2
dump = bfc_memory_map_pb2.MemoryDump.FromString(open(sys.argv[1], "rb").read())
chunks = [[c.address, c.size, c.requested_size, c.in_use] for c in dump.chunk]
bins = [[b.bin, b.total_bytes_in_bin, b.total_bytes_in_use, b.total_chunks_in_bin, b.total_chunks_in_use]
        for b in dump.bin_summary]
print(json.dumps({"allocator": dump.allocator_name, "chunks": chunks, "bins": bins,
                  "in_use": dump.stats.bytes_in_use, "peak": dump.stats.peak_bytes_in_use}))
"""


@pytest.fixture(params=CASES, ids=lambda case: case[0].parent.name)
def case(request):
    if not request.param[0].exists():
        pytest.skip("needs ../shared/tensorflow")
    return request.param


def explain(path, *options):
    done = harness.execute([harness.COMMAND, "explain-oom", path, "--format", "json", *options]).ok()
    return json.loads(done.stdout)["messages"]


def test_every_refusal_is_one_message_with_the_tensor_and_the_state(case):
    log, _, asked, limit = case
    (message,) = explain(log)
    assert message["framework"] == "tensorflow" and message["backend"] == "CPU" and message["is_failure"]
    assert message["figures"]["requested"]["least_bytes"] == message["figures"]["requested"]["most_bytes"] == asked
    assert message["allocator"] == "bfc_cpu_allocator_for_gpu"
    assert re.search(message["operation"], log.read_text()) and message["type"] == "float"
    assert message["figures"]["pool_limit"]["bytes"] == limit
    assert message["pool"]["complete"] and message["pool"]["regions_are_listed"]


def test_the_verdict_is_arithmetic_on_the_chunks_of_the_log(case):
    log, _, asked, limit = case
    text = log.read_text()
    free = [int(size) for size in re.findall(r"Free  at [0-9a-f]+ of size (\d+)", text)]
    taken = sum(int(size) for size in re.findall(r"Next region of size (\d+)", text))
    (message,) = explain(log)
    pool, verdict = message["pool"], message["verdict"]
    assert pool["bytes"] == taken
    assert (pool["free_bytes"], pool["free_chunks"], pool["largest_free_bytes"]) == (sum(free), len(free), max(free))
    # The limit is printed in MiB with two places, so it may be 0.005 MiB off.
    usable, margin = sum(free) + limit - taken, (1 << 20) // 200 + 1
    if usable >= asked:
        assert verdict["cause"] == "fragmentation" and max(free) < asked
        assert abs(verdict["usable_bytes"]["least_bytes"] - usable) <= margin
    else:
        assert verdict["cause"] == "want_of_memory"
        assert verdict["shortage_bytes"]["least_bytes"] <= asked - usable <= verdict["shortage_bytes"]["most_bytes"]


def test_one_of_the_cases_is_fragmentation_and_the_other_is_not(case):
    (message,) = explain(case[0])
    expected = {"tensorflow": "want_of_memory"} if case[0].parent == FIXTURES else {"tensorflow": "fragmentation"}
    assert message["verdict"]["cause"] == expected[message["framework"]]


def test_the_dump_of_the_moment_says_the_same_as_the_log(case):
    log, dump, _, _ = case
    (printed,), (dumped,) = explain(log), explain(dump)
    for key in ("bytes", "bytes_in_use", "chunks_in_use", "free_bytes", "free_chunks", "largest_free_bytes", "bins",
                "in_use_by_size"):
        assert printed["pool"][key] == dumped["pool"][key], key
    assert dumped["wording"] == "tensorflow memory dump" and dumped["verdict"]["cause"] == "cannot_tell"
    exact, rounded = dumped["pool"]["unasked_bytes"], printed["pool"]["unasked_bytes"]
    assert rounded["least_bytes"] <= exact["least_bytes"] == exact["most_bytes"] <= rounded["most_bytes"]


def test_a_dump_is_what_tensorflow_reads_in_it(case):
    truth = with_tensorflow.run(DUMP, None, case[1]).printed()[0]
    (message,) = explain(case[1])
    pool = message["pool"]
    assert message["allocator"] == truth["allocator"]
    assert pool["bytes"] == sum(size for _, size, _, _ in truth["chunks"])
    assert pool["bytes_in_use"] == truth["in_use"] == sum(size for _, size, _, used in truth["chunks"] if used)
    asked = sum(requested for _, _, requested, used in truth["chunks"] if used)
    assert pool["unasked_bytes"]["least_bytes"] == truth["in_use"] - asked
    bins = [[b["least_bytes"], b["bytes"], b["bytes_in_use"], b["chunks"], b["chunks_in_use"]] for b in pool["bins"]]
    assert bins == [[256 << index, *rest] for index, *rest in truth["bins"] if rest[2]]
    (device,) = harness.analysis(case[1])["devices"]
    assert device["end"]["allocated_bytes"] == device["peak"]["allocated_bytes"] == truth["in_use"]
    assert device["end"]["blocks"] == sum(used for *_, used in truth["chunks"])
    assert device["pool"] == pool and device["events"]["alloc"] == 0
    assert device["peak"]["event_index"] is None


def test_the_texts_of_every_report_have_the_pieces(case):
    text = harness.execute([harness.COMMAND, "analyze", case[1]]).ok().stdout.decode()
    assert "at the one moment that the file covers" in text and "one moment, not a history" in text
    html = harness.execute([harness.COMMAND, "analyze", case[1], "--format", "html"]).ok().stdout
    html = CarriedPage(html).text
    explained = harness.execute([harness.COMMAND, "explain-oom", case[0]]).ok().stdout.decode()
    for line in ("Chunks by bin", "In use, by size of chunk"):
        assert line in text and line in html and line in explained


def test_damaged_dumps_are_refused_with_the_byte(tmp_path):
    whole = (FIXTURES / "oom.pb").read_bytes()
    path = tmp_path / "cut.pb"
    path.write_bytes(whole[:500])
    for command in ("explain-oom", "analyze"):
        done = harness.execute([harness.COMMAND, command, path])
        assert done.rc == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1 and b"(at byte " in done.stderr


def test_the_json_follows_its_schema(case):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((harness.ROOT / "docs" / "schemas" / "oom-message.schema.json").read_text())
    for path in case[:2]:
        done = harness.execute([harness.COMMAND, "explain-oom", path, "--format", "json"]).ok()
        jsonschema.validate(json.loads(done.stdout), schema)
