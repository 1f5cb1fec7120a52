"""The library that is libcuda.so.1 in recorded programs: it forwards everything, changes nothing, and is only there where
a driver is."""

import json
import os
import re
import subprocess
import sys

import harness
import pytest

MIB = 1 << 20
SOURCE = harness.ROOT / "src" / "driver_proxy"
ENVIRONMENT = """
import os, json, ctypes
def opens(name):
    try:
        ctypes.CDLL(name)
        return True
    except OSError as error:
        return str(error)
print(json.dumps({"preload": os.environ.get("LD_PRELOAD", ""), "path": os.environ.get("LD_LIBRARY_PATH"),
                  "driver": os.environ.get("GPUMEMPROF_DRIVER"),
                  "opens": [opens("libcuda.so.1"), opens("libcuda.so")],
                  "maps": "libgpumemprof_cuda" in open("/proc/self/maps").read()}))
"""


@pytest.fixture(scope="module")
def proxy():
    named = os.environ.get("GPUMEMPROF_PROBE")
    folder = os.path.dirname(named) if named else harness.ROOT / ".venv" / "lib"
    return os.path.join(folder, "libgpumemprof_cuda.so")


def run_python(code, env, *options, folder):
    argv = [harness.COMMAND, "run", "-q", "-o", str(folder), *options, "--", sys.executable, "-c", code]
    done = harness.execute(argv, env=env)
    assert done.rc == 0, repr(done)
    return json.loads(done.stdout.splitlines()[-1])


def test_it_is_the_driver_by_name_and_needs_the_c_library_alone(proxy):
    dynamic = harness.execute(["readelf", "-dW", proxy]).ok().stdout.decode()
    assert re.search(r"\(SONAME\).*\[libcuda\.so\.1\]", dynamic)
    assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) <= {"libc.so.6"}
    versions = harness.execute(["readelf", "-VW", proxy]).ok().stdout.decode()
    found = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+(?:\.\d+)?)", versions)}
    assert max(found) <= (2, 28)


def test_it_exports_the_functions_of_the_list_and_the_recorded_ones(proxy):
    lines = harness.execute(["nm", "-D", "--defined-only", proxy]).ok().stdout.decode().splitlines()
    exported = {line.split()[-1] for line in lines}
    forwarded = {line for line in (SOURCE / "functions.txt").read_text().splitlines() if line.startswith("cu")}
    recorded = set(re.findall(r"ENTRY\(\w+, \d+, (\w+), \d\)", (SOURCE / "recorded.h").read_text()))
    spare = {name for name in exported if re.fullmatch(r"gpumemprof_spare_\d{3}_{59}", name)}
    assert exported - spare == forwarded | recorded and not forwarded & recorded and len(spare) == 256
    assert len(forwarded) > 600 and len(recorded) == 63


@pytest.mark.parametrize("options", [(), ("--no-driver",)])
def test_without_a_driver_nothing_is_different(machine, tmp_path, options):
    env = machine(driver=False)
    plain = json.loads(subprocess.run([sys.executable, "-c", ENVIRONMENT], env=env, capture_output=True, check=True).stdout)
    said = run_python(ENVIRONMENT, env, *options, folder=tmp_path / "recording")
    assert said["preload"].endswith("libgpumemprof_probe.so") and said["driver"] is None
    del said["preload"], plain["preload"]
    assert said == plain
    assert all("cannot open shared object file" in text for text in said["opens"])


def test_a_driver_can_be_left_alone(machine, tmp_path):
    env = machine()
    said = run_python(ENVIRONMENT, env, "--no-driver", folder=tmp_path / "recording")
    assert not said["maps"] and said["path"] == env["LD_LIBRARY_PATH"] and said["opens"][0] is True


def test_the_links_are_gone_afterwards(machine, tmp_path):
    env = machine()
    said = run_python(ENVIRONMENT, env, folder=tmp_path / "recording")
    assert said["maps"] and said["opens"] == [True, True]
    links = said["path"].split(":")[0]
    assert links.startswith(str(tmp_path)) and said["path"] == links + ":" + env["LD_LIBRARY_PATH"]
    assert said["driver"].endswith("/cuda/libcuda.so.1") and not os.path.exists(links)


