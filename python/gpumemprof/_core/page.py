"""The command's page in a cell of a notebook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from html import escape
from pathlib import Path


def command() -> str:
    """The command beside this Python, else that of PATH. FileNotFoundError if there is none."""
    own = os.environ.get("GPUMEMPROF_BIN") or os.path.join(sysconfig.get_path("scripts"), "gpumemprof")
    found = own if os.access(own, os.X_OK) else shutil.which("gpumemprof")
    if found is None:
        raise FileNotFoundError("the command gpumemprof is not installed beside this Python")
    return found


def page_of(path: str) -> str:
    """What `gpumemprof view PATH --html` writes: one file of at most 10 MB. ValueError with the command's one line."""
    with tempfile.TemporaryDirectory(prefix="gpumemprof-") as folder:
        out = Path(folder, "page.html")
        done = subprocess.run(
            [command(), "view", os.path.abspath(path), "--no-index", "--html", str(out)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise ValueError(done.stderr.strip().removeprefix("gpumemprof: "))
        return out.read_text(encoding="utf-8")


def framed(html: str, height: int = 640) -> str:
    """A frame of its own, which may run the page's script and nothing of the notebook's."""
    return f'<iframe sandbox="allow-scripts" style="width:100%;height:{height}px;border:0" srcdoc="{escape(html)}"></iframe>'
