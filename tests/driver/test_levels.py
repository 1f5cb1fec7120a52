"""What the driver had handed out over time is a chart of the page, and so a lane below its own."""

import harness
from carried_page import CarriedPage

CODE = """
import time
runtime, torch, blas = library("libcudart.so.12"), library("libc10_cuda.so", 0), library("libcublas.so.12")
runtime.begin()
pool = runtime.malloc(20 * MIB)
torch.report(pool, 5 * MIB, 5 * MIB, 20 * MIB)
time.sleep(0.02)
workspace = blas.malloc(32 * MIB)
time.sleep(0.02)
blas.free(workspace)
time.sleep(0.02)
torch.report(pool, -5 * MIB, 0, 20 * MIB)
"""


def charts(folder, page):
    harness.execute([harness.COMMAND, "analyze", folder, "--format", "html", "-o", page]).ok()
    document = CarriedPage(page.read_text()).files[0]["document"]
    return [part for section in document["sections"] for part in section["parts"] if part["kind"] == "chart"]


def test_the_lane_has_the_highest_level_and_the_last_one(record, tmp_path):
    (lane,) = [one for one in charts(record(CODE).folder, tmp_path / "page.html") if one["title"].startswith("driver, ")]
    lines = {line["name"]: line["bytes"] for line in lane["lines"]}
    assert lane["title"] == "driver, cuda:0"
    assert max(lines["handed out by the driver"]) == 52 << 20 and lines["handed out by the driver"][-1] == 20 << 20
    assert set(lines["reserved by the framework's allocator"]) == {20 << 20}
