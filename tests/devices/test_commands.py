"""info, monitor, track and diagnose on a machine that has GPUs: each figure is that of the board's file."""

import csv
import json
import os
import pickle
import re

import harness
import jsonschema
import pytest

MIB = 1 << 20


def validator(name):
    return jsonschema.Draft202012Validator(json.loads((harness.ROOT / "docs" / "schemas" / name).read_text()))


def run(env, *arguments, rc=0):
    done = harness.execute([harness.COMMAND, *arguments], env=env)
    assert done.rc == rc, repr(done)
    return done


def info(env, *arguments):
    said = json.loads(run(env, "info", "--format", "json", *arguments).stdout)
    validator("info.schema.json").validate(said)
    return said["gpu"]


def test_info_has_every_figure_of_the_board(machine, sleeper):
    gpu = info(machine("a100-80gb", {4101: sleeper.pid, 4207: 2**22 + 7}))
    (device,) = gpu["devices"]
    own, other = device.pop("processes")
    unknown = device.pop("unknown")
    assert device == {
        "number": 0, "vendor": "nvidia", "source": "NVML", "name": "NVIDIA A100-SXM4-80GB",
        "uuid": "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f", "pci_bus_id": "00000000:07:00.0",
        "driver_version": "550.163.01", "total_bytes": 81920 * MIB, "used_bytes": (20314 + 633) * MIB,
        "free_bytes": (81920 - 20314 - 633) * MIB, "reserved_bytes": 633 * MIB, "memory_source": None, "host_total_bytes": None,
        "host_used_bytes": None, "utilization_percent": 87, "memory_utilization_percent": 41,
        "temperature_celsius": 58, "power_milliwatts": 311450, "mig": False, "slices": [],
    }  # fmt: skip
    assert set(unknown) == {"host_total_bytes", "host_used_bytes"}
    assert own["pid"] == sleeper.pid and own["here"] and own["command"].startswith(harness.PYTHON)
    assert (own["used_bytes"], own["utilization_percent"], own["kind"]) == (17822 * MIB, 85, "compute")
    assert not other["here"] and other["used_bytes"] == 2488 * MIB and other["unknown"]["command"]
    assert other["utilization_percent"] is None and gpu["unknown"] == {} and gpu["notes"] == []


def test_info_in_words(machine, sleeper):
    env = machine("a100-80gb", {4101: sleeper.pid})
    lines = run(env, "info").stdout.decode().splitlines()
    at = lines.index("GPUs: 1")
    assert lines[at + 1] == (
        "  0: NVIDIA A100-SXM4-80GB, 80.0 GiB, used 20.5 GiB (25.6 %), free 59.5 GiB; reserved by the driver 633 MiB"
    )
    process = next(line for line in lines if line.startswith(f"    pid {sleeper.pid} ("))
    assert process.endswith("): 17.4 GiB, compute, 85 % of the GPU")
    detailed = run(env, "info", "--detailed").stdout.decode()
    assert "    busy 87 %, memory bus 41 %, temperature 58 °C, power 311.4 W\n" in detailed
    assert "at 00000000:07:00.0, driver 550.163.01 (NVML)\n" in detailed


def test_one_device_is_shown_where_it_is_asked_for(machine):
    env = machine("h100-pair")
    (device,) = info(env, "--device", "1")["devices"]
    assert device["number"] == 1 and device["total_bytes"] is None
    assert device["unknown"]["total_bytes"] == "the GPU has fallen off the bus (NVML: GPU is lost)"
    for command in (["info"], ["monitor", "--duration", "0"], ["track", "--duration", "0"], ["diagnose"]):
        done = run(env, *command, "--device", "2", rc=2)
        assert (done.stdout, done.stderr) == (b"", b"gpumemprof: --device 2: there are 2 accelerators here\n")


@pytest.mark.parametrize("generation", [1, 2])
def test_an_older_driver_leaves_out_what_it_cannot_tell(machine, generation):
    (device,) = info(machine("a100-80gb", generation=generation))["devices"]
    assert device["used_bytes"] == (20314 + 633) * MIB
    assert device["reserved_bytes"] is None
    assert device["unknown"]["reserved_bytes"] == "this driver's NVML is too old"
    assert [p["used_bytes"] for p in device["processes"]] == [17822 * MIB, 2488 * MIB]


