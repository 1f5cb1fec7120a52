"""torch.empty in miniature, for programs that are run many times: allocate.c through ctypes."""
import ctypes
import os

_library = ctypes.CDLL(os.environ["ALLOCATE_LIBRARY"])
_library.allocate.restype = ctypes.c_void_p
_library.allocate.argtypes = [ctypes.c_size_t]
_library.release.argtypes = [ctypes.c_void_p]
allocate, release = _library.allocate, _library.release


class Block:
    """A block that is freed when it is dropped, as a tensor is."""

    address = None

    def __init__(self, size):
        self.address = allocate(size)

    def __del__(self, release=release):
        release(self.address)
