"""The command without the package, as `make tarball` packs it: it works in any folder."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile

import harness
import pytest
from test_completion import TOOLS

BUILD = harness.ROOT / "build"
SCRIPT = harness.ROOT / "scripts" / "tarball.py"


def run(argv, **options):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def pack(folder):
    run([sys.executable, SCRIPT, BUILD, platform.machine(), folder])
    (path,) = folder.glob("gpumemprof-*.tar.gz")
    return path


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tar ball")
    path = pack(folder)
    with tarfile.open(path) as tar:
        assert {(m.uid, m.gid, m.mtime) for m in tar.getmembers()} == {(0, 0, 0)}
        tar.extractall(folder)
    return folder / path.name.removesuffix(".tar.gz")


@pytest.fixture
def env(tmp_path):
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}


def test_it_has_the_command_what_it_needs_and_who_may_use_it(unpacked):
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if not path.is_dir()}
    libraries = {f"lib/gpumemprof/libgpumemprof_{kind}.so" for kind in ("probe", "host", "cuda", "hip", "level_zero")}
    shells = {f"share/{file}" for tool in TOOLS for file in (
        f"man/man1/{tool}.1", f"bash-completion/completions/{tool}", f"zsh/site-functions/_{tool}",
        f"fish/vendor_completions.d/{tool}.fish")}  # fmt: skip
    assert names == {"bin/gpumemprof", "bin/tfmemprof", "LICENSE", "README"} | libraries | shells
    version = run([unpacked / "bin" / "gpumemprof", "--version"]).stdout.split()[1]
    first = (unpacked / "README").read_text().splitlines()[0]
    assert first.startswith(f"gpumemprof {version} for Linux on {platform.machine()} with glibc 2.")


def test_an_image_of_it_is_small(unpacked):
    """What the container adds to its base: 60 MB at most."""
    assert sum(path.stat().st_size for path in unpacked.rglob("*") if not path.is_dir()) < 60_000_000


@pytest.mark.parametrize("how", ["by its path", "by a link", "moved"])
def test_a_program_is_recorded_and_analyzed(unpacked, light, env, tmp_path, how):
    command = unpacked / "bin" / "gpumemprof"
    if how == "by a link":
        (tmp_path / "here").symlink_to(command)
        command = tmp_path / "here"
    if how == "moved":
        command = shutil.copytree(unpacked, tmp_path / "else where", symlinks=True) / "bin" / "gpumemprof"
    run([command, "run", "-o", tmp_path / "recording", "--", light.program, "4"], env=env, cwd=tmp_path)
    report = json.loads(run([command, "analyze", tmp_path / "recording", "--format", "json"], env=env, cwd="/").stdout)
    assert report["devices"][0]["peak"]["requested_bytes"] == 1000 + 1002 + 1003


def test_the_second_name_and_the_page_work(unpacked, env, tmp_path):
    assert run([unpacked / "bin" / "tfmemprof", "--version"], env=env, cwd=tmp_path).stdout.startswith("tfmemprof ")
    recording = harness.ROOT / "tests" / "compat" / "1.1-small-sealed.gmp"
    run([unpacked / "bin" / "gpumemprof", "view", "--html", tmp_path / "page.html", recording], env=env, cwd=tmp_path)
    assert 'id="gpumemprof-data">{' in (tmp_path / "page.html").read_text()


def test_the_same_build_gives_the_same_bytes(unpacked, tmp_path):
    again = pack(tmp_path)
    assert again.read_bytes() == (unpacked.parent / again.name).read_bytes()