def test_slices_of_mig(machine):
    (device,) = info(machine("a100-mig"))["devices"]
    assert device["mig"] is True
    assert [(s["uuid"], s["total_bytes"], s["used_bytes"]) for s in device["slices"]] == [
        ("MIG-6a1f2bde-6d5c-5a3e-9d4e-5f0b7a2f6c01", 40192 * MIB, 8000 * MIB),
        ("MIG-1b7c9f64-9c41-5e0b-8a64-0c7c0b6c2d02", 9728 * MIB, 1000 * MIB),
    ]
    assert [(p["pid"], p["gpu_instance"], p["used_bytes"]) for p in device["processes"]] == [
        (4101, 2, 7936 * MIB), (4101, 9, 512 * MIB), (5000, 9, 480 * MIB),
    ]  # fmt: skip


def test_a_driver_that_does_not_start_is_said(machine, tmp_path):
    env = machine("h200")
    (tmp_path / "board.yaml").write_text('driver: "1"\ninit: 9\n')
    gpu = info(env)
    assert gpu["devices"] is None and gpu["unknown"]["devices"] == "NVIDIA: NVIDIA's kernel driver is not loaded"


def test_amd_and_intel_from_a_tree_of_files(tmp_path):
    device = tmp_path / "sys/class/drm/card0/device"
    device.mkdir(parents=True)
    (device / "uevent").write_text("DRIVER=amdgpu\nPCI_ID=1002:740F\nPCI_SLOT_NAME=0000:03:00.0\n")
    (device / "mem_info_vram_total").write_text("68702699520\n")
    (device / "mem_info_vram_used").write_text("1048576\n")
    other = tmp_path / "sys/class/drm/card1/device"
    (other / "tile0").mkdir(parents=True)
    (other / "uevent").write_text("DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:04:00.0\n")
    (other / "tile0/physical_vram_size_bytes").write_text("12884901888\n")
    devices = info({**os.environ, "GPUMEMPROF_DEVICE_ROOT": str(tmp_path)})["devices"]
    found = [(d["number"], d["vendor"], d["total_bytes"], d["used_bytes"]) for d in devices[-2:]]
    first = len(devices) - 2
    assert found == [(first, "amd", 68702699520, 1048576), (first + 1, "intel", 12884901888, None)]


def samples(text):
    return [{**row, "metadata": json.loads(row["metadata"])} for row in csv.DictReader(text.decode().splitlines())]


def machine_row(env, *words, command=harness.COMMAND):
    """The row of a whole device of `monitor`, which follows recorded programs instead where it sees one."""
    argv = [*harness.out_of_sight(), command, "monitor", *words, "--duration", "0", "--format", "csv"]
    done = harness.execute(argv, env=env).ok()
    assert b"(no recorded process of yours is running)" in done.stderr
    (row,) = [r for r in samples(done.stdout) if r["pid"] == "-1" and r["device_id"] == "0"]
    return row


def test_monitor_of_one_device_is_what_everybody_uses_of_it(machine):
    row = machine_row(machine("h200"), "--device", "0")
    assert row["collector"] == "gpumemprof.cuda_tracker" and row["device_id"] == "0"
    assert int(row["device_used_bytes"]) == int(row["allocator_allocated_bytes"]) == 70614 * MIB
    assert int(row["device_total_bytes"]) == 143771 * MIB
    assert int(row["device_free_bytes"]) == (143771 - 70614) * MIB
    about = row["metadata"]
    assert about["basis"] == "device" and about["accelerator_name"] == "NVIDIA H200"
    assert about["driver_reserved_bytes"] == 614 * MIB


def test_a_gpu_that_shares_the_hosts_memory_has_the_hosts_figures(machine):
    env = machine("gb10")
    (device,) = info(env)["devices"]
    total = int(re.search(r"MemTotal: +(\d+) kB", open("/proc/meminfo").read())[1]) * 1024
    assert device["total_bytes"] == total and device["memory_source"] == "/proc/meminfo"
    assert device["used_bytes"] + device["free_bytes"] == total
    assert device["unknown"]["reserved_bytes"] == "the driver does not report it for this device (NVML: not supported)"
    assert b"(shares the host's memory: /proc/meminfo)" in run(env, "info").stdout
    row = machine_row(env)
    assert int(row["device_total_bytes"]) == total and row["metadata"]["device_memory_source"] == "/proc/meminfo"


