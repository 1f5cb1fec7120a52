"""stormlog installs a command gpumemprof, and up to 0.2.6 a package: `info` and the import say so, and harm nobody."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import harness
import pytest

PACKAGE = harness.ROOT / "python" / "gpumemprof"
SAID = "gpumemprof:1: UserWarning: stormlog is installed in this environment, too"


@pytest.fixture
def environment(tmp_path):
    """(folder, site-packages) of an environment that has this package alone. The package's rooms are links."""
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    (packages / "gpumemprof").mkdir(parents=True)
    for part in PACKAGE.iterdir():
        if part.name not in ("__init__.py", "__pycache__"):
            (packages / "gpumemprof" / part.name).symlink_to(part)
    shutil.copy(PACKAGE / "__init__.py", packages / "gpumemprof")
    return tmp_path, packages


def add_stormlog(packages, version):
    """What its wheel leaves; up to 0.2.6 among the files of gpumemprof."""
    (packages / f"stormlog-{version}.dist-info").mkdir()
    if version == "0.2.6":
        (packages / "gpumemprof" / "cli.py").write_text("raise SystemExit('stormlog was loaded')\n")
    else:
        (packages / "stormlog").mkdir()
        (packages / "stormlog" / "__init__.py").write_text("raise SystemExit('stormlog was loaded')\n")


def python(packages, code, *options):
    env = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, timeout=60, env=env, cwd=packages)


def info(folder, *options):
    env = {**os.environ, "VIRTUAL_ENV": str(folder)}
    return subprocess.run([harness.COMMAND, "info", *options], capture_output=True, text=True, timeout=60, env=env).stdout


@pytest.mark.parametrize("version", ["0.2.6", "0.4.3"])
def test_the_import_says_it_once(environment, version):
    folder, packages = environment
    add_stormlog(packages, version)
    done = python(packages, "import gpumemprof, importlib; importlib.reload(gpumemprof); print(gpumemprof.__file__)")
    assert (done.returncode, Path(done.stdout.strip())) == (0, packages / "gpumemprof" / "__init__.py")
    assert done.stderr.startswith(SAID) and done.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [("-W", "error"), ("-W", "ignore")])
def test_a_program_decides_and_its_import_never_fails(environment, options):
    folder, packages = environment
    add_stormlog(packages, "0.4.3")
    done = python(packages, "import gpumemprof; print('goes on')", *options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")


def test_alone_nothing_is_said_and_nothing_more_is_loaded(environment):
    folder, packages = environment
    done = python(packages, "import sys, gpumemprof; print([m for m in sys.modules if 'second_profiler' in m])")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    assert "Also installed" not in info(folder) and json.loads(info(folder, "--format", "json"))["conflicts"] == []


def test_info_says_which_and_where(environment):
    folder, packages = environment
    add_stormlog(packages, "0.2.6")
    assert json.loads(info(folder, "--format", "json"))["conflicts"] == [
        {"package": "stormlog", "version": "0.2.6", "folder": str(packages)}
    ]
    lines = info(folder).splitlines()
    assert lines[1] == (f"Also installed: stormlog 0.2.6, in {packages}: it installs a command gpumemprof, too; "
                        "use one of them per environment")  # fmt: skip
