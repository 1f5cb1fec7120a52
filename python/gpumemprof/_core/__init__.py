"""What every other part stands on: the native module, PyTorch, threads, forks, imports."""
