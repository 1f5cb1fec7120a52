"""Where this process is recorded."""

from __future__ import annotations

import os

# Of a recording that began with `gpumemprof.attach(folder)`; `gpumemprof run` says it in the environment.
attached: str | None = None


def recording_folder() -> str | None:
    """None if it is not recorded."""
    return attached or os.environ.get("GPUMEMPROF_DIR") or None
