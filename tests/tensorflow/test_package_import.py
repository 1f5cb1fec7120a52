"""What `import tfmemprof` costs and offers. TensorFlow need not be there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import harness
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED = """
TFMemoryProfiler TensorFlowProfiler ProfiledLayer profile_model MemoryTracker TrackingResult MemoryWatchdog
MemoryAnalyzer MemoryVisualizer profile_function profile_context tensor_tracker get_gpu_info get_system_info
format_bytes attach MemoryCallback TensorFlowMemoryTracker TensorFlowVisualizer TensorFlowAnalyzer
""".split()


def fresh(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_importing_loads_no_module_but_the_standard_library():
    loaded = fresh(
        "import sys, json; before = set(sys.modules); import tfmemprof; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    ours = [m for m in loaded if m.split(".")[0] not in sys.stdlib_module_names]
    assert ours == ["tfmemprof"]


def test_documented_names_are_in_the_table():
    import tfmemprof

    assert not set(DOCUMENTED) - set(tfmemprof.__all__)
    assert set(tfmemprof.__all__) <= set(dir(tfmemprof))


@pytest.mark.parametrize("name", sorted(set(DOCUMENTED) - {"MemoryCallback"}))
def test_names_are_found_without_tensorflow(name):
    code = f"import json, sys, tfmemprof; tfmemprof.{name}; print(json.dumps('tensorflow' in sys.modules))"
    assert fresh(code) is False


def test_a_missing_tensorflow_is_named_with_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    import tfmemprof

    for use in (tfmemprof.TFMemoryProfiler, lambda: tfmemprof.MemoryCallback):
        with pytest.raises(ImportError, match=r"is required: install it for \S+ with `pip install tensorflow`"):
            use()
    assert tfmemprof.get_gpu_info()["total_memory"] is None


def test_an_unknown_name_is_an_attribute_error():
    import tfmemprof

    with pytest.raises(AttributeError, match="module 'tfmemprof' has no attribute 'Nothing'"):
        tfmemprof.Nothing  # noqa: B018


def test_every_public_class_and_function_has_a_page():
    pages = "\n".join(path.read_text() for path in (ROOT / "docs" / "tensorflow").glob("*.md"))
    shown = {target.rsplit(".", 1)[-1] for target in re.findall(r"^::: (\S+)$", pages, re.MULTILINE)}
    import tfmemprof

    others = {"__version__", "MemoryCallback", *tfmemprof._OTHER_NAMES}
    assert not set(tfmemprof.__all__) - shown - others
    assert "tfmemprof.callback._Hooks" in pages


def test_the_module_becomes_the_command_under_its_second_name(tmp_path):
    (tmp_path / "gpumemprof").symlink_to(harness.COMMAND)
    program = f"import sys; sys.argv[0] = {str(tmp_path / 'tfmemprof')!r}; from tfmemprof.__main__ import main; main()"
    done = harness.execute([sys.executable, "-c", program, "--version"]).ok()
    assert done.stdout.startswith(b"tfmemprof ")


def test_without_the_command_the_module_says_so_in_one_line(tmp_path):
    program = (
        "import sys, sysconfig; sys.argv[0] = '/nowhere/tfmemprof'; sysconfig.get_path = lambda _: '/nowhere'; "
        "from tfmemprof.__main__ import main; main()"
    )
    env = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT / "python")}
    done = harness.execute([sys.executable, "-c", program], env=env)
    assert done.rc == 1 and done.stderr.decode().count("\n") == 1 and b"install gpumemprof again" in done.stderr


def test_mypy_has_nothing_to_say_about_the_package():
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / "build" / "mypy"), "-p", "tfmemprof"],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
