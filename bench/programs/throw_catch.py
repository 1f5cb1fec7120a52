"""How long a C++ exception takes that is thrown through ten frames of a library opened by Python.
Prints JSON: ns a throw, block by block, and which file's unwinder it runs in."""
import argparse
import ctypes
import json


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, help="libthrow_catch.so")
    parser.add_argument("--torch", action="store_true",
                        help="import torch and allocate first, so that recording is under way")
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--throws", type=int, default=5_000)
    options = parser.parse_args()
    if options.torch:
        import torch

        torch.ones(1000).sum()

    library = ctypes.CDLL(options.library)
    library.throw_catch_ns.restype = ctypes.c_double
    library.throw_catch_ns.argtypes = [ctypes.c_uint64]
    library.unwinder_path.restype = ctypes.c_char_p
    library.throw_catch_ns(options.throws)
    ns = [library.throw_catch_ns(options.throws) for _ in range(options.blocks)]
    print(json.dumps({"throw_ns": ns, "unwinder": library.unwinder_path().decode()}))


if __name__ == "__main__":
    main()
