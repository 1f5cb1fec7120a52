"""Records a generated program as a user would, and reads what is told of it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import harness
from troubles.generate import WITH, Program

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
DRIVER = harness.ROOT / "tests" / "driver"
FAKES = Path(os.environ.get("GPUMEMPROF_FAKES", harness.ROOT / "build" / "tests" / "fakes"))
# Of the device's classes that no program here has, too: none of them may be told.
KINDS = {*WITH, "pinned_rounding", "pinned_cache_growth", "graph_pool_slack", "stranded_stream_cache", "record_stream_pending",
         "refused_though_it_fits", "settings_conflict", "leak"}  # fmt: skip


class Missing(Exception):
    """What this machine lacks, one sentence."""


@contextlib.contextmanager
def cgroup(limit_mib: int | None) -> Iterator[Path | None]:
    """A new one that may use so much; Missing where none can be made."""
    if limit_mib is None:
        yield None
        return
    old = (V1 / "memory.limit_in_bytes").exists()
    folder = (V1 if old else V2) / f"gpumemprof-troubles-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        raise Missing(f"no cgroup can be made here: {error}") from None
    try:
        (folder / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit_mib << 20))
        if (folder / "memory.swap.max").exists():
            (folder / "memory.swap.max").write_text("0")
    except OSError as error:
        folder.rmdir()
        raise Missing(f"a cgroup's memory cannot be limited here: {error}") from None
    try:
        yield folder
    finally:
        harness.until(lambda: not (folder / "cgroup.procs").read_text().split(), seconds=5)
        folder.rmdir()


class Judge:
    """`folder`: where what is compiled and recorded goes."""

    def __init__(self, folder: Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": f"{harness.PROGRAMS}:{DRIVER}"}
        library = folder / "liballocate.so"
        link = [f"-L{harness.TORCH_LIB}", "-l:libc10.so", f"-Wl,-rpath,{harness.TORCH_LIB}", "-Wl,--allow-shlib-undefined"]
        harness.execute(["gcc", "-O1", "-w", "-shared", "-fPIC", harness.PROGRAMS / "allocate.c", "-o", library, *link]).ok()
        self.environment["ALLOCATE_LIBRARY"] = str(library)
        self.callers = folder / "callers"
        self.callers.mkdir(exist_ok=True)
        for name in ("libcudart.so.12", "libcublas.so.12", "libnccl.so.2", "libc10_cuda.so"):
            harness.execute(["gcc", "-O1", "-w", "-shared", "-fPIC", "-o", self.callers / name, DRIVER / "caller.c"]).ok()
        self.own_shm = own_shm()

    def driver(self, scratch: Path) -> dict[str, str]:
        if not (FAKES / "cuda").is_dir():
            raise Missing(f"no fakes in {FAKES}: `make test` builds them")
        board = harness.ROOT / "tests" / "fakes" / "nvml" / "boards" / "a100-80gb.yaml"
        return {"LD_LIBRARY_PATH": f"{FAKES / 'cuda'}:{FAKES / 'nvml-3'}", "FAKE_NVML_BOARD": str(board), "FAKE_GPU_STATE": str(scratch / "gpu")}

    def told(self, program: Program, keep: bool = False) -> list[str]:
        """Kinds of the findings on the program, each once. RuntimeError where it did not end as it should."""
        scratch = Path(tempfile.mkdtemp(dir=self.folder, prefix=f"{program.name}."))
        try:
            environment = self.environment | (self.driver(scratch) if program.needs_driver else {})
            environment["RECORDING"] = str(scratch / "recording")
            (scratch / "work").mkdir()
            path = scratch / "work" / "program.py"
            path.write_text(program.text)
            words = harness.run_argv(scratch / "recording", [sys.executable, path, self.callers], ["-q", *program.options])
            with cgroup(program.limit_mib) as group:
                if group:
                    words = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group), *words]
                done = harness.execute([*self.own_shm, *words], cwd=scratch / "work", env=environment, timeout=120)
            if done.rc != (program.code if program.code >= 0 else 128 - program.code):
                raise RuntimeError(f"ended with {done.rc}: {done.stderr[-600:].decode(errors='replace')}")
            found = harness.analysis(scratch / "recording")["findings"]
            if keep:
                (scratch / "findings.json").write_text(json.dumps(found, indent=1))
            return sorted({finding["kind"] for finding in found if finding["kind"] in KINDS})
        finally:
            if not keep:
                shutil.rmtree(scratch, ignore_errors=True)


def own_shm() -> list[str]:
    """Words before a command that give it an empty /dev/shm: what others leave meanwhile is not the program's."""
    words = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
        return words
    return []
