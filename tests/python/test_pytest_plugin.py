"""The pytest plugin, by pytest in a process of its own. Tests there allocate through PyTorch's allocator without PyTorch (light.py)."""

import json
import re
import xml.etree.ElementTree as ElementTree

import harness
import pytest

from gpumemprof._pytest import limits

SUITE = '''
import os
import signal
import warnings
import pytest
import light

kept = []


def forward(size):
    return light.allocate(size)


def leak(size):
    kept.append(light.allocate(size))


@pytest.fixture(scope="module")
def data():
    yield light.allocate(5_000_000)


@pytest.mark.limit_gpu_memory("2 MB")
def test_too_much(data):
    a = forward(1_900_000)
    b = light.allocate(410_000)


@pytest.mark.limit_gpu_memory("2 MB")
def test_exactly(data):
    light.release(forward(2_000_000))
    light.release(forward(2_000_000))


@pytest.mark.limit_gpu_leaks("1 MB")
def test_leaks():
    leak(1_000_001)


@pytest.mark.limit_gpu_leaks("1 MB")
def test_leaks_less():
    leak(1_000_000)
    light.release(forward(9_000_000))


@pytest.mark.limit_gpu_leaks(0, warmups=True)
def test_a_cache_is_warm():
    if not kept:
        leak(2_000_000)


@pytest.mark.limit_gpu_memory("1 MB")
@pytest.mark.parametrize("size", [900_000, 1_100_000], ids=["a::b", "[c]"])
def test_parameters(size):
    print("the size is", size)
    forward(size)


@pytest.mark.limit_gpu_memory("1 MB")
def test_killed():
    a = forward(700_000)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.limit_gpu_memory("1 MB")
def test_skipped():
    pytest.skip("not today")


@pytest.mark.xfail(reason="known", strict=True)
@pytest.mark.limit_gpu_memory("1 MB")
def test_expected_to_fail():
    forward(3_000_000)


@pytest.mark.limit_gpu_memory("1 XB")
def test_wrong_size():
    pass


@pytest.mark.limit_gpu_memory("1 MB", device="tpu:0")
def test_wrong_device():
    pass


@pytest.mark.limit_gpu_memory("1 MB", device="cuda")
def test_nothing_of_another_device():
    forward(3_000_000)


@pytest.mark.limit_gpu_memory("1 GB")
def test_fails():
    warnings.warn("careful")
    print("printed")
    assert 1 == 2


@pytest.mark.limit_gpu_memory("1 GB")
class TestClass:
    def test_method(self, tmp_path, capsys, request):
        assert request.node.name == "test_method" and tmp_path.is_dir()


@pytest.fixture(scope="class")
def breaks():
    yield
    raise ValueError("at the end of a fixture")


class TestUnmarked:
    def test_uses_it(self, breaks):
        assert os.environ["PYTEST_CURRENT_TEST"]
        assert "GPUMEMPROF_DIR" not in os.environ

    @pytest.mark.limit_gpu_memory("1 GB")
    def test_measured_between(self):
        assert "GPUMEMPROF_DIR" in os.environ


def test_after():
    pass
'''


class Ran:
    """pytest's end: `cases` by name, the words of its last line, and what it printed."""

    def __init__(self, done, junit):
        self.rc, self.text = done.rc, done.stdout.decode() + done.stderr.decode()
        suite = ElementTree.parse(junit).getroot().find("testsuite")
        self.cases = {case.get("name"): case for case in suite.findall("testcase")}

    def outcome(self, name):
        return [child.tag for child in self.cases[name] if child.tag in ("failure", "error", "skipped")]

    def message(self, name):
        return next(child.get("message") for child in self.cases[name] if child.tag in ("failure", "error", "skipped"))

    def properties(self, name):
        return {one.get("name"): int(one.get("value")) for one in self.cases[name].iter("property")}


@pytest.fixture(scope="module")
def run_pytest(light):
    def run(folder, *options, before=()):
        env = {k: v for k, v in light.env.items() if not k.startswith(("PYTEST_", "GPUMEMPROF_"))}
        env["PYTHONPATH"] = f"{harness.PROGRAMS}:{harness.ROOT / 'python'}"
        argv = [*before, harness.PYTHON, "-m", "pytest", "-p", "gpumemprof.pytest_plugin", "-p", "no:cacheprovider", "--junitxml=junit.xml", *options]
        return Ran(harness.execute(argv, cwd=folder, env=env, timeout=300), folder / "junit.xml")

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return folder


