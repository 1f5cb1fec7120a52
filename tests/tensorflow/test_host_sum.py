"""On a CPU TensorFlow has two allocators: the answer is the peak of both together, which is neither one's nor their sum."""
import json

import pytest

import harness
from tensorflow_helpers import environment, needs_tensorflow, of_tensorflow, record

pytestmark = needs_tensorflow


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    return tmp_path_factory.mktemp("sum")


@pytest.fixture(scope="module")
def recorded(where):
    done = harness.record(where / "recording", [harness.PYTHON, harness.PROGRAMS / "tf_jitted.py"],
                          env=environment(), timeout=300).ok()
    return of_tensorflow(harness.events(where / "recording")), harness.analysis(where / "recording"), done


def running_sums(events):
    live, total = {}, 0
    for event in events:
        key = event["device"], event["address"]
        if event["action"] == "alloc":
            live[key] = event["size_bytes"]
            total += event["size_bytes"]
        else:
            total -= live.pop(key)
        yield total


def test_the_sum_of_both_has_its_own_peak_and_end(recorded):
    events, analysis, _ = recorded
    (both,) = analysis["sums"]
    assert both["parts"] == sorted({e["device"] for e in events}) and len(both["parts"]) == 2
    totals = list(running_sums(events))
    assert both["peak"]["allocated_bytes"] == max(totals)
    assert both["end"]["allocated_bytes"] == totals[-1]
    assert both["events"]["alloc"] == len(harness.allocs(events))
    assert sum(h["bytes"] for h in both["holders_at_peak"]) == max(totals)
    peaks = [d["peak"]["allocated_bytes"] for d in analysis["devices"] if d["device"] in both["parts"]]
    assert max(peaks) <= max(totals) <= sum(peaks)


def test_a_loaded_trace_has_the_peak_of_the_sum_beside_those_of_its_parts(where, recorded):
    import gpumemprof

    events, analysis, _ = recorded
    peak = gpumemprof.load(where / "recording").peak
    assert peak["tensorflow:cpu + mklcpu"]["allocated_bytes"] == max(running_sums(events))
    assert set(peak) == {d["device"] for d in analysis["devices"]} | {"tensorflow:cpu + mklcpu"}


def test_it_is_the_headline(recorded):
    _, _, done = recorded
    assert " on tensorflow:cpu + mklcpu, " in done.stderr.decode()


KEEPS = """
import gpumemprof, tensorflow as tf
kept = []
for _ in range(40):
    kept.append(tf.ones([256, 1024]))
    gpumemprof.step()
"""


def test_it_has_the_program_s_steps(tmp_path):
    program, recording = tmp_path / "keeps.py", tmp_path / "keeps"
    program.write_text(KEEPS)
    record(recording, [harness.PYTHON, program]).ok()
    (both,) = harness.analysis(recording)["sums"]
    assert both["peak"]["allocated_bytes"] >= 40 << 20
    told = harness.execute([harness.COMMAND, "diff", recording, "--steps", "5", "35", "--format", "json"]).ok()
    sides = json.loads(told.stdout)
    assert sides["a"]["device"] == both["device"] and sides["end"]["delta_bytes"] == 30 << 20


def test_a_refused_request_has_its_size_which_the_error_does_not_tell(tmp_path):
    program, recording = tmp_path / "refused.py", tmp_path / "refused"
    program.write_text("import tensorflow as tf\nkept = tf.ones([256, 1024]); used = kept * 2; del used; last = tf.ones([8])\n"
                       "tf.fill([1 << 38], 1.0)\n")
    done = harness.record(recording, [harness.PYTHON, program], env=environment(), timeout=300)
    assert done.rc == 1
    first = harness.execute([harness.COMMAND, "analyze", recording]).ok().stdout.decode().splitlines()[0]
    assert first.startswith("Out of memory: 1.00 TiB were refused at ")
    assert "/refused.py:3 <module>, with 1.00 MiB live on tensorflow:mklcpu. " in first and " free on the host" in first
    pytest.importorskip("duckdb", reason="DuckDB is not installed: scripts/setup tests")
    query = "SELECT confidence FROM findings WHERE kind = 'tensorflow_tf_function'"  # advice has none
    rows = harness.execute([harness.COMMAND, "sql", recording, query, "--format", "json"], env=environment()).ok()
    assert json.loads(rows.stdout) == [{"confidence": None}]
