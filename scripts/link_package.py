#!/usr/bin/env python3
"""Lets the Python that runs this import the packages in a folder of the working tree: link_package.py FOLDER.

A .pth file of its site-packages names the folder: edits are seen at once, and nothing is copied. Its other line is the
one that an installed package has too (python/gpumemprof.pth). Another virtual environment than .venv gets links to the
libraries that `make` put there: the package attaches the probe that lies in its interpreter's lib/.
"""

import sys
import sysconfig
from pathlib import Path

folder = Path(sys.argv[1]).resolve()
link = Path(sysconfig.get_paths()["purelib"]) / "gpumemprof.pth"
text = f"{folder}\n" + (folder / "gpumemprof.pth").read_text()
if not link.exists() or link.read_text() != text:
    link.write_text(text)

libraries = folder.parent / ".venv" / "lib"
if sys.prefix != sys.base_prefix and Path(sys.prefix).resolve() != libraries.parent:
    for library in sorted(libraries.glob("libgpumemprof_*.so")):
        link = Path(sys.prefix, "lib", library.name)
        if not link.is_symlink() and not link.exists():
            link.symlink_to(library)
