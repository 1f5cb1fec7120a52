"""Programs by seed that pin host memory: each has one trouble of its cache, or only looks like it. Run by the template of PyTorch's
own allocator (`pinned.cc`), and told as a snapshot's host_segments and host_traces."""

import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from call_lists import MIB
from trouble_programs import Program

HERE = Path(__file__).resolve().parent
FIRST_US = 1_700_000_000_010_000  # after the calls of the device, which reference.cc times from 1.7e15 on
TORCH = Path(sysconfig.get_paths()["purelib"]) / "torch"


def pin(program: Program, site: str, size: int) -> int:
    program.pinned_made += 1
    program.pinned.append((f"a {program.pinned_made} {size}", site))
    return program.pinned_made


def unpin(program: Program, *blocks: int) -> None:
    program.pinned += [(f"f {block}", "free") for block in blocks]


def taken_bytes(program: Program) -> int:
    """By what was pinned so far, each buffer rounded up: so much more is worth telling of."""
    return sum(1 << (int(call.split()[2]) - 1).bit_length() for call, _ in program.pinned if call[0] == "a")


def rounded(program: Program) -> None:
    """Buffers a little above a power of two, all in use at the same time, among some that are not rounded."""
    power = 2 ** program.draw.randrange(4, 10) * MIB
    share = program.draw.randrange(52, 80)
    for _ in range(max(program.draw.randrange(3, 9), 400 * MIB // power)):
        pin(program, "buffer", power * share // 100)
        if program.draw.random() < 0.3:
            pin(program, "whole", power // 4)


def growing(program: Program) -> None:
    """Batches become longer: each doubling pins another buffer, and one is in use at a time."""
    size = max(program.draw.randrange(8, 20) * MIB, taken_bytes(program) // 16)
    size = 2 ** (size - 1).bit_length() - 4096  # hardly rounded
    for _ in range(5 if program.pinned else program.draw.randrange(5, 8)):
        for _ in range(program.draw.randrange(1, 4)):
            unpin(program, pin(program, "batch", size))
        size = 2 * (size + 4096) - 4096


def widths(program: Program) -> None:
    """Each epoch has images of another size, of which several are in use at a time."""
    count = program.draw.randrange(2, 5)
    least = max(3, (taken_bytes(program) // (8 * count * MIB)).bit_length())
    powers = list(range(least, least + (4 if program.pinned else program.draw.randrange(4, 6))))
    program.draw.shuffle(powers)
    for power in powers:
        for _ in range(2):
            unpin(program, *[pin(program, "images", 2**power * MIB) for _ in range(count)])


def whole_buffers(program: Program) -> None:
    size = 2 ** program.draw.randrange(3, 10) * MIB
    for _ in range(max(program.draw.randrange(3, 9), 300 * MIB // size)):
        pin(program, "buffer", size)


def prefetched(program: Program) -> None:
    """A few buffers, used again and again."""
    size = 2 ** program.draw.randrange(4, 9) * MIB - program.draw.randrange(4096)
    waiting = [pin(program, "prefetch", size) for _ in range(program.draw.randrange(2, 6))]
    for _ in range(program.draw.randrange(10, 40)):
        unpin(program, waiting.pop(0))
        waiting.append(pin(program, "prefetch", size))


def all_in_use(program: Program) -> None:
    """Grows to the end, and all of it is in use."""
    for _ in range(program.draw.randrange(20, 60)):
        pin(program, "offload", 16 * MIB)


def given_back(program: Program) -> None:
    """Ever larger, and the cache is emptied each time."""
    for power in range(3, program.draw.randrange(7, 10)):
        unpin(program, pin(program, "batch", 2**power * MIB))
        program.pinned.append(("e", "empty"))


def warmed_up(program: Program) -> None:
    """Several sizes at first; then the same ones."""
    sizes = [2**power * MIB for power in program.draw.sample(range(3, 8), 3)]
    for _ in range(program.draw.randrange(10, 30)):
        for size in sizes:
            unpin(program, pin(program, "batch", size))


def not_rounded(program: Program) -> None:
    program.pinned_settings = "pinned_max_round_threshold_mb:1"
    for _ in range(program.draw.randrange(4, 9)):
        pin(program, "buffer", program.draw.randrange(90, 100) * MIB)


def small(program: Program) -> None:
    for _ in range(program.draw.randrange(3, 9)):
        pin(program, "buffer", program.draw.randrange(1100, 1900) * 1024)


PINNED_WITH = {"pinned_rounding": [rounded], "pinned_cache_growth": [growing, widths]}
PINNED_CLEAN = [whole_buffers, prefetched, all_in_use, given_back, warmed_up, not_rounded, small]


def build(folder: Path) -> Path:
    """The allocator's program; built where it is not there yet."""
    program, source = folder / "pinned", HERE / "pinned.cc"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        command = ["g++", "-O1", "-std=c++20", "-w", f"-I{TORCH / 'include'}", str(source), "-o", str(program)]
        command += [f"-L{TORCH / 'lib'}", "-lc10", f"-Wl,-rpath,{TORCH / 'lib'}", "-Wl,--allow-shlib-undefined"]
        subprocess.run(command, check=True)
    return program


def recorded(allocator: Path, program: Program) -> dict[str, Any]:
    """host_segments and host_traces, as PyTorch 2.14 writes them."""
    calls = "".join(f"{call}\n" for call, _ in program.pinned)
    environment = os.environ | {"PYTORCH_ALLOC_CONF": program.pinned_settings}
    done = subprocess.run([str(allocator)], input=calls, env=environment, capture_output=True, text=True, check=True)
    answers = iter(done.stdout.splitlines())
    address_of: dict[str, int] = {}
    size_of: dict[int, int] = {}  # of the blocks that the driver gave
    asked_of: dict[int, int] = {}  # of those in use
    events: list[dict[str, Any]] = []

    def add(action: str, address: int, size: int, line: int) -> None:
        frames = [{"filename": "train.py", "line": line, "name": site}]
        events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": FIRST_US + len(events), "frames": frames})

    for line, (call, site) in enumerate(program.pinned, 1):
        kind, *words = call.split()
        if kind == "f":
            address = address_of.pop(words[0])
            size = asked_of.pop(address)
            add("free_requested", address, size, line), add("free_completed", address, size, line)
        while kind == "a":
            answer, first, second = next(answers).split()
            if answer == "M":
                size_of[int(first)] = int(second)
                add("segment_alloc", int(first), int(second), line)
            elif answer == "A":
                address_of[first], asked_of[int(second)] = int(second), int(words[1])
                add("alloc", int(second), int(words[1]), line)
                break
        if kind == "e":
            for address in [address for address in size_of if address not in asked_of]:
                answer, first, second = next(answers).split()
                assert answer == "F", answer
                add("segment_free", int(first), size_of.pop(int(first)), line)
    (total,) = [int(answer.split()[1]) for answer in answers]
    assert total == sum(size_of.values()), "what the allocator counts is what the driver gave"
    return {"host_segments": [segment(a, size, asked_of.get(a, 0)) for a, size in size_of.items()], "host_traces": [events]}


def segment(address: int, size: int, asked: int) -> dict[str, Any]:
    """A block is a segment of its own."""
    used = size if asked else 0
    block = {"address": address, "size": size, "requested_size": asked, "frames": [],
             "state": "active_allocated" if asked else "inactive"}  # fmt: skip
    return {"device": 0, "address": address, "total_size": size, "allocated_size": used, "active_size": used,
            "requested_size": asked, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
            "frames": [], "blocks": [block]}  # fmt: skip
