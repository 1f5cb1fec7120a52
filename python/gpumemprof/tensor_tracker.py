"""Follows single tensors by name, and, where asked for, says when any tensor comes and goes."""

from ._profiling.tensors import MAX_TRACKED as MAX_TRACKED
from ._profiling.tensors import TensorTracker as TensorTracker
from ._profiling.tensors import TrackedTensor as TrackedTensor
from ._profiling.tensors import in_mib as in_mib