@pytest.fixture(scope="module")
def ran(run_pytest, folder):
    return run_pytest(folder, "-q")


def test_a_peak_above_its_limit_fails_with_number_lines_and_both_figures(ran):
    assert ran.rc == 1
    assert ran.message("test_too_much").splitlines() == [
        "peak 2.31 MB exceeds the limit 2 MB: 1.90 MB at test_suite.py:12 forward",
        "  410 KB at test_suite.py:27 test_too_much",
        "5.00 MB were live before the test's body, at most 7.31 MB during it",
    ]
    assert ran.properties("test_too_much") == {"peak_cpu_bytes": 2_310_000, "before_cpu_bytes": 5_000_000}


def test_what_fixtures_hold_is_not_part_of_a_peak(ran):
    assert ran.outcome("test_exactly") == [] and ran.properties("test_exactly")["peak_cpu_bytes"] == 2_000_000


def test_a_leak_is_what_a_line_leaves(ran):
    assert ran.message("test_leaks") == "leak 1,000,001 bytes exceeds the limit 1 MB: 1.00 MB at test_suite.py:16 leak"
    assert ran.outcome("test_leaks_less") == [] and ran.outcome("test_a_cache_is_warm") == []


def test_parameters_are_measured_one_by_one_and_their_output_is_shown(ran):
    assert ran.outcome("test_parameters[a::b]") == [] and ran.outcome("test_parameters[[c]]") == ["failure"]
    assert "the size is 1100000" in ran.text and "the size is 900000" not in ran.text


def test_a_test_that_is_killed_fails_alone_and_tells_its_peak(ran):
    assert ran.message("test_killed") == ("the test's process ended by SIGKILL before the test was over; "
                                          "its peak on cpu was 700 KB: 700 KB at test_suite.py:12 forward")  # fmt: skip
    assert ran.outcome("test_after") == []


def test_skip_and_xfail_are_what_they_are_elsewhere(ran):
    assert (ran.outcome("test_skipped"), ran.message("test_skipped")) == (["skipped"], "not today")
    assert (ran.outcome("test_expected_to_fail"), ran.message("test_expected_to_fail")) == (["skipped"], "known")


def test_a_wrong_marker_is_an_error_of_one_line(ran):
    assert ran.outcome("test_wrong_size") == ["error"]
    assert 'limit_gpu_memory: "1 XB" is not a size: write "2 GB", "500 MiB" or bytes\n' in ran.text
    assert "limit_gpu_memory: device='tpu:0' is no kind of device: write \"cpu\" or \"cuda\"\n" in ran.text
    for mistyped in ("tpu", "gpu0", "CPU"):  # nothing is ever allocated there: the limit would always be met
        with pytest.raises(limits.WrongMarker, match=f"device='{mistyped}' is no kind of device"):
            limits._limit("limit_gpu_memory", "1 MiB", device=mistyped)


def test_the_device_of_a_marker_is_the_one_that_is_limited(ran):
    assert ran.outcome("test_nothing_of_another_device") == []


def test_an_own_failure_shows_its_lines_output_and_warnings(ran):
    assert ran.message("test_fails") == "assert 1 == 2"
    assert "----- Captured stdout call -----" in ran.text and "UserWarning: careful" in ran.text


def test_fixtures_of_this_process_are_torn_down_between(ran):
    """A class whose fixture an earlier test set up here ends with a test that was measured elsewhere."""
    assert ran.outcome("test_method") == [] and ran.outcome("test_uses_it") == []
    assert ran.outcome("test_measured_between") == ["error"] and "at the end of a fixture" in ran.text


def test_all_is_counted_once(ran):
    assert re.search(r"\n5 failed, 9 passed, 1 skipped, 1 xfailed, 4 warnings, 3 errors in ", ran.text), ran.text[-300:]


def test_it_works_with_workers(run_pytest, folder):
    ran = run_pytest(folder, "-q", "-n2", "-k", "too_much or exactly or fails or after or TestClass")
    assert re.search(r"\n2 failed, 3 passed, 2 warnings in ", ran.text), ran.text
    assert ran.message("test_too_much").startswith("peak 2.31 MB exceeds the limit 2 MB: ")


