"""The rooms of src/ include only what docs/architecture.md allows them; no module of Python imports itself by a detour."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

# What each room may include besides itself. The probe lives in other people's processes, so it takes only
# the two rooms that need no C++ library; everything else meets it in files alone.
ALLOWED = {
    "base": set(),
    "format": {"base"},
    "probe": {"base", "format"},
    "driver_proxy": {"probe"},  # declarations alone: it finds the probe's functions at run time
    "host_blocks": {"probe"},  # the same
    "trace": {"base"},
    "recording": {"base", "format", "trace"},
    "readers": {"base", "trace"},
    "telemetry": {"base"},
    "allocator": {"base", "trace"},
    "input": {"base", "trace", "recording", "readers"},
    "analysis": {"base", "trace", "recording", "readers", "telemetry", "allocator", "input"},
    "run": {"base", "recording", "devices"},
    "devices": {"base"},
    "live": {"base", "trace", "recording", "telemetry", "run", "devices"},
    "picture": {"base", "trace", "telemetry", "run", "devices", "live", "analysis"},
    "estimate": {"base", "trace", "allocator", "analysis"},
    "report": {"base", "trace", "recording", "readers", "telemetry", "allocator", "analysis", "estimate"},
    "page": {"base", "trace", "recording", "allocator", "input", "analysis", "report"},
    "lake": {"base", "trace", "analysis", "report", "page"},
    "serve": {"base", "devices", "picture", "live", "report", "page"},
    "top": {"base", "devices", "picture", "live", "report"},
    "cli": {"base", "trace", "recording", "readers", "telemetry", "allocator", "input", "analysis", "estimate", "run", "devices", "live", "picture", "report", "page", "serve", "top"},
}
# A test may use what it needs as a witness, as long as no cycle of rooms comes of it.
ALLOWED_IN_TESTS = {"recording": {"probe"}, "picture": {"recording"}, "live": {"format"}, "probe": {"recording", "trace"},
                    "analysis": {"format", "probe"}, "allocator": {"readers"}, "lake": {"format", "recording"}}

# Inside of the two large rooms: what a folder may include of its own room. "results" are the headers beside the folders,
# which say what all of them tell; "door" is what puts the folders together.
FOLDERS = {
    "analysis": {
        "statistics": set(),
        "categories": set(),
        "pass": {"categories"},
        "driver": {"statistics"},
        "host": {"statistics", "pass", "driver", "results"},
        "results": {"statistics", "categories", "pass", "driver"},
        "leaks": {"statistics", "categories", "pass", "results"},
        "replay": {"statistics", "categories", "pass", "results"},
        "series": {"statistics", "leaks", "replay", "results"},
        "oom_message": {"statistics", "results"},
        "advice": {"categories", "pass", "leaks", "results"},
        "compare": {"categories", "pass", "ranks", "replay", "results"},
        "ranks": {"driver", "statistics", "categories", "pass", "results"},
        "door": {"categories", "pass", "driver", "host", "results", "leaks", "replay", "ranks", "series", "oom_message"},
    },
    "report": {
        "results": set(),
        "render": {"results"},
        "describe": {"results", "render"},
        "json": {"results", "describe"},
        "export": {"results", "render", "describe"},
        "door": {"results", "render", "describe", "json"},
    },
}
DOORS = {"analyze.h", "gatherer.h"}  # the headers beside the folders that are no result

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# What runs inside other people's processes may use the C library only: the C++ headers named here are those
# that bring no run-time library with them.
HEADERS_IN_PROBE = {"atomic", "type_traits", "new", "utility", "cstddef", "cstdint"}
SYSTEM_INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.MULTILINE)


def sources():
    return sorted(p for p in SOURCE.rglob("*") if p.suffix in (".cc", ".h", ".inc"))


def room_of(path):
    return path.relative_to(SOURCE).parts[0]


def test_every_room_is_known():
    assert {p.name for p in SOURCE.iterdir() if p.is_dir()} == set(ALLOWED)


@pytest.mark.parametrize("rule", [ALLOWED, *FOLDERS.values()], ids=["src", *FOLDERS])
def test_the_rule_has_no_cycles(rule):
    done = set()
    while len(done) < len(rule):
        ready = {room for room, uses in rule.items() if room not in done and uses <= done}
        assert ready, f"a cycle among {set(rule) - done}"
        done |= ready


def folder_of(path):
    """Of a file in a room of folders: which one, else "results" or "door"."""
    folders = path.relative_to(SOURCE).parts[1:-1]
    if folders:
        return folders[0]
    header = path.with_suffix(".h")
    if path.suffix == ".cc" and header.name not in {"finding.h", "words.h", "user_code.h", "document.h"}:
        return "door"
    return "door" if header.name in DOORS else "results"


@pytest.mark.parametrize("room", FOLDERS)
def test_folders_of_a_room_point_up(room):
    rule = FOLDERS[room]
    assert {p.name for p in (SOURCE / room).iterdir() if p.is_dir()} == set(rule) - {"results", "door"}
    for path in sources():
        if room_of(path) != room or path.stem.endswith(("_test", "_for_tests")):
            continue
        folder = folder_of(path)
        for include in INCLUDE.findall(path.read_text()):
            if include.startswith(room + "/"):
                used = folder_of(SOURCE / include)
                assert used == folder or used in rule[folder], f'{path}: {folder} may not include "{include}"'


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_includes_point_up(path):
    room = room_of(path)
    allowed = ALLOWED[room] | {room}
    if path.stem.endswith("_test"):
        allowed |= ALLOWED_IN_TESTS.get(room, set())
    for include in INCLUDE.findall(path.read_text()):
        first = include.split("/")[0]
        if first == "gpumemprof":  # include/gpumemprof, the C API
            assert (ROOT / "include" / include).exists(), f"{path}: no {include}"
            continue
        if include == "functions.inc":  # made from functions.txt by the build
            continue
        assert first in ALLOWED, f'{path}: "{include}" is not relative to src/'
        assert first in allowed, f'{path}: {room} may not include "{include}"'
        assert (SOURCE / include).exists(), f"{path}: no {include}"


def test_fmt_is_compiled_in_one_file_of_base_which_every_room_links():
    """Else it links only beside a room whose objects happen to have the same code, as the wheel's linker found out."""
    rules = (ROOT / "CMakeLists.txt").read_text()
    with_code = [str(path.relative_to(SOURCE)) for path in sorted(SOURCE.rglob("*.[ch]*"))
                 if "FMT_HEADER_ONLY" in path.read_text()]  # fmt: skip
    assert with_code == ["base/fmt.cc"]
    assert re.findall(r"^.*fmt::.*$", rules, re.M) == [
        "target_include_directories(base SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)"
    ]


