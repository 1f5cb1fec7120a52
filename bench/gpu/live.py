"""What is shown of a program that runs: `top` and `serve`, held to the program's own counters and the driver's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from typing import Any

from work import MIB, Row, TerminalView, Work

PROGRAM = """
import json, sys, time, torch
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(512, 4096, device="cuda")).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
print(json.dumps([torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]), flush=True)
time.sleep(25)
"""
PORT = 9817


def measure(work: Work) -> list[Row]:
    folder = work.recording("live")
    words = [work.command, "run", "-q", "-o", str(folder), "--", sys.executable, "-c", PROGRAM]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    server = None
    try:
        assert program.stdout is not None
        allocated, reserved = json.loads(program.stdout.readline())
        serve = [work.command, "serve", "--listen", f"127.0.0.1:{PORT}", str(folder)]
        server = subprocess.Popen(serve, stderr=subprocess.DEVNULL)
        time.sleep(2)
        shown = json.loads(work.gpumemprof("top", "--once", "--format", "json", folder))
        work.log("live", json.dumps(shown, indent=1))
        work.gpumemprof("top", "--once", folder, name="top-once")
        (work.out / "top.screen").write_bytes(screen([work.command, "top", str(folder)]))
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10) as answer:
            metrics = answer.read().decode()
        work.log("metrics", metrics)
        of_driver = subprocess.run(
            ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        work.log("nvidia-smi", of_driver)
    finally:
        for one in (program, server):
            if one is not None:
                one.terminate()
                one.wait(20)
    return rows(shown, allocated, reserved, of_driver)


def screen(argv: list[str]) -> bytes:
    """What a terminal of 140 columns and 45 rows gets in four seconds."""
    with TerminalView(*argv, columns=140, rows=45) as view:
        time.sleep(4)
        return bytes(view.output)


def rows(shown: dict[str, Any], allocated: int, reserved: int, of_driver: str) -> list[Row]:
    text = json.dumps(shown)
    found = [one for one in (shown.get("recordings") or []) for one in (one.get("devices") or [one])]
    return [
        Row(
            "`top --once` has the program's allocated bytes",
            f"{allocated / MIB:.1f} MiB",
            "in it",
            str(allocated) in text,
            {"found": found},
        ),
        Row(
            "`top --once` has the program's reserved bytes",
            f"{reserved / MIB:.1f} MiB",
            "in it",
            str(reserved) in text,
        ),
        Row("nvidia-smi", "; ".join(of_driver.split(os.linesep)).strip("; ")),
    ]
