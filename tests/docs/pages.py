"""The pages of the documentation, their code and their links."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))]

_FENCED = re.compile(r"^( *)```(\w*)[ ]?([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


@dataclass(frozen=True)
class Code:
    """A fenced block, in a list too: the line of its fence, its language, what stands after that, its text."""

    line: int
    language: str
    note: str
    text: str


def blocks(page: str) -> list[Code]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Code(text.count("\n", 0, m.start()) + 1, m[2], m[3], m[4].replace("\n" + m[1], "\n").removeprefix(m[1])) for m in _FENCED.finditer(text)]


def program(page: str) -> str:
    """The Python blocks of a page as one program, each at its own line; those with a `needs` note are left out."""
    lines: list[str] = []
    for block in blocks(page):
        if block.language == "python" and "needs" not in block.note:
            lines += [""] * (block.line - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n" if lines else ""


def links(page: str) -> list[tuple[str, str]]:
    """(file, anchor) of every link outside of code; either may be empty."""
    text = _FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))
    # Of a link whose text is code, [`run`](run.md), the text goes and the link stays.
    return [(match[1], match[2] or "") for match in _LINK.finditer(re.sub(r"`[^`\n]*`", "", text))]


_FIGURE = re.compile(r"\d[\d.]*( [KMGT]iB| [mu]?s\b)?")


def shape(line: str) -> str:
    """A line of a report without its figures, the space before it, and the folders of files."""
    return _FIGURE.sub("#", " ".join(word.rpartition("/")[2] or word for word in line.split()))


def anchors(path: Path) -> set[str]:
    """The names that a page's headings get on the site."""
    text = _FENCED.sub("", path.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}
