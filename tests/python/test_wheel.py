"""The wheel, in a fresh environment: everything that a user gets from `pip install`."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(argv, **options):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=1800, check=False, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def shell_files():
    """The pages of the manual and what shells complete, below share/."""
    for tool in ("gpumemprof", "tfmemprof"):
        yield from (f"man/man1/{tool}.1", f"bash-completion/completions/{tool}", f"zsh/site-functions/_{tool}",
                    f"fish/vendor_completions.d/{tool}.fish")  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the working tree. Its objects are kept in build-wheel, so that a second build takes seconds; as deep as
    build, so that the compiler's cache knows them from there."""
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("wheel")
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUMEMPROF_")}
    if shutil.which("ccache"):
        env |= {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_NOHASHDIR": "1", "CCACHE_BASEDIR": str(ROOT), "CXX": "c++"}
    run([sys.executable, "-m", "pip", "wheel", ROOT, "--no-build-isolation", "--no-deps", "-q", "-w", folder,
         "--config-settings", f"build-dir={ROOT / 'build-wheel'}"], env=env, cwd=folder)  # fmt: skip
    (path,) = folder.glob("gpumemprof-*.whl")
    return path


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """The bin folder of a new virtual environment with nothing but the wheel in it."""
    folder = tmp_path_factory.mktemp("fresh") / "with space"
    run([sys.executable, "-m", "venv", folder])
    run([folder / "bin" / "python", "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel])
    return folder / "bin"


@pytest.fixture
def clean_env(tmp_path):
    """Nothing of this working tree: no PYTHONPATH, no GPUMEMPROF_*."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}


def test_the_wheel_holds_package_command_and_probe(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    version = wheel.name.split("-")[1]
    assert "gpumemprof/py.typed" in names and "gpumemprof/_native.pyi" in names
    for module in ("_native", "_marks"):
        assert sum(name.startswith(f"gpumemprof/{module}.") and name.endswith(".so") for name in names) == 1
    assert f"gpumemprof-{version}.data/scripts/gpumemprof" in names
    for library in ("probe", "cuda"):
        assert f"gpumemprof-{version}.data/data/lib/gpumemprof/libgpumemprof_{library}.so" in names
    assert {"tfmemprof/py.typed", "tfmemprof/__main__.py", "tfmemprof/profiler.py"} <= set(names)
    for name in shell_files():
        assert f"gpumemprof-{version}.data/data/share/{name}" in names
    assert [name for name in names if name.endswith((".cc", ".h", ".a", ".pyc"))] == []


def test_pytest_loads_the_plugin_by_itself(fresh, clean_env, tmp_path):
    """The wheel's entry points, as pytest asks for them; pytest itself is not in this environment."""
    code = "from importlib.metadata import entry_points as e; print([p.value for p in e(group='pytest11')])"
    assert run([fresh / "python", "-c", code], env=clean_env, cwd=tmp_path).stdout == "['gpumemprof.pytest_plugin']\n"


def test_the_package_imports_and_knows_its_version(fresh, clean_env, wheel):
    code = "import gpumemprof; print(gpumemprof.__version__, gpumemprof.__file__)"
    version, path = run([fresh / "python", "-c", code], env=clean_env, cwd="/").stdout.strip().split(" ", 1)
    assert version == wheel.name.split("-")[1] and path.startswith(str(fresh.parent))


def test_the_command_runs_and_finds_its_probe(fresh, clean_env, tmp_path):
    run([fresh / "gpumemprof", "info"], env=clean_env, cwd=tmp_path)
    folder = tmp_path / "recording"
    # PyTorch is not in this environment: a program without it is recorded as a program that allocates nothing.
    run([fresh / "gpumemprof", "run", "-o", folder, "--", fresh / "python", "-c", "print(1)"], env=clean_env)
    assert (folder / "meta.json").exists()


def test_a_system_finds_the_manual_beside_the_command(fresh):
    for name in shell_files():
        assert (fresh.parent / "share" / name).stat().st_size > 1000
    if shutil.which("man"):
        env = {"PATH": f"{fresh}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        assert "gpumemprof analyze [OPTIONS] PATH..." in run(["man", "gpumemprof"], env=env).stdout


def test_the_command_has_its_second_name_in_which_it_speaks_of_tensorflow(fresh, clean_env, tmp_path):
    assert run([fresh / "tfmemprof", "--version"], env=clean_env, cwd=tmp_path).stdout.startswith("tfmemprof ")
    shown = json.loads(run([fresh / "tfmemprof", "info", "--format", "json"], env=clean_env, cwd=tmp_path).stdout)
    assert shown["tensorflow"]["packages"] == {} and "beside this command" in shown["tensorflow"]["unknown"]["packages"]


def test_a_program_with_pytorch_is_recorded_and_analysed(fresh, clean_env, tmp_path):
    folder = tmp_path / "recording"
    code = "import torch; x = torch.empty(3 << 20, dtype=torch.uint8)"
    run([fresh / "gpumemprof", "run", "-o", folder, "--", sys.executable, "-c", code], env=clean_env)
    report = json.loads(run([fresh / "gpumemprof", "analyze", folder, "--format", "json"], env=clean_env).stdout)
    assert report["devices"][0]["peak"]["requested_bytes"] == 3 << 20


def test_the_page_is_inside_the_command(fresh, clean_env, tmp_path):
    """And the container in which wheels are built for others gets what bundles it."""
    page = tmp_path / "page.html"
    recording = ROOT / "tests" / "compat" / "1.1-small-sealed.gmp"
    done = run([fresh / "gpumemprof", "view", "--html", page, recording], env=clean_env, cwd=tmp_path)
    assert "without its page" not in done.stdout + done.stderr
    text = page.read_text()
    assert '<script type="application/json" id="gpumemprof-data">{' in text and "<!--gpumemprof-data-->" not in text
    assert "scripts/setup web\n" in (ROOT / "scripts" / "setup-manylinux").read_text()


def test_attach_finds_the_probe_of_the_wheel(fresh, clean_env):
    code = "from gpumemprof.attachment import find_probe; print(find_probe())"
    path = run([fresh / "python", "-c", code], env=clean_env, cwd="/").stdout.strip()
    assert path == str((fresh.parent / "lib" / "gpumemprof" / "libgpumemprof_probe.so"))
