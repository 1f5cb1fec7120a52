"""One question, one answer: every face says the same of every kind of input.

What a face says is compared with arithmetic on the program's sizes where the program is ours, with an independent model
of the file where it is PyTorch's, and with the other faces everywhere.
"""

import json
import pickle
import subprocess

import harness
import pytest
from carried_page import CarriedPage
from commands import snapshots
import told as faces

import gpumemprof

FIXTURES = harness.ROOT / "tests" / "fixtures"
PROBE = harness.ROOT / "tests" / "probe"
OURS = [f"{kind}-{marks}" for kind in ("cpu", "followed", "late") for marks in ("marks", "plain")]
GMP = sorted(p.name for p in (FIXTURES / "recordings").glob("*.gmp"))
PICKLES = sorted(f"{p.parent.name}/{p.name}" for f in ("allocator", "cache") for p in (FIXTURES / f).glob("*.pickle"))
FOREIGN = ["tensorflow/fills.xplane.pb", "tensorflow/oom.pb", "jax/memory_profile.pb.gz"]
ALL = OURS + GMP + PICKLES + FOREIGN


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch") / "torch"
    lib = folder / "lib"
    lib.mkdir(parents=True)
    (folder / "version.py").write_text("__version__ = '2.13.0+cu130'\ndebug = False\n")
    link = [f"-L{lib}", f"-Wl,-rpath,{lib}"]
    for source, target, options in (
            (PROBE / "fake_c10.cc", lib / "libc10.so", ["-fPIC", "-shared"]),
            (PROBE / "fake_c10_cuda.cc", lib / "libc10_cuda.so", ["-fPIC", "-shared", *link, "-lc10"]),
            (harness.ROOT / "tests" / "faces" / "steps.cc", folder / "steps", [*link, "-lc10_cuda", "-lc10"])):
        subprocess.run(["g++", "-O1", "-std=c++17", f"-I{harness.ROOT / 'include'}", source, "-o", target, *options],
                       check=True)
    return folder / "steps"


@pytest.fixture(scope="session")
def inputs(program, tmp_path_factory):
    """inputs(NAME): its path, and what `run` said of it where it was recorded here; made once."""
    known = {}

    def get(name):
        if name in GMP:
            return FIXTURES / "recordings" / name, None
        if name not in OURS:
            return FIXTURES / name, None
        if name not in known:
            folder = tmp_path_factory.mktemp("recorded") / name
            done = harness.record(folder, [program, *name.split("-")]).ok()
            known[name] = folder, done.stderr.decode()
        return known[name]

    return get


@pytest.fixture(scope="session")
def answers(inputs):
    """answers(NAME): what `analyze --format json` says; made once."""
    known = {}

    def get(name):
        if name not in known:
            known[name] = harness.analysis(inputs(name)[0])
        return known[name]

    return get


def main_device(analysis):
    """Highest accelerator, else highest: what the sentence is about."""
    def order(device):
        peak = device["peak"]
        height = peak["requested_bytes"] if peak["basis"] == "requested" else peak["allocated_bytes"]
        return device["device"] != "cpu", height
    devices = [d for d in [*analysis["sums"], *analysis["devices"]] if d["layer"] != "driver"]
    return max(devices, key=order, default=None)


def peak_of(device):
    peak = device["peak"]
    return faces.Peak(peak["requested_bytes" if peak["basis"] == "requested" else "allocated_bytes"],
                      peak["event_index"], peak["time_ns"])


def nonzero(sums):
    return {k: v for k, v in (sums or {}).items() if v}


@pytest.mark.parametrize("name", OURS)
def test_the_answer_is_arithmetic_on_the_programs_sizes(name, inputs, answers):
    kind, marks = name.split("-")
    (device,) = answers(name)["devices"]
    peak, roles, events = faces.Step(kind).peak()
    assert peak_of(device)[:2] == peak[:2]
    assert sum(device["events"].values()) == events
    assert device["peak"]["basis"] == ("allocated" if kind == "late" else "requested")
    if marks == "plain":
        assert set(nonzero(device["categories_at_peak"])) <= {"unknown"}
        return
    assert nonzero(device["categories_at_peak"]) == roles
    modules = {g["module"]: g["bytes"] for g in device["by_module_at_peak"]}
    assert modules == nonzero({"net": peak.bytes - roles.get("temporary", 0), None: roles.get("temporary", 0)})
    assert device["category_evidence_at_peak"] == {"marks_bytes": peak.bytes, "rules_bytes": 0, "none_bytes": 0}
    assert [m["step"] for m in answers(name)["moments"] if m["kind"] == "step_end"] == [0, 1, 2]


@pytest.mark.parametrize("name", PICKLES)
def test_the_answer_is_that_of_a_plain_model_of_the_file(name, inputs, answers):
    data = pickle.loads(inputs(name)[0].read_bytes())
    for device in answers(name)["devices"]:
        index = int(device["device"].partition(":")[2])
        assert peak_of(device)[:2] == tuple(snapshots.requested_peak(data, index))


@pytest.mark.parametrize("name", GMP)
def test_the_answer_is_that_of_the_allocators_own_history(name, inputs, answers):
    data = pickle.loads(inputs(name)[0].with_suffix(".pickle").read_bytes())
    assert peak_of(answers(name)["devices"][0])[:2] == tuple(snapshots.requested_peak(data, 0))


