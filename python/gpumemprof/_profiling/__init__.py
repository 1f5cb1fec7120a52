"""Calls, blocks, lines, tensors and modules under a profiler."""
