"""Writes the small files of fuzz/corpus/fuzz_xplane and fuzz_bfc_dump: make_tensorflow_corpus.py

Protobuf by hand, so that it needs nothing and every form of a field is in them.
"""

from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


def varint(value):
    value &= (1 << 64) - 1  # negative numbers take ten bytes
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    """An integer, or a text, or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def dictionary(number, names):
    entry = [message((1, i), (2, message((1, i), (2, name)))) for i, name in enumerate(names, 1)]
    return b"".join(field(number, one) for one in entry)


STATS = ["allocator_name", "bytes_allocated", "peak_bytes_in_use", "requested_bytes", "allocation_bytes", "addr",
         "tf_op", "GPU_0_bfc", "profile_start_time", "id", "data_type", "shape"]  # fmt: skip


def event(kind, time_ps, address, size, total, operation="", allocator=None, tensor=None):
    name = message((1, 1), (5, allocator)) if allocator else message((1, 1), (7, 8))
    stats = [name, message((1, 2), (4, total)), message((1, 3), (4, 4096)), message((1, 4), (3, size - 7)),
             message((1, 5), (4, size)), message((1, 6), (4, address))]  # fmt: skip
    if operation:
        stats.append(message((1, 7), (5, operation)))
    if tensor:
        step, data_type, shape = tensor
        stats += [message((1, 10), (4, step)), message((1, 11), (4, data_type)), message((1, 12), (5, shape))]
    return message((1, kind), (2, time_ps), *[(4, stat) for stat in stats])


def profile(events, *, start_ns=5000, began_ns=0):
    line = message((1, 77), (2, "python"), (3, start_ns), *[(4, one) for one in events])
    names = dictionary(4, ["MemoryAllocation", "MemoryDeallocation"]) + dictionary(5, STATS)
    space = field(1, message((2, "/host:CPU"), (3, line)) + names)
    if began_ns:
        times = message((2, "Task Environment")) + dictionary(5, STATS) + field(6, message((1, 9), (3, began_ns)))
        space += field(1, times)
    return space + message((3, "some events were dropped"), (4, "host"))


def chunk(address, size, requested, in_use, operation=""):
    fields = [(1, address), (2, size), (3, requested), (4, -1)]
    return message(*fields, *([(5, operation)] if operation else []), *([(8, 1)] if in_use else []))


def dump(chunks):
    bins = [message((2, 512), (3, 1024), (4, 1), (5, 2)), message((1, 1))]
    statistics = message((1, 9), (2, 512), (3, 2048), (4, 512)) + varint(5 << 3 | 5) + b"\0\0\0\x3f"
    return message((1, "GPU_0_bfc"), *[(2, one) for one in bins], *[(3, one) for one in chunks], (5, statistics))


FILES = {
    "fuzz_xplane/window.pb": profile(
        [
            event(1, 1_000_000, 0x1000, 512, 768, "model/dense_1/MatMul"),
            event(2, 2_000_000, 0x2000, 256, 512),
            event(1, 3_000_000, 0x2000, 256, 256, "Fill", allocator="mklcpu"),
            event(2, 4_000_000, 0x1000, 512, 0, "AssignVariableOp"),
        ],
        began_ns=1_700_000_000_000_000_000,
    ),
    "fuzz_xplane/contradiction.pb": profile([event(1, 0, 1, 256, 100), event(1, -5, 1, 256, 9)]),
    "fuzz_xplane/tensors.pb": profile(
        [
            event(1, 1, 0x1000, 512, 512, "dense/MatMul", tensor=(-7, 1, "[32,4]")),
            event(1, 2, 0x2000, 256, 768, "Fill", tensor=(0, 99, "[]")),
            event(1, 3, 0x3000, 256, 1024, tensor=(3, 0, "no shape")),
        ]
    ),
    "fuzz_xplane/empty.pb": profile([]),
    "fuzz_bfc_dump/pieces.pb": dump(
        [chunk(0x1000, 512, 300, True), chunk(0x1200, 256, 9, False), chunk(0x1300, 256, 256, True, "dense/MatMul"),
         chunk(0x9000, 2048, 0, False)]  # fmt: skip
    ),
    "fuzz_bfc_dump/one.pb": dump([chunk(0x1000, 256, 1, True)]),
}

for name, data in FILES.items():
    path = CORPUS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
