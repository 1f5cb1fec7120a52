"""Programs with one known waste each: that waste is first. On clean ones nothing is advised.

The programs' names say nothing, and none of their names is used. Each has recordings of its own: itself and its
workers.
"""

import json
import os
from pathlib import Path

import harness
import nested
import pytest

pytest.importorskip("torch")

HERE = Path(__file__).parent
MIB = 1 << 20
# Program -> kind, and the least and most bytes that its saving can have, by the shapes in the program.
WASTES = {
    "wren": ("gradients_kept", 7 * MIB, 4 * (768 * 768 + 768) * 4),
    "robin": ("graph_not_needed", 2 * MIB, 6 * 2 * MIB),
    "finch": ("loss_kept", 58 * 256 * 1024, 60 * 400 * 1024),
    "heron": ("checkpointing", 3 * 2 * MIB, 6 * 3 * MIB),
    "crane": ("optimizer_temporaries", 2 * MIB, 6 * (512 * 512 + 512) * 4),
    "stork": ("prefetch", 2 * 768 * 1024, 24 * 768 * 1024),  # how many batches wait depends on the pipe
    "swift": ("data_in_memory", 20000 * 256 * 4, 20000 * 257 * 4),
    "plover": ("sparse_gradient", 12 * MIB, 100000 * 32 * 4),
    "gull": ("checkpoint_file_kept", 6 * (512 * 512 + 512) * 4, 6 * (512 * 512 + 512) * 4),
    "tern": ("inputs_kept", 58 * 256 * 1024, 60 * 256 * 1024),
    "ibis": ("gradients_unused", 5 * MIB, 8 * MIB),
    "pipit": ("graph_not_needed", 11 * MIB, 11 * MIB),  # 24 outputs of 512 KiB; two at a time stay
    "lark": ("graph_kept", 3 * MIB, 8 * MIB),
    "quail": ("results_kept", 22 * 128 * 1024 * 4, 22 * 128 * 1024 * 4),  # of 24, two at a time are needed
}
CLEAN = ("dove", "rook", "teal", "crow", "dunlin")
# What keeps a graph tells who holds it only where it was asked; from the events alone it is a graph that stays.
SAME = {"loss_kept": {"graph_kept", "loss_kept_with_graph", "activations_kept"}}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Program -> its files: its own, and those of the processes that it started."""
    folder = tmp_path_factory.mktemp("advice")
    env = dict(os.environ, OMP_NUM_THREADS="1")
    argv = {name: [harness.PYTHON, HERE / "programs" / f"{name}.py"] for name in (*WASTES, *CLEAN)}
    return {name: harness.files(nested.record(folder / name, argv[name], env=env).ok().folder) for name in argv}


def advice(files, *options):
    done = harness.execute([harness.COMMAND, "advise", *files, "--format", "json", *options]).ok()
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", WASTES)
def test_the_waste_is_first(recordings, name):
    kind, least, most = WASTES[name]
    report = advice(recordings[name])
    assert report["applies"]
    first = report["advice"][0]
    assert first["kind"] in SAME.get(kind, {kind})
    assert least <= first["bytes"] <= most
    assert first["basis"] == "simulated" and first["bytes"] <= first["peak_bytes"]
    assert first["evidence"] and first["title"] and first["fix"]
    assert any(f"{name}.py" in line for line in first["stack"])


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_advised_where_nothing_is_wasted(recordings, name):
    report = advice(recordings[name])
    # A choice that has a price, as an optimizer with less state, is no waste.
    assert report["applies"] and [one for one in report["advice"] if one["cost"] is None] == []


def test_a_judge_that_is_not_trained_keeps_what_the_gradient_of_its_input_needs(tmp_path):
    """Said is less than measured by the 4 MiB that its first layer saved for its weights: 2048 rows of 512."""
    program = HERE / "programs" / "avocet.py"
    peaks = []
    for arguments in ([], ["frozen"]):
        argv = [harness.PYTHON, program, *arguments]
        folder = nested.record(tmp_path / f"r{len(peaks)}", argv, env=dict(os.environ, OMP_NUM_THREADS="1")).ok().folder
        report = json.loads(harness.execute([harness.COMMAND, "analyze", folder, "--format", "json"]).ok().stdout)
        peaks.append(report["devices"][0]["peak"]["requested_bytes"])
        if not arguments:
            first = advice([folder])["advice"][0]
    assert first["kind"] == "gradients_unused" and "no_grad" not in first["fix"]
    assert abs(peaks[0] - peaks[1] - first["bytes"] - 4 * MIB) < 64 * 1024


def test_results_that_are_joined_are_there_twice(recordings):
    first = advice(recordings["quail"])["advice"][0]
    assert first["evidence"] == {"kept_bytes": 24 * 128 * 1024 * 4, "blocks": 24, "joined_bytes": 24 * 128 * 1024 * 4}
    assert "24 results of quail.py:12 are live together: 12.0 MiB at the peak" in first["title"]


def test_kept_batches_have_one_fix(recordings):
    argv = [harness.COMMAND, "analyze", *recordings["tern"], "--format", "json"]
    (leak,) = [one for one in json.loads(harness.execute(argv).ok().stdout)["findings"] if one["kind"] == "leak"]
    assert leak["fix"] == advice(recordings["tern"])["advice"][0]["fix"] == "cap how many batches are kept, or keep numbers or paths instead of them"


def test_text_says_what_and_how_it_is_known(recordings):
    text = harness.execute([harness.COMMAND, "advise", *recordings["gull"]]).ok().stdout.decode()
    assert text.startswith("1 suggestion\n  checkpoint_file_kept")
    assert "6.01 MiB of the 18.1 MiB peak, simulated on the recorded trace." in text
    assert "Del the dictionary as soon as it is copied into the model. If the optimizer is made after that, and nobody " in text
    assert "Not checked: mixed_precision" not in text, "no recording has what that needs: it is no news of this one"
