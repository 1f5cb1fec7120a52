#!/usr/bin/env python3
"""Lets the Python that runs this import the packages in a folder of the working tree: link_package.py FOLDER.

One line in a .pth file of its site-packages: edits are seen at once, and nothing is copied. An editable install would
do the same through hooks that run at every start of that Python.
"""

import sys
import sysconfig
from pathlib import Path

folder = Path(sys.argv[1]).resolve()
link = Path(sysconfig.get_paths()["purelib"]) / "gpumemprof.pth"
line = f"{folder}\n"
if not link.exists() or link.read_text() != line:
    link.write_text(line)
