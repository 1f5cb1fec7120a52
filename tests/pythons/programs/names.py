"""Functions and files whose names Python stores one, two and four bytes a character wide."""

import json
import os
import sys

import torch

kept = []
said = []
NAMES = ["größe", "размер", "大きさ", "\U00020000\U00020001", "x" * 200, "ж" * 300]
FILES = ["datei_ü.py", "файл.py", "大.py", "\U0001f600.py", "a file: with 7 things.py", "long/" * 60 + "f.py"]
for i, (name, file) in enumerate(zip(NAMES, FILES)):
    scope = {"torch": torch}
    source = f"def {name}(): return torch.empty({300_003 + i}, dtype=torch.uint8)"
    exec(compile(source, file, "exec"), scope)
    kept.append(scope[name]())
    said.append([300_003 + i, file, name])
# A file name that is no valid text: recorded somehow, and it breaks nothing.
bad = os.fsdecode(b"bad_\xff.py")
exec(compile("kept.append(torch.empty(300_999, dtype=torch.uint8))", bad, "exec"))
json.dump(said, sys.stdout)
