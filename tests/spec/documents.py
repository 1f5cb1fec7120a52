"""Takes the examples out of the documents that promised them. The documents are not part of this repository.

They are read from `../shared/spec` beside it, or from the folder that GPUMEMPROF_SPEC names. A block of the guide is
known by the line of its fence, one of the class page, which has no fences, by how its first and last line begin.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(os.environ.get("GPUMEMPROF_SPEC", ROOT.parent / "shared" / "spec"))
GUIDE, CLASS_PAGE = FOLDER / "guide.md", FOLDER / "gpumemoryprofiler-class.md"
PRACTICES = FOLDER / "pytorch-memory-practices.md"

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# How the first and the last line of each block of the class page begin, in the page's order.
CLASS_PAGE_MARKS = {
    "function": ("import torch", 'print(f"Execution'),
    "context": ("with profiler.profile_context", "    result ="),
    "monitoring": ("profiler.start_monitoring", 'print(f"Collected'),
    "options": ("profiler = GPUMemoryProfiler(", ")"),
    "result": ("result = profiler", "result.memory_peak "),
    "snapshot": ("snapshot = ", "snapshot.device_id"),
    "summary": ("summary = ", '    print(f"  Peak'),
    "peak": ("# Peak memory", "peak = "),
    "error": ("try:", "    raise"),
    "clear": ("profiler.clear_results", "# New baseline"),
    "tensors": ("profiler = GPUMemoryProfiler(track", 'print(f"Tensors deleted'),
    "devices": ("# All of these", "profiler = GPUMemoryProfiler(device=None"),
}


@dataclass(frozen=True)
class Block:
    """A piece of code: the line of the document where it begins, its language, its text."""

    line: int
    language: str
    text: str


def missing() -> str:
    """Why the documents cannot be read; empty where they can."""
    absent = [path.name for path in (GUIDE, CLASS_PAGE, PRACTICES) if not path.is_file()]
    return f"{' and '.join(absent)} not in {FOLDER}: set GPUMEMPROF_SPEC to the folder that has them" if absent else ""


def guide_blocks(language: str) -> dict[int, Block]:
    """The guide's fenced blocks of one language by the line of the fence, 1 being the first line."""
    return _fenced(GUIDE.read_text(encoding="utf-8"), language)


def practice_blocks() -> dict[str, Block]:
    """The practices page's Python blocks by the heading of their chapter, which has one each."""
    found = {}
    text = PRACTICES.read_text(encoding="utf-8")
    for line, block in _fenced(text, "python").items():
        heading = [row for row in text.splitlines()[: line - 1] if row.startswith("## ")][-1].removeprefix("## ")
        if heading in found:
            raise LookupError(f"{PRACTICES.name}: two blocks under {heading!r}")
        found[heading] = block
    return found


def _fenced(text: str, language: str) -> dict[int, Block]:
    found = {}
    for match in _FENCED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[1] == language:
            found[line] = Block(line, language, match[2])
    return found


def class_page_blocks() -> dict[str, Block]:
    """The class page's blocks by name. LookupError where a mark is not found: then the page is another one."""
    lines = CLASS_PAGE.read_text(encoding="utf-8").splitlines()
    found, at = {}, 0
    for name, (first, last) in CLASS_PAGE_MARKS.items():
        begin = _line_that_begins(lines, first, at)
        end = _line_that_begins(lines, last, begin)
        found[name] = Block(begin + 1, "python", "\n".join(lines[begin : end + 1]) + "\n")
        at = end + 1
    return found


def _line_that_begins(lines: list[str], start: str, at: int) -> int:
    for number in range(at, len(lines)):
        if lines[number].startswith(start):
            return number
    raise LookupError(f"{CLASS_PAGE.name}: no line from {at + 1} on begins with {start!r}")
