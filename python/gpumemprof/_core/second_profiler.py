"""What `import gpumemprof` says where stormlog, which installs a command of this name, is in the same environment."""

from __future__ import annotations

import warnings

TEXT = "stormlog is installed in this environment, too, and has a command gpumemprof, up to 0.2.6 also a package: use one of them per environment"


_said: dict[str | tuple[str, type[Warning], int], int] = {}  # what warnings remembers


def warn() -> None:
    """Warns once a process. A warning and not a print: the program can filter it, and its streams stay its own. Where
    warnings are errors the import succeeds all the same: nothing is wrong with this package."""
    try:
        # Without a file, so that it is one line and shows no source.
        warnings.warn_explicit(TEXT, UserWarning, "gpumemprof", 1, module="gpumemprof", registry=_said)
    except UserWarning:
        pass
