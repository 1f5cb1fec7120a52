"""What runs in the child process of `gpumemprof estimate --target`: an exported model, once loaded and run on the CPU.

The model is a stranger's file. Nothing of it is run in the command's own process, and what a format could bring along
as code is looked for before anything is loaded (torch_export.py)."""
