"""What `gpumemprof estimate` runs in a child process: traces of training steps on tensors without memory.

Nothing here is imported by a program of the user's own. A trace says which storages were made and dropped in which
order; merging, simulating and searching are the command's. docs/estimate-trace.md has the bytes of the file.
"""
