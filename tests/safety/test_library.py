"""The preloaded library itself: it brings nothing into a program but itself."""
import os
import re
from pathlib import Path

import pytest

import harness

TENSORFLOW = (r"_ZN(3tsl|10tensorflow)(12BFCAllocator1[13](Allocate|Deallocate)RawE\w+|4port\d+Aligned(Malloc|Free|SizedFree)E\w+)"
              r"|_ZN3tsl12SubAllocator\d+Visit(Alloc|Free)EPvim"
              r"|_ZN10tensorflow16ThreadPoolDevice12ComputeAsyncE\w+"
              r"|_ZN15stream_executor27GpuCudaMallocAsyncAllocator1[13](Allocate|Deallocate)RawE\w+")
TORCH_CUDA = r"_ZN(3c10|2at)4cuda6detail21init_p2p_access_cacheEl"
TORCH_AUTOGRAD = r"_ZN2at15sequence_number17get_and_incrementEv|_ZN5torch8autograd13SavedVariableC1ERKN2at6TensorEbb"
# Which storage is copied into which: nothing else tells a copy of weights that the program keeps from its data.
TORCH_COPY = r"_ZN2at4_ops5copy_4callERNS_6TensorERKS2_b"
# When all ranks were in a collective: what their clocks are aligned by.
TORCH_COLLECTIVES = r"_ZN4c10d16ProcessGroupGloo(7runLoopEi|9AsyncWork(14finishWorkGlooEv|7executeE(RK)?N3c10\d+intrusive_ptr\w+))"
HOOKS = re.compile(rf"^({TENSORFLOW}|{TORCH_CUDA}|{TORCH_COLLECTIVES}|{TORCH_AUTOGRAD}|{TORCH_COPY}|_ZN3c109alloc_cpuEm|_ZN3c108free_cpuEPv|_ZN3c10\d+report(MemoryUsage|OutOfMemory)ToProfilerE\w+|_ZN3c1018ThrowEnforceNotMet\w+"
                   r"|gpumemprof_\w+|Wrapped_PyInit__jax|prctl|syscall|_exit|_Exit)$")


@pytest.fixture(scope="module")
def library():
    named = os.environ.get("GPUMEMPROF_PROBE")
    found = [Path(named)] if named else sorted(harness.ROOT.glob(".venv/**/libgpumemprof_probe*.so*")) + sorted(
        harness.ROOT.glob("build/src/probe/lib*.so"))
    assert found and found[0].exists(), "no probe library: run `make`, or set GPUMEMPROF_PROBE"
    return found[0]


def test_it_needs_the_c_library_alone(library):
    dynamic = harness.execute(["readelf", "-dW", library]).ok().stdout.decode()
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    assert "libc.so.6" in needed
    assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed
    assert "TEXTREL" not in dynamic and "RUNPATH" not in dynamic and "RPATH" not in dynamic


def test_it_runs_on_a_c_library_of_2018(library):
    versions = harness.execute(["readelf", "-VW", library]).ok().stdout.decode()
    found = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+(?:\.\d+)?)", versions)}
    assert found and max(found) <= (2, 28), max(found)


def test_neither_it_nor_its_fellows_call_functions_that_abort(library):
    """Those that _FORTIFY_SOURCE puts in the places of memcpy() and the like. musl has none, so its programs would not start."""
    folders = {library.parent, harness.ROOT / "build/src/driver_proxy", harness.ROOT / "build/src/host_blocks", harness.ROOT / ".venv/lib"}
    fellows = [path for folder in folders for path in folder.glob("libgpumemprof_*.so")]
    assert {f"libgpumemprof_{name}.so" for name in ("cuda", "hip", "level_zero", "host")} <= {path.name for path in fellows}
    for one in {library, *fellows}:
        lines = harness.execute(["nm", "-D", "--undefined-only", one]).ok().stdout.decode().splitlines()
        names = [line.split()[-1].split("@")[0] for line in lines]
        assert names and [n for n in names if n.endswith("_chk")] == [], one


def test_it_shows_the_hooks_and_nothing_else(library):
    lines = harness.execute(["nm", "-D", "--defined-only", library]).ok().stdout.decode().splitlines()
    names = [line.split()[-1].split("@")[0] for line in lines]
    assert [n for n in names if not HOOKS.match(n)] == []
    for name in ("_ZN3c109alloc_cpuEm", "_ZN3c108free_cpuEPv", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
                 "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE",
                 "_ZN3c1030reportOutOfMemoryToProfilerElmmNS_6DeviceE".replace("1030", "1027"),
                 "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"):
        assert name in names, name


def test_its_thread_storage_fits_the_room_that_every_program_has(library):
    """A preloaded library's thread-local storage is in every thread, also of programs with small stacks."""
    headers = harness.execute(["readelf", "-lW", library]).ok().stdout.decode()
    for line in headers.splitlines():
        if line.split()[:1] == ["TLS"]:
            assert int(line.split()[5], 16) <= 4096, line
