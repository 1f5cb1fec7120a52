"""What the programs of these checks use of PyTorch, by its allocator alone (tests/programs/allocate.c): so that a Python
for which no PyTorch is here is checked too. Allocating is a function in C, as PyTorch's is: no frame is added."""

import ctypes
import os

__version__ = "stand-in"
uint8 = 0
_library = ctypes.CDLL(os.environ["ALLOCATE_LIBRARY"])
_library.release.argtypes = [ctypes.c_void_p]


class Tensor:
    """A block that is freed when it is dropped."""

    def __init__(self, address, size):
        self._address, self._size = address, size

    def numel(self):
        return self._size

    def __mul__(self, _other):
        return self

    def __del__(self, release=_library.release):
        release(self._address)


_made = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
empty = _made(("allocate", _library), ((1, "size"), (1, "dtype", uint8)))
empty.errcheck = lambda address, _function, arguments: Tensor(address, arguments[0])


def ones(size, requires_grad=False):
    return empty(size)


class autograd:  # noqa: N801 - a module of PyTorch's
    class Function:
        @classmethod
        def apply(cls, x):
            result = cls.forward(None, x)
            result.backward = lambda: cls.backward(None, x)
            return result