def test_a_run_within_a_run_has_one_stand_in(machine, tmp_path):
    env = machine()
    inner = [harness.COMMAND, "run", "-q", "-o", str(tmp_path / "inner"), "--", sys.executable, "-c", ENVIRONMENT]
    outer = [harness.COMMAND, "run", "-q", "-o", str(tmp_path / "outer"), "--", *inner]
    said = json.loads(harness.execute(outer, env=env).ok().stdout.splitlines()[-1])
    assert said["preload"].count("libgpumemprof_cuda.so") == 1
    assert said["path"].count("gpumemprof-driver-") == 1 and said["driver"].endswith("/cuda/libcuda.so.1")


def test_a_run_within_a_run_that_lost_its_variable_finds_the_driver(machine, tmp_path):
    env = machine()
    calls = "import ctypes, json, os; d = ctypes.CDLL('libcuda.so.1'); v = ctypes.c_int(); "
    calls += "d.cuDriverGetVersion(ctypes.byref(v)); print(json.dumps([d.cuInit(0), v.value, os.environ['GPUMEMPROF_DRIVER']]))"
    inner = [harness.COMMAND, "run", "-q", "-o", str(tmp_path / "inner"), "--", sys.executable, "-c", calls]
    outer = [harness.COMMAND, "run", "-q", "-o", str(tmp_path / "outer"), "--", "env", "-u", "GPUMEMPROF_DRIVER", *inner]
    code, version, driver = json.loads(harness.execute(outer, env=env).ok().stdout.splitlines()[-1])
    assert (code, version) == (0, 12040) and driver.endswith("/cuda/libcuda.so.1")


@pytest.mark.parametrize("name", ["cuInit", "cuMemFree_v2"])
def test_it_never_forwards_to_itself(proxy, name):
    code = f"import ctypes; print(ctypes.CDLL({proxy!r}).{name}(0))"
    env = {**os.environ, "GPUMEMPROF_DRIVER": proxy}
    assert harness.execute([sys.executable, "-c", code], env=env).ok().stdout == b"500\n"


def test_functions_that_nobody_knew_pass_through(record):
    said = record(
        """
        runtime, other = library("libcudart.so.12"), library("libmine.so", 0)
        runtime.begin()
        version = ctypes.c_int()
        runtime.call("cuDriverGetVersion", version)
        print(json.dumps({
            "version": version.value,
            "new": runtime.ask("cuNewInThisDriver", flags=0),
            "unknown": runtime.ask("cuNoSuchFunction"),
            "missing": other.ask("cuMulticastCreate", 0, 0),
            "there": other.code.has_symbol(b"cuLaunchKernel"), "not there": other.code.has_symbol(b"cuNoSuchFunction"),
        }), flush=True)
        os._exit(0)
        """
    ).said()
    assert said == {"version": 12040, "new": -1, "unknown": -1, "missing": 500, "there": 1, "not there": 0}


def test_a_function_of_a_newer_driver_is_handed_out_unchanged(record):
    said = record(
        """
        import ctypes
        driver = ctypes.CDLL("libcuda.so.1")
        found, status = ctypes.c_void_p(), ctypes.c_int()
        code = driver.cuGetProcAddress_v2(b"cuNewInThisDriver", ctypes.byref(found), 13000, ctypes.c_uint64(0),
                                          ctypes.byref(status))
        answer = ctypes.CFUNCTYPE(ctypes.c_int)(found.value)()
        late = driver.cuGetProcAddress_v2(b"cuNewInThisDriver", ctypes.byref(found), 12040, ctypes.c_uint64(0),
                                          ctypes.byref(status))
        print(json.dumps([code, answer, late, status.value]), flush=True)
        """
    ).said()
    assert said == [0, 4242, 500, 2]


def test_who_opens_the_library_by_its_other_name_is_recorded_too(record):
    recorded = record(
        """
        runtime, nccl = library("libcudart.so.12"), library("libnccl.so.2", 0, "libcuda.so")
        runtime.begin()
        nccl.malloc(6 * MIB)
        end()
        """
    )
    (device,) = recorded.analysis()["driver"]["devices"]
    assert device["end"]["libraries"] == [{"name": "libnccl.so.2", "bytes": 6 * MIB}]


def test_a_child_without_its_parents_environment_still_has_a_driver(record):
    recorded = record(
        """
        import subprocess
        code = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
        env = {k: v for k, v in os.environ.items() if k != "GPUMEMPROF_DRIVER"}
        print(json.dumps(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True).stdout.decode()))
        """
    )
    assert recorded.said() == "0\n"


