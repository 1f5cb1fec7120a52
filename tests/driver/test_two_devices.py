"""One process on two devices: a sum for each, and none for both. Which of NVML's is which of CUDA's, their places on the bus tell."""

import json

import harness
from fake_machine import environment
from live_program import holding
from test_live_sums import picture_of

MIB = 1 << 20

# The second device comes first and holds more.
BOTH = """
import json, sys, time
runtime, blas = library("libcudart.so.12"), library("libcublas.so.12")
runtime.begin(1)
runtime.malloc(300 * MIB)
runtime.device_used()
runtime.begin(0)
blas.malloc(50 * MIB)
runtime.call("cuLaunchKernel", 0)
runtime.device_used()
print(json.dumps({"books": books(), "second": books(device=1), "pid": os.getpid()}), flush=True)
sys.stdin.readline()
time.sleep(2.2)  # for two samples
os._exit(0)
"""


def check(moment, books, others):
    own = sum(books.values())
    assert moment["process_used_bytes"] == own and moment["other_processes_bytes"] == others
    assert moment["device_used_bytes"] == own + others + moment["reserved_bytes"] and moment["reserved_bytes"] == 513 * MIB
    assert moment["of_no_process_bytes"] == 0
    assert moment["explained_bytes"] + moment["unexplained_bytes"] == own
    assert moment["unexplained_bytes"] == books["hidden"]


def test_each_device_adds_up_live_and_in_the_report(tmp_path, libraries):
    env = environment(tmp_path, board="a100-pair")
    with holding(tmp_path / "program", env, libraries, BOTH) as both:
        live = {one["device"]: one for one in picture_of(both)["driver"]["devices"]}
    assert {name: one["accelerator"] for name, one in live.items()} == {"cuda:0": "nvidia:0", "cuda:1": "nvidia:1"}
    argv = [harness.COMMAND, "analyze", str(both.folder), "--format", "json"]
    said = json.loads(harness.execute(argv, env=env).ok().stdout)["driver"]["devices"]
    report = {one["device"]: one["sampled"] for one in said}
    for books, name, others in ((both.said["books"], "cuda:0", 1000 * MIB), (both.said["second"], "cuda:1", 300 * MIB)):
        check(live[name]["now"], books, others)
        check(report[name], books, others)
    assert both.said["books"]["hidden"] == 6 * MIB and both.said["second"]["memory"] == 300 * MIB
    # The libraries of each are its own.
    names = {name: [one["name"] for one in report[name]["libraries"]] for name in report}
    assert names == {"cuda:0": ["libcublas.so.12"], "cuda:1": ["libcudart.so.12"]}
