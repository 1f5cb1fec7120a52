"""Runs one block as a program of its own and checks what it did: run_block.py NAME BASIS.

BASIS is where figures have to come from: "exact" under `gpumemprof run`, else "host" or, on a GPU, "framework". The
standard output is what the block printed and then a line of JSON: facts for the test to compare with the recording.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import given  # noqa: E402
from execute import execute  # noqa: E402
from ran import Ran  # noqa: E402
from table import CASES  # noqa: E402


def main(name, basis):
    case = CASES[name]
    if not given.GPU:
        given.use_the_cpu(case.gpus)
    ns = given.namespace(case.given)
    printed, raised = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            execute(case.text(), name, ns)
        except Exception as error:
            if type(error).__name__ != case.raises:
                raise
            raised = case.raises
    assert raised == case.raises, f"the block has to raise {case.raises}"
    facts = case.check(Ran(ns, printed.getvalue(), basis))
    print(printed.getvalue(), end="")
    print(json.dumps(facts or {}))


main(*sys.argv[1:])
