"""`gpumemprof estimate --target cpu|mobile`: exported models, by arithmetic and by their runtimes."""

import json
import zipfile

import harness
import jsonschema
import pytest
from gpumemprof._children.exported.archive_check import check_archive
from gpumemprof._children.error import NoAnswer

MIB = 1 << 20
SCHEMA = json.loads((harness.ROOT / "docs" / "schemas" / "estimate-exported.schema.json").read_text())


def estimate(*options):
    return harness.execute([harness.COMMAND, "estimate", "--target", *options], timeout=120)


def answer(*options):
    found = json.loads(estimate(*options, "--format", "json").ok().stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found, {one["name"]: one for one in found["figures"]}


def refused(*options):
    done = estimate(*options)
    said = done.stderr.decode()
    assert done.rc == 2 and said.count("\n") == 1 and done.stdout == b"", repr(done)
    return said


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """x -> sigmoid -> tanh -> y of `batch` times 1 MiB, and an addition of a weight of 1 MiB before."""
    onnx = pytest.importorskip("onnx", reason="scripts/setup exported installs it")
    import numpy

    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"]),
        helper.make_node("Sigmoid", ["a"], ["b"]),
        helper.make_node("Tanh", ["b"], ["y"]),
    ]
    size = MIB // 4
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", number, ["batch", size])],
        [helper.make_tensor_value_info("y", number, ["batch", size])],
        [onnx.numpy_helper.from_array(numpy.ones(size, numpy.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = tmp_path_factory.mktemp("onnx") / "chain.onnx"
    onnx.save(model, path)
    return path


def test_an_onnx_model_is_measured_by_its_runtimes_own_arena(chain):
    pytest.importorskip("onnxruntime", reason="scripts/setup exported installs it")
    found, figures = answer("cpu", chain, "--batch", "8")
    assert found["kind"] == "onnx" and found["runtime"].startswith("ONNX Runtime ")
    assert found["inputs"] == [{"name": "x", "type": "float32", "shape": [8, MIB // 4]}]
    assert figures["weights"]["bytes"] == MIB and figures["weights"]["basis"] == "calculated"
    assert figures["inputs"]["bytes"] == 8 * MIB
    # At least one tensor of the chain and its successor are there at once, at most all three.
    assert figures["arena_peak"]["basis"] == "measured"
    assert 8 * MIB <= figures["arena_peak"]["bytes"] - figures["arena_loaded"]["bytes"] <= 3 * 8 * MIB + MIB
    assert figures["arena_reserved"]["bytes"] >= figures["arena_peak"]["bytes"]
    assert "MaxInUse" in figures["arena_peak"]["how"] and "VmHWM" in figures["resident_rise"]["how"]
    grown = answer("cpu", chain, "--dim", "batch=16")[1]["arena_peak"]["bytes"] - figures["arena_peak"]["bytes"]
    assert grown % (8 * MIB) == 0 and 8 * MIB <= grown <= 24 * MIB  # whole tensors, by the batch


def test_a_budget_is_held_against_what_is_needed(chain):
    pytest.importorskip("onnxruntime", reason="scripts/setup exported installs it")
    for capacity, verdict in (("1GiB", "fits"), ("12MiB", "does not fit")):
        found, _ = answer("mobile", chain, "--batch", "8", "--capacity", capacity)
        assert found["capacity"]["verdict"] == verdict
    text = estimate("mobile", chain, "--batch", "8").ok().stdout.decode()
    assert "calculated  weights" in text and "measured    arena: peak" in text
    assert "another one pack weights" in text  # a mobile processor is not this one


def test_what_is_open_or_wrong_is_said_in_one_line(chain, tmp_path):
    assert "--dim batch=N or --batch N" in refused("cpu", chain)
    assert "no input has this open dimension" in refused("cpu", chain, "--batch", "2", "--dim", "y=3")
    assert "number above 0" in refused("cpu", chain, "--dim", "batch=0")
    assert "No such file" in refused("cpu", tmp_path / "none.onnx")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(chain.read_bytes()[:-7])
    assert "byte" in refused("cpu", broken)
    assert ".onnx, .pte or .pt2" in refused("cpu", tmp_path / "model.bin")


def test_a_runtime_that_is_missing_is_named(chain, tmp_path, monkeypatch):
    shadow = tmp_path / "onnxruntime"
    shadow.mkdir()
    (shadow / "__init__.py").write_text("raise SystemExit('this must not be imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "libonnxruntime.so" in refused("cpu", chain, "--batch", "2")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A program of torch.export with an open batch: 64 numbers to 256 to 64."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.narrow = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

        def forward(self, x):
            return self.narrow(torch.relu(self.wide(x)))

    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(Net(), (torch.zeros(8, 64),), dynamic_shapes=({0: batch},))
    path = tmp_path_factory.mktemp("pt2") / "net.pt2"
    torch.export.save(program, path)
    return path


def test_a_torch_export_is_counted_by_the_probe(exported):
    found, figures = answer("cpu", exported, "--batch", "32")
    assert found["inputs"] == [{"name": "x", "type": "float32", "shape": [32, 64]}]
    assert figures["weights"]["bytes"] == 4 * (64 * 256 + 256 + 256 * 64 + 64)
    assert figures["run_peak"]["bytes"] == 2 * 32 * 256 * 4  # what the first layer makes, and relu's copy
    assert figures["run_peak"]["basis"] == "measured"
    assert found["need"]["low_bytes"] == sum(figures[name]["bytes"] for name in ("weights", "inputs", "run_peak"))


def rewritten(source, target, change):
    """The archive with its graph changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith("models/model.json"):
                data = change(data)
            new.writestr(entry, data)
    return target


def test_an_archive_that_would_run_code_is_refused(exported, tmp_path):
    hostile = {
        b'"torch.ops.aten.relu.default"': b'"torch.os.system"',
        b'"torch.ops.aten.linear.default"': b'"torch.ops.load_library"',
        b"Symbol('s77', positive=True, integer=True)": b"__import__('os').system('true')",
        b'"name": "x"': b'"name": "x=print(1)"',
    }
    check_archive(str(exported))
    for number, (old, new) in enumerate(hostile.items()):
        path = rewritten(exported, tmp_path / f"{number}.pt2", lambda data, o=old, n=new: data.replace(o, n))
        assert path.read_bytes() != exported.read_bytes()
        with pytest.raises(NoAnswer, match="could run code"):
            check_archive(str(path))
    pickled = tmp_path / "pickled.pt2"
    with zipfile.ZipFile(exported) as old, zipfile.ZipFile(pickled, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))
        new.writestr("net/data/constants/opaque_obj_0", b"cos\nsystem\n(S'true'\ntR.")
    assert "unpickling it could run" in refused("cpu", pickled, "--batch", "4")
    (tmp_path / "text.pt2").write_text("no archive")
    with pytest.raises(NoAnswer, match="not an archive of torch.export.save"):
        check_archive(str(tmp_path / "text.pt2"))


@pytest.mark.slow
def test_the_plan_of_an_executorch_program_is_exact(exported, tmp_path):
    pytest.importorskip("executorch", reason="scripts/setup exported installs it")
    done = harness.execute([harness.PYTHON, "-c", EXECUTORCH, tmp_path / "net.pte"], timeout=120).ok()
    planned = json.loads(done.stdout.splitlines()[-1])
    found, figures = answer("mobile", tmp_path / "net.pte", "--capacity", "64KiB")
    assert figures["planned"]["bytes"] == sum(planned) and figures["planned"]["basis"] == "calculated"
    assert figures["constants"]["bytes"] >= 4 * (64 * 256 + 256 + 256 * 64 + 64)
    assert found["capacity"]["verdict"] == "does not fit" and found["runtime"].startswith("ExecuTorch ")
    assert "--batch and --dim do not apply" in refused("cpu", tmp_path / "net.pte", "--batch", "2")


# The planned buffers as ExecuTorch's own reader has them.
EXECUTORCH = """
import json, sys, torch
from executorch.exir import to_edge
from executorch.exir._serialize._program import deserialize_pte_binary
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
made = to_edge(torch.export.export(net, (torch.zeros(8, 64),))).to_executorch().buffer
open(sys.argv[1], "wb").write(made)
read = deserialize_pte_binary(made)
print(json.dumps(getattr(read, "program", read).execution_plan[0].non_const_buffer_sizes))
"""
