"""Runs a program for which the kernel refuses a system call with an error, as some file systems and sandboxes do.

usage: refuse.py shared-mmap|fallocate|both COMMAND…
"""
import ctypes
import os
import struct
import sys

LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
ENODEV, EOPNOTSUPP = 19, 95
SYS_MMAP, SYS_FALLOCATE, MAP_SHARED = 9, 285, 1
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2


def program(what):
    lines = [(LOAD, 0, 0, 0)]  # the number of the call
    if what in ("fallocate", "both"):
        lines += [(JUMP_EQUAL, 0, 1, SYS_FALLOCATE), (RETURN, 0, 0, ERRNO | EOPNOTSUPP)]
    if what in ("shared-mmap", "both"):
        # Libraries are mapped private; only a mapping that is exactly MAP_SHARED is refused.
        lines += [(JUMP_EQUAL, 0, 3, SYS_MMAP), (LOAD, 0, 0, 16 + 3 * 8),
                  (JUMP_EQUAL, 0, 1, MAP_SHARED), (RETURN, 0, 0, ERRNO | ENODEV)]
    return lines + [(RETURN, 0, 0, ALLOW)]


lines = program(sys.argv[1])
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
filter_program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(filter_program)), 0, 0):
    sys.exit("seccomp is not available here")
os.execvp(sys.argv[2], sys.argv[2:])
