"""Runs one of the guide's blocks for TensorFlow as a program of its own: run_tensorflow_block.py LINE BASIS."""

import contextlib
import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import documents  # noqa: E402
from execute import execute  # noqa: E402


def main(line, basis):
    from tensorflow_blocks import BLOCKS

    given, check = BLOCKS[line]
    ns, printed = {"__name__": "__main__", **given()}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        execute(documents.guide_blocks("python")[line].text, f"guide-{line}", ns)
    check(ns, printed.getvalue(), basis)


main(int(sys.argv[1]), sys.argv[2])
