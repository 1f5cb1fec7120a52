"""An answer in pages that a model can read: at most MOST_TOKENS each, whatever a command printed."""

from __future__ import annotations

import re

MOST_TOKENS = 4_000
_FOR_THE_FOOT = 250
_MOST_LINE_TOKENS = 1_000
_WORDS = re.compile(r"[a-z ]+")


def tokens_of(text: str) -> int:
    """Counted high, as tokenizers differ: three for five small letters or blanks, which random ones do not exceed, and one
    for each byte of everything else."""
    words = sum(len(found) for found in _WORDS.findall(text))
    return (3 * words + 4) // 5 + len(text.encode("utf-8", "replace")) - words


def page_of(text: str, number: int) -> tuple[str, int]:
    """Page `number`, from 1 on, and how many there are."""
    pages: list[list[str]] = [[]]
    room = MOST_TOKENS - _FOR_THE_FOOT
    for line in text.splitlines():
        line = _cut(line.rstrip())
        need = tokens_of(line) + 1
        if need > room:
            pages.append([])
            room = MOST_TOKENS - _FOR_THE_FOOT
        pages[-1].append(line)
        room -= need
    shown = "\n".join(pages[number - 1]) if number <= len(pages) else ""
    return shown, len(pages)


def _cut(line: str) -> str:
    """A line that alone would fill a page loses its middle, and says how much."""
    if tokens_of(line) <= _MOST_LINE_TOKENS:
        return line
    keep = _MOST_LINE_TOKENS // 8  # characters at each end: four bytes each, at most
    return f"{line[:keep]} … {len(line) - 2 * keep} characters left out … {line[-keep:]}"