def test_a_forked_child_has_none_of_its_parents_memory(record):
    recorded = record(
        """
        runtime = library("libcudart.so.12")
        runtime.begin()
        address = runtime.malloc(10 * MIB)
        child = os.fork()
        if child == 0:
            runtime.free(address)   # in the fake this is possible; it is not the child's
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        end()
        """
    )
    devices = recorded.analysis()["driver"]["devices"]
    pids = [device["process"] for device in devices if device["end"]["by_kind"]["memory"]]
    assert len(pids) == 1


def test_many_threads(record):
    recorded = record(
        """
        import threading
        runtime = library("libcudart.so.12")
        runtime.begin()
        context = ctypes.c_long()
        runtime.call("cuCtxGetCurrent", context)
        kept = []
        def work(number):
            runtime.call("cuCtxSetCurrent", context.value)
            for i in range(200):
                address = runtime.malloc(3 * MIB)
                if i % 50 == number: kept.append(address)
                else: runtime.free(address)
                runtime.call("cuMemFreeAsync", runtime.make("cuMemAllocAsync", MIB, 0), 0)
                runtime.call("cuStreamSynchronize", 0)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        end(kept=len(kept))
        """
    )
    said, analysis = recorded.said(), recorded.analysis()
    (device,) = analysis["driver"]["devices"]
    assert said["kept"] == 16 and device["end"]["by_kind"]["memory"] == 16 * 3 * MIB
    assert device["end"]["explained_bytes"] == sum(said["books"].values())
    assert analysis["lost"]["events"] == 0


def test_the_program_says_the_same_with_and_without(record, libraries, machine, tmp_path):
    code = """
    runtime = library("libcudart.so.12")
    answers = [runtime.ask("cuMemAlloc", ctypes.c_long(), 5, exported="cuMemAlloc_v2")]
    runtime.begin()
    address = runtime.malloc(5 * MIB)
    answers += [runtime.ask("cuMemFree", address, exported="cuMemFree_v2"), runtime.ask("cuMemFree", address, exported="cuMemFree_v2")]
    answers += [runtime.ask("cuMemAlloc", ctypes.c_long(), 0, exported="cuMemAlloc_v2"), runtime.ask("cuMemRelease", 7)]
    answers += [runtime.ask("cuMemUnmap", 0, 5), runtime.ask("cuModuleUnload", 0), runtime.ask("cuCtxDestroy", 0, exported="cuCtxDestroy_v2")]
    six = ctypes.c_long * 6
    out = ctypes.c_long()
    words = six(ctypes.addressof(out), 3 * MIB)
    answers += [runtime.code.errno_after(b"cuMemAlloc", b"cuMemAlloc_v2", words)]
    answers += [runtime.code.errno_after(b"cuMemFree", b"cuMemFree_v2", six(out.value))]
    answers += [runtime.code.errno_after(b"cuMemAllocAsync", b"cuMemAllocAsync", words)]
    answers += [runtime.code.errno_after(b"cuCtxSetLimit", b"cuCtxSetLimit", six(1, 4 * MIB))]
    print(json.dumps([answers, address, books()]))
    """
    recorded = record(code)
    env = machine()
    os.unlink(env["FAKE_GPU_STATE"])
    program = tmp_path / "program.py"
    plain = subprocess.run([sys.executable, str(program), str(libraries)], env=env, capture_output=True, check=True)
    assert recorded.said() == json.loads(plain.stdout)
    assert recorded.said()[0][-4:] == [77] * 4
    assert recorded.analysis()["lost"]["events"] == 0


def test_nothing_is_asked_of_the_driver_once_the_program_has_restricted_itself(record):
    recorded = record(
        """
        runtime = library("libcudart.so.12")
        runtime.begin()
        runtime.malloc(4 * MIB)
        assert runtime.code.restrict_itself() == 0
        runtime.malloc(8 * MIB)
        runtime.device_used()
        end()
        """
    )
    analysis = recorded.analysis()
    assert analysis["driver"]["devices"][0]["end"]["by_kind"]["memory"] == 4 * MIB
    assert analysis["lost"]["events"] >= 1


def test_what_comes_while_recording_is_stopped_is_not_in_it(record):
    recorded = record(
        """
        runtime = library("libcudart.so.12")
        runtime.begin()
        probe = ctypes.CDLL(None)
        probe.gpumemprof_stop()
        runtime.malloc(4 * MIB)
        probe.gpumemprof_start()
        runtime.malloc(8 * MIB)
        end()
        """
    )
    (device,) = recorded.analysis()["driver"]["devices"]
    assert device["end"]["by_kind"]["memory"] == 8 * MIB
