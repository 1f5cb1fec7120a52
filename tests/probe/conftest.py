"""programs(NAME, MODE): what a function of exact_programs.py returned; run once a session in each mode."""
import json
import os

import pytest

import harness
import nested
from probe import exact

HERE = os.path.dirname(__file__)


def run(name, mode, *, timeout=300):
    env = dict(os.environ)
    if mode == "preload":
        env["LD_PRELOAD"] = exact.library()
    argv = [harness.PYTHON, os.path.join(HERE, "exact.py"), os.path.join(HERE, "exact_programs.py"), name, mode]
    done = nested.execute(argv, env=env, timeout=timeout).ok()
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def programs():
    known = {}
    alone = {"million", "profiled", "workers"}  # long, or with threads of their own that stay

    def get(name, mode):
        program = name if name in alone else "everything"
        if (program, mode) not in known:
            known[program, mode] = run(program, mode)
        return known[program, mode] if name in alone else known[program, mode][name]

    return get
