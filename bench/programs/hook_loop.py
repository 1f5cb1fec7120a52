"""What one event costs where nothing else happens: a loop in C++ that calls alloc_cpu and free_cpu,
under 20 Python frames, with recording on and off in turn. Prints JSON: ns an event of each pair."""
import argparse
import ctypes
import json

import blocks
import torch  # noqa: F401  (brings libc10 in)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, help="libhook_loop.so")
    parser.add_argument("--tool", choices=("control", "gpumemprof", "memray"), required=True)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--loops", type=int, default=50_000)
    parser.add_argument("--frames", type=int, default=20)
    options = parser.parse_args()

    loop = ctypes.CDLL(options.library).hook_loop_ns
    loop.restype = ctypes.c_double
    loop.argtypes = [ctypes.c_uint64]
    if loop(1) < 0:
        raise SystemExit("hook_loop.py: c10::alloc_cpu was not found in this process")

    torch.empty(1)
    tool = blocks.TOOLS[options.tool]()
    pairs = []

    def measure():
        # Two events a turn of the loop: one alloc, one free.
        for index in range(options.pairs):
            pair = {}
            for is_on in ((index % 2 == 0), (index % 2 == 1)):
                if is_on:
                    tool.on()
                loop(options.loops // 10)
                pair["on_ns" if is_on else "off_ns"] = loop(options.loops) / 2
                if is_on:
                    tool.off()
            pairs.append(pair)

    def deeper(frames_left):
        return deeper(frames_left - 1) if frames_left else measure()

    # The module, main() and measure() are frames too.
    deeper(options.frames - 4)
    print(json.dumps({"tool": options.tool, "frames": options.frames, "pairs": pairs}))


if __name__ == "__main__":
    main()
