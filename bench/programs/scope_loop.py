"""What exact counting costs where nothing else happens: allocator events in a C++ loop, with the probe preloaded and
recording nothing. Prints JSON: ns an event, and ns of a scope's begin and end, of each round."""
import argparse
import contextlib
import ctypes
import json

import torch  # noqa: F401  (brings libc10 in)

CURRENT_CONTEXT = ctypes.c_void_p(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True, help="libhook_loop.so")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--loops", type=int, default=200_000)
    parser.add_argument("--counting", action="store_true")
    parser.add_argument("--scopes", type=int, default=0, help="how many nested scopes are open around the events")
    options = parser.parse_args()

    loops = ctypes.CDLL(options.library)
    loops.hook_loop_ns.restype = loops.scope_loop_ns.restype = ctypes.c_double
    loops.hook_loop_ns.argtypes = [ctypes.c_uint64]
    loops.scope_loop_ns.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    api = ctypes.CDLL(None)
    api.gpumemprof_scope_begin.restype = ctypes.c_uint64
    api.gpumemprof_scope_begin.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    api.gpumemprof_scope_end.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    if options.counting and not api.gpumemprof_counting_begin():
        raise SystemExit("scope_loop.py: exact counting cannot be switched on")

    result = {"event_ns": [], "scope_ns": [], "context_scope_ns": []}
    room = ctypes.create_string_buffer(256)
    with contextlib.ExitStack() as stack:
        for _ in range(options.scopes):
            stack.callback(api.gpumemprof_scope_end, api.gpumemprof_scope_begin(0, -1, None), room)
        for _ in range(options.rounds):
            loops.hook_loop_ns(options.loops // 10)
            result["event_ns"].append(loops.hook_loop_ns(options.loops) / 2)  # one alloc, one free
            if options.counting:
                result["scope_ns"].append(loops.scope_loop_ns(options.loops, None))
                result["context_scope_ns"].append(loops.scope_loop_ns(options.loops, CURRENT_CONTEXT))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
