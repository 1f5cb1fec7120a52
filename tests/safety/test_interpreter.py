"""All that a program can see of its interpreter and process is what it sees without a recorder, but for a list that users
read: docs/guide/what-is-exact.md."""

import json
import re

import pytest

import harness

PROGRAM = harness.PROGRAMS / "interpreter.py"
PAGE = harness.ROOT / "docs" / "guide" / "what-is-exact.md"


def listed():
    """The first column of the page's table of what is different."""
    table = PAGE.read_text().partition("| where |")[2].partition("\n\n")[0]
    return {re.sub(r"[`()]", "", line.split("|")[1]).strip() for line in table.splitlines()[2:]}


@pytest.fixture(scope="module", params=["installed", "elsewhere"])
def seen(request, tmp_path_factory):
    """Where the package is of the program's environment, and where it is of the command's alone."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("interpreter")
    options, env = harness.without_package() if request.param == "elsewhere" else ([], None)
    argv = [harness.PYTHON, *options, "-W", "error", PROGRAM]
    (without,) = harness.execute(argv, env=env).ok().printed()
    # Without the looks, which a program gets that lasts ten seconds, as this one does on a busy machine.
    with_us = harness.record(folder / "r", argv, ["-q", "--no-explain-leaks"], env=env).ok()
    assert with_us.stderr == b""
    return without, with_us.printed()[0]


def more(seen, name):
    without, with_us = seen[0][name], seen[1][name]
    assert [one for one in without if one not in with_us] == []
    return [one for one in with_us if one not in without]


def test_what_differs_is_on_the_list_and_all_of_the_list_differs(seen, request):
    without, with_us = seen
    assert without.keys() == with_us.keys()
    differ = {name for name in without if with_us[name] != without[name]}
    assert differ | {"multiprocessing"} == listed() and (request.node.callspec.params["seen"] == "elsewhere") == ("multiprocessing" in differ)


def test_the_hooks_of_uncaught_errors_are_pythons_own(seen):
    for name in ("sys.excepthook", "threading.excepthook", "sys.unraisablehook"):
        assert seen[1][name][0] is True and seen[1][name] == seen[0][name]


def test_what_is_different_is_no_more_than_the_list_says(seen):
    assert all(name.startswith("_gpumemprof_recorded") for name in more(seen, "sys.modules"))
    assert len(more(seen, "sys.modules")) <= 10
    assert len(more(seen, "sys.meta_path")) == 1 and seen[1]["sys.meta_path"][1:] == seen[0]["sys.meta_path"]
    assert len(more(seen, "sys.path_importer_cache")) == 1
    assert all(re.search(r"/(libgpumemprof_probe|_marks\.[^/]*)\.so$", name) for name in more(seen, "/proc/self/maps"))
    names = {name for name, value in seen[1]["os.environ"] if [name, value] not in seen[0]["os.environ"]}
    assert all(name in ("LD_PRELOAD", "_") or name.startswith("GPUMEMPROF_") for name in names)
    assert seen[0]["hooks of optimizers"] == {"_global_optimizer_pre_hooks": 0, "_global_optimizer_post_hooks": 0}
    assert seen[1]["hooks of optimizers"] == {"_global_optimizer_pre_hooks": 0, "_global_optimizer_post_hooks": 1}
    assert seen[1]["parent process"] == "gpumemprof"
    assert 0 < seen[1]["gc.get_objects"] - seen[0]["gc.get_objects"] < 1000


PROFILED = """
import gc, sys
import torch
with torch.profiler.profile(with_stack=True) as profile:
    kept = torch.empty(1000)
    for _ in range(10): len("a")
    gc.collect()
    strings = [f"{number:012d}" for number in range(100_000)]  # as long as the name of our code: they take what it leaves
profile.export_chrome_trace(sys.argv[1])
"""


def test_a_profiler_reads_the_names_of_our_code_after_it_ran(tmp_path):
    """torch.profiler keeps pointers to the names of each code object that it saw, and reads them when it writes its trace."""
    pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(PROFILED)
    harness.record(tmp_path / "r", [harness.PYTHON, tmp_path / "program.py", tmp_path / "trace.json"], ["-q"]).ok()
    names = {event.get("name", "") for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert "<gpumemprof>(3): is_importing" in names