def test_output_goes_through_where_it_is_not_captured(run_pytest, folder):
    ran = run_pytest(folder, "-q", "-s", "-k", "a::b")
    assert ran.rc == 0 and "the size is 900000" in ran.text


def test_recordings_are_kept_where_they_are_wanted(run_pytest, folder, tmp_path):
    run_pytest(folder, "-q", "-k", "exactly", "--gpumemprof-keep", tmp_path / "kept")
    report = harness.analysis(tmp_path / "kept" / "test_suite.py_test_exactly")
    assert report["devices"][0]["peak"]["requested_bytes"] == 2_000_000


def test_a_gate_compares_each_test(run_pytest, tmp_path):
    def suite(size):
        (tmp_path / "test_it.py").write_text("import light\n\nin_every_process = light.allocate(7)\ndef test_one():\n    a = light.allocate(%d)\n\n\ndef test_two():\n    light.allocate(100)\n" % size)

    def gate(*options):
        return run_pytest(tmp_path, "-q", "--gpumemprof-all", before=[harness.COMMAND, "gate", "--baseline", "memory.json", *options, "--"])

    suite(1_000_000)
    assert gate("--reason", "first").rc == 0
    kept = json.loads((tmp_path / "memory.json").read_text())
    assert kept["program"] == {}
    assert {name: test["cpu"]["peak_bytes"] for name, test in kept["tests"].items()} == {"test_it.py::test_one": 1_000_000, "test_it.py::test_two": 100}
    suite(1_020_000)
    ran = gate()
    assert ran.rc == 3 and "gpumemprof: test_it.py::test_one: peak 996 KiB on cpu exceeds the baseline 977 KiB by 20,000 bytes (+2.00 %, allowed 1%)\n" in ran.text
    assert "gpumemprof:     +20,000 bytes  test_it.py:5 test_one  a = light.allocate(1020000)\n" in ran.text


def test_without_a_marker_nothing_of_it_is_imported(run_pytest, tmp_path):
    (tmp_path / "test_plain.py").write_text(
        "import sys\n\ndef test_plain():\n    assert 'gpumemprof._pytest.parent' not in sys.modules\n"
        "    assert not {'torch', 'gpumemprof._native', 'gpumemprof._core'} & set(sys.modules)\n")  # fmt: skip
    assert run_pytest(tmp_path, "-q").rc == 0


def test_a_test_without_a_framework_is_told_in_one_line(run_pytest, tmp_path):
    (tmp_path / "test_plain.py").write_text('import pytest\n\n@pytest.mark.limit_gpu_memory("1 B")\ndef test_plain():\n    pass\n')
    ran = run_pytest(tmp_path, "-q")
    assert ran.rc == 0
    assert "PytestWarning: nothing was measured: the test loaded neither PyTorch nor TensorFlow nor JAX\n" in ran.text


def test_tensors_of_the_cpu_are_measured(run_pytest, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "test_torch.py").write_text(
        'import pytest, torch\n\n@pytest.mark.limit_gpu_memory("4 kB")\ndef test_tensors():\n'
        "    a = torch.empty(1000)\n    b = torch.empty(500)\n")  # fmt: skip
    ran = run_pytest(tmp_path, "-q")
    assert ran.properties("test_tensors") == {"peak_cpu_bytes": 6000, "before_cpu_bytes": 0}
    assert ran.message("test_tensors").startswith("peak 6.00 KB exceeds the limit 4 kB: 4.00 KB at test_torch.py:5 test_tensors\n")


@pytest.mark.parametrize("text, size_bytes", [
    ("24 MB", 24_000_000), ("24MiB", 24 << 20), ("1.5 GB", 1_500_000_000), ("2G", 2 << 30), ("512", 512), ("512 B", 512), ("0.5kb", 500),
])  # fmt: skip
def test_sizes_are_those_of_the_command(text, size_bytes):
    from gpumemprof._pytest.limits import size_of

    assert size_of(text)[0] == size_bytes


@pytest.mark.parametrize("text", ["", "MB", "1.5", "-1 MB", "1 XB", "1 M B", "1e3 MB", "1..5 MB", "inf"])
def test_what_is_no_size_is_refused(text):
    from gpumemprof._pytest.limits import size_of

    with pytest.raises(ValueError, match="is not a size"):
        size_of(text)
