"""What data workers keep: told once for all of them, and with its name, though a forked process calls no exit handler."""

import json

import harness
import nested
import pytest

pytest.importorskip("torch")

SAMPLES, WORKERS, BATCH, EDGE = 240, 2, 8, 64
BLOCK_BYTES = 3 * EDGE * EDGE * 4
PROGRAM = f"""
import sys
import torch

class Images(torch.utils.data.Dataset):
    def __init__(self):
        self.cache = []
    def __len__(self):
        return {SAMPLES}
    def __getitem__(self, index):
        image = torch.randn(3, {EDGE}, {EDGE})
        self.cache.append(image)
        return image.mean(0)

def main():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear({EDGE * EDGE}, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for rows in torch.utils.data.DataLoader(Images(), {BATCH}, num_workers={WORKERS}, multiprocessing_context=sys.argv[1]):
        optimizer.zero_grad()
        net(rows).square().mean().backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_workers_that_keep_the_same_are_one_leak_with_its_holder(tmp_path, how):
    program = tmp_path / "keeps.py"
    program.write_text(PROGRAM)
    done = nested.record(tmp_path / "recording", [harness.PYTHON, program, how], ["-q"], timeout=300).ok()
    report = json.loads(harness.execute([harness.COMMAND, "analyze", done.folder, "--format", "json"]).ok().stdout)
    (leak,) = (one for one in report["findings"] if one["kind"] == "leak")
    evidence = leak["evidence"]
    assert (leak["name"], evidence["holder_name"]) == ("worker_growth", "Images.cache")
    assert evidence["processes"] == WORKERS
    assert evidence["bytes_a_step"] == BATCH * BLOCK_BYTES  # a step is a task
    # Every image that was made is kept until its worker ends.
    assert leak["bytes"] == SAMPLES // WORKERS * BLOCK_BYTES
    assert evidence["all_processes_bytes"] == SAMPLES * BLOCK_BYTES
    advice = json.loads(harness.execute([harness.COMMAND, "advise", done.folder, "--format", "json"]).ok().stdout)["advice"]
    (told,) = (one for one in advice if one["kind"] == "worker_growth")
    assert told["bytes"] == leak["bytes"]  # the last image is made at the worker's peak
    assert told["title"] == f"{leak['title']}; {WORKERS} processes do the same, and these are the figures of the worst"


STEPS, ROWS, WIDTH = 20, 16, 1024
PARTS = f"""
import sys
import torch

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return {STEPS * ROWS}
    def __getitem__(self, index):
        return torch.randn({WIDTH})

def main(take):
    net = torch.nn.Linear({WIDTH}, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    seen = []
    for rows in torch.utils.data.DataLoader(Rows(), {ROWS}, num_workers=1):
        optimizer.zero_grad()
        net(rows).square().mean().backward()
        optimizer.step()
        seen.append(take(rows[:, :8]))

if __name__ == "__main__":
    main(dict(view=lambda part: part, copy=torch.clone)[sys.argv[1]])
"""


def test_views_of_shared_batches_are_advised_on_with_what_copies_save(tmp_path):
    program = tmp_path / "parts.py"
    program.write_text(PARTS)
    peaks, advice = {}, {}
    for how in ("view", "copy"):
        done = nested.record(tmp_path / how, [harness.PYTHON, program, how], ["-q"], timeout=300).ok()
        devices = harness.analysis(done.folder)["devices"]
        peaks[how] = max(d["peak"]["requested_bytes"] for d in devices if d["device"] == "shared memory")
        told = json.loads(harness.execute([harness.COMMAND, "advise", done.folder, "--format", "json"]).ok().stdout)
        advice[how] = told["advice"]
    (kept,) = (one for one in advice["view"] if one["kind"] == "inputs_kept")
    batch = ROWS * WIDTH * 4
    assert kept["bytes"] >= (STEPS - 4) * batch
    # The loop's variable keeps a batch until the next one is there.
    assert kept["bytes"] - (peaks["view"] - peaks["copy"]) in (0, batch)
    assert not any(one["kind"] == "inputs_kept" for one in advice["copy"])


AHEAD = 6
WAITING = PARTS[:PARTS.index("def main")] + f"""
import glob
import os
import time

def shared_files(pid):
    paths = glob.glob(f"/proc/{{pid}}/fd/*")
    return sum(os.path.islink(path) and "torch_" in os.readlink(path) for path in paths)

def main():
    batches = iter(torch.utils.data.DataLoader(Rows(), {ROWS}, num_workers=1, prefetch_factor={AHEAD}))
    next(batches)
    (worker,) = batches._workers
    until = time.monotonic() + 60
    # The first batch's descriptor may still be open: only the queue says that the last one was made.
    def waits():
        return batches._worker_result_queue.qsize(), shared_files(worker.pid)
    while waits() != ({AHEAD}, {AHEAD}) and time.monotonic() < until:
        time.sleep(0.05)
    print(*waits())

main()
"""


def test_what_waits_in_a_queue_is_told_though_no_process_maps_it(tmp_path):
    program = tmp_path / "waits.py"
    program.write_text(WAITING)
    done = nested.record(tmp_path / "recording", [harness.PYTHON, program], ["-q"], timeout=300).ok()
    assert done.stdout.split() == [b"%d" % AHEAD] * 2  # batches whose pages the worker's descriptors keep
    text = harness.execute([harness.COMMAND, "analyze", done.folder]).ok().stdout.decode()
    waits = AHEAD * ROWS * WIDTH * 4 // 1024
    assert f"at least {waits} KiB were sent and not received by the end." in " ".join(text.split())
