"""`tfmemprof` in a wheel: executes the command `gpumemprof` under this name.

A wheel cannot contain a link, and the command checks the name that it was called by.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def main() -> None:
    """Becomes the command. Exit code 1, with one line, where it is not there."""
    name = "gpumemprof"
    beside = [Path(sys.argv[0]).parent / name, Path(sysconfig.get_path("scripts")) / name]
    found = next((str(path) for path in beside if os.access(path, os.X_OK)), None) or shutil.which(name)
    if found is None:
        print(f"tfmemprof: {name} is neither beside this Python nor in PATH: install gpumemprof again", file=sys.stderr)
        sys.exit(1)
    try:
        os.execv(found, ["tfmemprof", *sys.argv[1:]])
    except OSError as error:
        print(f"tfmemprof: {found}: {error.strerror}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