@pytest.mark.parametrize("name", ALL)
def test_text_and_page_tell_the_same_peak(name, inputs, answers):
    path, summary = inputs(name)
    device = main_device(answers(name))
    peak = peak_of(device)
    told = faces.sentence(faces.command("analyze", path).decode())
    size, tolerance = faces.told_bytes(told)
    assert abs(size - peak.bytes) <= tolerance
    # Where the time is known it is told, and else the event.
    if (seconds := faces.told_seconds(told)) is not None and faces.told_event(told) is None:
        assert abs(seconds[0] - device["peak"]["seconds_after_start"]) <= seconds[1]
    else:
        assert faces.told_event(told) == peak.event
    assert ("requested" in told) == (device["replay"] is not None)
    assert faces.sentence(CarriedPage(faces.command("analyze", path, "--format", "html")).text) == told
    if summary is not None:
        assert faces.sentence(summary) == told


@pytest.mark.parametrize("name", ALL)
def test_a_comparison_with_itself_has_the_same_peak_categories_and_modules(name, inputs, answers):
    path = inputs(name)[0]
    device = main_device(answers(name))
    diff = json.loads(faces.command("diff", path, path, "--format", "json"))
    for side in (diff["a"], diff["b"]):
        assert (side["peak_bytes"], side["peak_event_index"]) == peak_of(device)[:2]
        assert side["basis"] == device["peak"]["basis"]
    if device["categories_at_peak"] is None:
        return
    assert nonzero({r["category"]: r["a_bytes"] for r in diff["by_category"]}) == nonzero(device["categories_at_peak"])
    modules = {g["module"]: g["bytes"] for g in device["by_module_at_peak"] or () if g["module"]}
    assert {r["module"]: r["a_bytes"] for r in diff["by_module"] or () if r["module"] and r["a_bytes"]} == modules


@pytest.mark.parametrize("export", [faces.of_jsonl, faces.of_csv])
@pytest.mark.parametrize("name", OURS + GMP)
def test_exported_events_add_up_to_the_same_peak(name, export, inputs, answers):
    for device in answers(name)["devices"]:
        found = faces.added_up(export(inputs(name)[0]), device["peak"]["basis"] == "requested")[device["device"]]
        assert found == peak_of(device)


@pytest.mark.parametrize("name", OURS + GMP)
def test_an_exported_trace_has_the_same_peak(name, inputs, answers):
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="scripts/setup tests installs it")
    (device,) = answers(name)["devices"]
    peak = peak_of(device)._replace(event=None)
    counted, told = faces.of_perfetto(inputs(name)[0], pb)
    assert counted == told == {device["device"]: peak}


@pytest.mark.parametrize("name", ALL)
def test_exported_stacks_add_up_to_the_same_peak(name, inputs, answers):
    path = inputs(name)[0]
    device = main_device(answers(name))
    peak = peak_of(device)
    assert sum(faces.of_folded(path).values()) == peak.bytes
    told, weights = faces.of_speedscope(path)
    assert weights == peak.bytes
    assert told == faces.sentence(faces.command("analyze", path).decode())
    assert faces.sentence(CarriedPage(faces.command("export", path, "--to", "html")).text) == told
    if device["categories_at_peak"] is not None:
        by_category = faces.of_folded(path, "--by", "category")
        assert {k.replace("_", " "): v for k, v in by_category.items()} == nonzero(device["categories_at_peak"])


@pytest.mark.parametrize("name", ALL)
def test_the_package_says_what_the_command_says(name, inputs, answers):
    told, known = gpumemprof.load(inputs(name)[0]).analysis(), dict(answers(name))
    for analysis in (told, known):
        analysis.pop("advice", None)
    assert told == known


@pytest.mark.parametrize("name", OURS + GMP)
def test_other_names_change_no_figure(name, inputs, answers):
    anonymous = json.loads(faces.command("analyze", inputs(name)[0], "--format", "json", "--anonymize"))
    for hidden, shown in zip(anonymous["devices"], answers(name)["devices"], strict=True):
        for key in ("device", "events", "peak", "peak_allocated", "peak_reserved", "end", "categories_at_peak", "replay"):
            assert hidden[key] == shown[key], key


@pytest.mark.parametrize("kind", ["cpu", "followed", "late"])
def test_what_is_watched_ends_with_what_is_analyzed(kind, program, tmp_path):
    """`top` shows what the allocator has handed out: what it had at most and has now, and what that is."""
    folder = tmp_path / "r"
    argv = harness.run_argv(folder, [program, kind, "marks", "wait"], ["--quiet"])
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"done\n"
        said = json.loads(faces.command("top", "--once", "--format", "json", "--interval", "0"))
        process.communicate(b"\n", timeout=60)
    (watched,) = [r for r in said["recordings"] if r["folder"] == str(folder)]
    (live,), (device,) = watched["devices"], harness.analysis(folder)["devices"]
    parameters = 4100 if kind == "cpu" else 4096 + 512
    assert live["allocated_bytes"] == device["end"]["allocated_bytes"] == parameters
    assert live["peak_bytes"] == device["peak_allocated"]["allocated_bytes"]
    assert live["categories"] == [{"category": "parameter", "bytes": parameters, "count": 2}]


@pytest.mark.parametrize("name", OURS)
def test_advice_is_of_the_same_peak(name, inputs, answers):
    (device,) = answers(name)["devices"]
    advice = json.loads(faces.command("advise", inputs(name)[0], "--format", "json"))
    assert {a["peak_bytes"] for a in advice["advice"] if a["device"] == device["device"]} <= {peak_of(device).bytes}