def test_what_is_said_and_how_it_looks_are_apart():
    report = SOURCE / "report"
    for path in [*report.glob("describe/*.cc"), *report.glob("describe/*.h")]:
        if not path.stem.endswith("_test"):
            assert not re.search(r'"report/render/', path.read_text()), path
    for name, besides in (("render/text", {"report/words.h"}), ("json/document_json", set())):
        includes = set(INCLUDE.findall((report / f"{name}.cc").read_text()))
        assert includes <= {f"report/{name}.h"} | besides, name


@pytest.mark.parametrize(
    "path",
    [p for p in sources() if room_of(p) in ("probe", "driver_proxy", "host_blocks", "format") and not p.stem.endswith("_test")],
    ids=lambda p: str(p.relative_to(SOURCE)),
)
def test_the_probe_uses_the_c_library_only(path):
    for header in SYSTEM_INCLUDE.findall(path.read_text()):
        if not header.endswith(".h"):
            assert header in HEADERS_IN_PROBE, f"{path}: <{header}>"


PYTHON = ROOT / "python"


def python_modules():
    """Name -> file of every module of ours."""
    files = [p for package in ("gpumemprof", "tfmemprof") for p in (PYTHON / package).rglob("*.py")]
    names = {p: p.relative_to(PYTHON).with_suffix("").parts for p in files}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): p for p, parts in names.items()}


def imports_of(name, path, modules):
    """Modules of ours that one imports, inside functions too; not for a checker of types alone, and not by the tables
    of `__init__`, which load what is asked for."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            wholes = [f"{base}.{alias.name}" for alias in node.names]
            # `from . import _native`: an extension module, and the package has no part in it.
            found.update(whole if whole in modules else base for whole in wholes if node.module or whole in modules)
    return found & modules.keys()


def circles(uses):
    """What is left of {name: names that it uses} without what is on no circle and leads to none."""
    left = dict(uses)
    while done := {name for name, used in left.items() if not used & left.keys()}:
        left = {name: used for name, used in left.items() if name not in done}
    while unused := left.keys() - set().union(*left.values()):
        left = {name: used for name, used in left.items() if name not in unused}
    return {name: sorted(used & left.keys()) for name, used in left.items()}


def test_no_module_of_python_imports_itself_by_a_detour():
    modules = python_modules()
    assert len(modules) > 100
    assert not circles({name: imports_of(name, path, modules) for name, path in modules.items()})


def test_no_room_of_python_needs_itself_by_a_detour():
    modules = python_modules()
    rooms = {}
    for name, path in modules.items():
        if name.startswith("gpumemprof._"):
            used = {use.split(".")[1] for use in imports_of(name, path, modules) if use.startswith("gpumemprof._")}
            rooms.setdefault(name.split(".")[1], set()).update(used - {name.split(".")[1]})
    assert len(rooms) == 10
    assert not circles(rooms)


def test_documented_modules_hold_names_alone():
    """What they name is in a room; only what needs PyTorch or is rarely wanted is imported when it is asked for."""
    modules = [p for p in (PYTHON / "gpumemprof").glob("*.py") if p.stem != "__init__"]
    assert len(modules) > 25
    for path in modules:
        for node in ast.parse(path.read_text()).body:
            named = isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom, ast.If))
            assert named or (isinstance(node, ast.FunctionDef) and node.name == "__getattr__"), f"{path}:{node.lineno}"


def test_gpumemprof_knows_nothing_of_tfmemprof():
    modules = python_modules()
    upward = {name: imports_of(name, path, modules) for name, path in modules.items() if name.split(".")[0] == "gpumemprof"}
    assert not {name: uses for name, uses in upward.items() if any(use.split(".")[0] == "tfmemprof" for use in uses)}
