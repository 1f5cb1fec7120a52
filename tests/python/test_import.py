"""What `import gpumemprof` costs and offers."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED = """
GPUMemoryProfiler MemorySnapshot ProfileResult profile_context profile_function MemoryVisualizer MemoryAnalyzer
GapFinding MemoryTracker OOMFlightRecorder OOMFlightRecorderConfig OOMExceptionClassification classify_oom_exception
TelemetryEventV2 DeviceMemoryCollector DeviceMemorySample build_device_memory_collector detect_torch_runtime_backend CPUMemoryProfiler
CPUMemoryTracker telemetry_event_from_record telemetry_event_to_dict validate_telemetry_record load_telemetry_events
resolve_distributed_identity get_gpu_info format_bytes convert_bytes get_system_info ProfiledModule profile_model
MemoryProfiler MemoryWatchdog profile_lines attach phase step
""".split()


def fresh(code):
    """What a new Python prints as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_importing_loads_no_module_but_the_standard_library():
    loaded = fresh(
        "import sys, json; before = set(sys.modules); import gpumemprof; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    foreign = [m for m in loaded if m.split(".")[0] not in sys.stdlib_module_names and m.split(".")[0] != "gpumemprof"]
    assert foreign == []
    assert [m for m in loaded if m.startswith("gpumemprof")] == ["gpumemprof"]


def test_a_source_tree_whose_native_module_was_not_built_says_in_one_line_what_to_do(tmp_path):
    package = tmp_path / "python" / "gpumemprof"
    not_built = shutil.ignore_patterns("_native*.so", "__pycache__")
    shutil.copytree(ROOT / "python" / "gpumemprof", package, ignore=not_built)
    (tmp_path / "Makefile").write_text("all:\n")
    code = (
        "import gpumemprof\n"
        "profiler = gpumemprof.GPUMemoryProfiler(device='cpu')\n"
        "print(profiler.profile_function(list).basis, profiler.profile_function(list).basis)\n"
        "gpumemprof.attach()\n"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "python")}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
    todo = f"gpumemprof._native is not built: run `make` in {tmp_path}"
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and done.stdout == "host host\n"
    assert lines[0] == f"gpumemprof:1: RuntimeWarning: figures are not exact: {todo}"
    assert lines[1].startswith("Traceback") and done.stderr.count("Traceback") == 1
    assert lines[-1] == f"ImportError: {todo}"


def test_the_profiler_of_the_cpu_needs_no_torch():
    loaded = fresh(
        "import sys, json, gpumemprof; p = gpumemprof.GPUMemoryProfiler(device='cpu'); p.profile_function(list); "
        "p.get_summary(); print(json.dumps([m for m in ('torch', 'numpy', 'psutil', 'pandas') if m in sys.modules]))"
    )
    assert loaded == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_names_are_there(name):
    import gpumemprof

    assert name in gpumemprof.__all__
    assert getattr(gpumemprof, name) is not None


def test_every_public_name_is_found_where_the_table_says():
    import gpumemprof

    for name in gpumemprof.__all__:
        assert getattr(gpumemprof, name) is not None, name
    assert set(gpumemprof.__all__) <= set(dir(gpumemprof))


def test_an_unknown_name_is_an_attribute_error():
    import gpumemprof

    with pytest.raises(AttributeError, match="module 'gpumemprof' has no attribute 'Nothing'"):
        gpumemprof.Nothing  # noqa: B018


def test_the_version_is_that_of_the_build():
    import gpumemprof

    lists = (ROOT / "CMakeLists.txt").read_text()
    assert f"project(gpumemprof VERSION {gpumemprof.__version__} " in lists


def test_submodules_are_reached_without_an_import_of_their_own():
    assert fresh("import json, gpumemprof; print(json.dumps(gpumemprof.utils.format_bytes(1536)))") == "1.50 KB"


def test_a_missing_torch_is_named_with_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    from gpumemprof._core.torch import require_torch

    with pytest.raises(ImportError, match=re.escape(
        f"PyTorch, for this feature, is required: install it for {sys.executable} with `pip install torch`"
    )):
        require_torch()


def test_the_package_is_typed():
    assert importlib.resources.files("gpumemprof").joinpath("py.typed").is_file()


def test_mypy_has_nothing_to_say_about_the_package():
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / "build" / "mypy"), "-p", "gpumemprof"],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