def test_tensorflows_name_of_a_gpu_is_its_place_in_the_drivers_list(machine, tmp_path):
    command = tmp_path / "tfmemprof"
    command.symlink_to(harness.COMMAND)
    row = machine_row(machine("l40s"), "--device", "/GPU:0", command=command)
    assert int(row["device_total_bytes"]) == 46068 * MIB
    none = harness.execute([command, "monitor", "--device", "/GPU:1", "--duration", "0"], env=machine("l40s")).ok()
    assert b"/GPU:1 does not exist" in none.stdout


def test_track_of_a_process_that_is_not_recorded_has_the_drivers_figure(machine, sleeper):
    env = machine("a100-80gb", {4101: sleeper.pid})
    done = run(env, "track", "--pid", str(sleeper.pid), "--duration", "0", "--format", "jsonl")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    events = [e for e in events if e["event_type"] == "sample"]
    on_device = [e for e in events if e["device_id"] == 0]
    assert [e["metadata"]["basis"] for e in events if e["device_id"] == -1] == ["process_rss"]
    (event,) = on_device
    assert event["pid"] == sleeper.pid and event["metadata"]["basis"] == "driver"
    assert event["allocator_allocated_bytes"] == 17822 * MIB
    assert event["device_used_bytes"] == (20314 + 633) * MIB and event["device_total_bytes"] == 81920 * MIB


def test_a_recorded_process_has_its_own_exact_figures_beside_the_drivers(machine, start):
    """The recording is of PyTorch's allocator; what it held at its end is in the allocator's own snapshot."""
    recordings = harness.ROOT / "tests" / "fixtures" / "recordings"
    segments = pickle.loads((recordings / "pools_2.15.pickle").read_bytes())["segments"]
    process = start(recordings / "pools_2.15.gmp")
    env = machine("a100-80gb", {4101: process.pid})
    done = run(env, "track", "--pid", str(process.pid), "--duration", "0", "--format", "jsonl")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (event,) = [e for e in events if e["event_type"] == "sample" and e["device_id"] == 0]
    assert event["allocator_allocated_bytes"] == sum(s["allocated_size"] for s in segments)
    assert event["allocator_reserved_bytes"] == sum(s["total_size"] for s in segments)
    assert event["device_used_bytes"] == (20314 + 633) * MIB and event["device_total_bytes"] == 81920 * MIB
    about = event["metadata"]
    assert (about["basis"], about["device"], about["accelerator"]) == ("exact", "cuda:0", 0)
    assert about["process_device_bytes"] == 17822 * MIB and about["driver_reserved_bytes"] == 633 * MIB
    assert about["others_device_bytes"] == (20314 - 17822) * MIB


def test_without_a_list_of_processes_the_share_of_each_is_unknown(machine, start):
    process = start(harness.ROOT / "tests" / "fixtures" / "recordings" / "pools_2.15.gmp")
    done = run(machine("l40s"), "track", "--pid", str(process.pid), "--duration", "0", "--format", "jsonl")
    (event,) = [e for e in map(json.loads, done.stdout.splitlines()) if e["event_type"] == "sample"]
    assert event["device_used_bytes"] == (12000 + 582) * MIB
    why = "this user may not query it (NVML: no permission)"
    assert event["metadata"]["unknown"] == {"process_device_bytes": why, "others_device_bytes": why}


def test_diagnose_writes_the_devices_without_command_lines_and_sees_a_full_one(machine, tmp_path):
    env = machine("h200")
    board = tmp_path / "board.yaml"
    board.write_text(board.read_text().replace("allocated_mib: 70000", "allocated_mib: 140000"))
    out = tmp_path / "d"
    arguments = ["diagnose", "--device", "0", "--duration", "0.1", "--output", out]
    done = harness.execute([*harness.out_of_sight(), harness.COMMAND, *arguments], env=env)
    environment = json.loads((out / "environment.json").read_text())
    (device,) = environment["gpu"]["devices"]
    assert device["used_bytes"] == 140614 * MIB
    assert [set(p) & {"command"} for p in device["processes"]] == [set(), set()]
    summary = json.loads((out / "diagnostic_summary.json").read_text())
    validator("diagnostic-summary.schema.json").validate(summary)
    assert done.rc == 2 and b"Findings: high utilization\n" in done.stdout
    assert summary["total_bytes"] == 143771 * MIB and summary["allocated_bytes"] == 140614 * MIB
    assert summary["utilization_ratio"] == pytest.approx(140614 / 143771)
