"""The image of deploy/container: what `make container` hands to the builder. No builder is needed."""
import shutil
import subprocess
import tarfile

import harness
import pytest

CONTAINERFILE = harness.ROOT / "deploy" / "container" / "Containerfile"
VERSION = harness.execute([harness.COMMAND, "--version"]).ok().stdout.decode().split()[1]


@pytest.fixture
def build(tmp_path):
    """build(arch…, builder="echo") of a tree that has tarballs of both architectures, each with another command."""
    root = tmp_path / "tree"
    (root / "build" / "release").mkdir(parents=True)
    (root / "CMakeLists.txt").symlink_to(harness.ROOT / "CMakeLists.txt")
    script = (harness.ROOT / "scripts" / "container").read_text().replace('cd "$(dirname "$0")/.."', f'cd "{root}"')
    for arch in ("x86_64", "aarch64"):
        name = f"gpumemprof-{VERSION}-linux-{arch}"
        for file in ("bin/gpumemprof", "README", "LICENSE"):
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(arch)
        with tarfile.open(root / "build" / "release" / f"{name}.tar.gz", "w:gz") as tar:
            tar.add(tmp_path / name, name)

    def run(*archs, builder="echo"):
        done = subprocess.run(["bash", "-c", script, "container", *archs], capture_output=True, text=True, timeout=30,
                              env={"PATH": "/usr/bin:/bin", "BUILDER": builder})  # fmt: skip
        return done, root / "build" / "container"

    return run


def test_each_architecture_gets_its_own_command(build):
    done, folder = build("x86_64", "aarch64")
    assert done.stdout == ("build --platform linux/amd64,linux/arm64 --manifest gpumemprof "
                           "-f deploy/container/Containerfile build/container\n"), done  # fmt: skip
    text = CONTAINERFILE.read_text()
    assert "\nARG TARGETARCH\nCOPY ${TARGETARCH}/ /usr/local/\n" in text and "RUN " not in text
    for name, arch in (("amd64", "x86_64"), ("arm64", "aarch64")):
        assert (folder / name / "bin" / "gpumemprof").read_text() == arch
        assert (folder / name / "share" / "doc" / "gpumemprof" / "LICENSE").read_text() == arch


def test_what_cannot_be_built_is_said(build):
    done, _ = build("riscv64")
    assert (done.returncode, done.stderr) == (2, "container: no image for riscv64\n")
    done, _ = build("x86_64", builder="false")
    assert done.returncode == 1


def test_hadolint_has_nothing_to_say():
    if shutil.which("hadolint") is None:
        pytest.skip("no hadolint here")
    done = subprocess.run(["hadolint", CONTAINERFILE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
