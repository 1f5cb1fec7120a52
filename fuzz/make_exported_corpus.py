#!/usr/bin/env python3
"""Writes small exported models for fuzz_onnx_model: python fuzz/make_exported_corpus.py fuzz/corpus/fuzz_onnx_model"""

import struct
import sys
from pathlib import Path

from make_pprof_corpus import message

FLOAT, INT64 = 1, 7
WEIGHT = message((1, 4), (1, 8), (2, FLOAT), (8, b"w"), (9, bytes(128)))
EXTERNAL = message((1, 1024), (2, FLOAT), (8, b"far"), (14, 1))
SPARSE = message((1, message((1, 3), (2, FLOAT))), (2, message((1, 3), (2, INT64))), (3, 100))


def value(name, kind, *dimensions):
    shape = message(*((1, dimension) for dimension in dimensions))
    return message((1, name), (2, message((1, message((1, kind), (2, shape))))))


OPEN, FIXED, NAMELESS = message((2, b"batch")), message((1, 8)), message()
BRANCH = message((1, b"then_branch"), (6, message((5, WEIGHT))))
NODES = ((1, message((1, b"x"), (1, b"w"), (2, b"y"), (4, b"MatMul"))), (1, message((4, b"If"), (5, BRANCH))))
GRAPH = message(
    *NODES, (5, WEIGHT), (5, EXTERNAL), (15, SPARSE), (11, value(b"x", FLOAT, OPEN, FIXED)),
    (11, value(b"mask", INT64, NAMELESS)), (12, value(b"y", FLOAT, OPEN, FIXED)),
)  # fmt: skip


def pte():
    """A method without a name, and its plan of two buffers, as a flatbuffer."""
    head = struct.pack("<I4s24x", 48, b"ET12")
    fields = struct.pack("<HHHH", 8, 8, 0, 4) + bytes(8)  # at 32: the root has a vector of plans alone
    root = struct.pack("<iI", 48 - 32, 4)  # at 48
    plans = struct.pack("<II", 1, 28)  # at 56: one, at 88
    plan_fields = struct.pack("<HH9H2x", 22, 8, *[0] * 8, 4)  # at 64: sizes alone
    plan = struct.pack("<iI", 88 - 64, 4)  # at 88
    sizes = struct.pack("<I3Q", 3, 0, 4096, 512)  # at 96
    return head + fields + root + plans + plan_fields + plan + sizes


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "whole.onnx").write_bytes(message((1, 8), (7, GRAPH)))
    (folder / "empty.onnx").write_bytes(message((7, b"")))
    (folder / "whole.pte").write_bytes(pte())


if __name__ == "__main__":
    main()
