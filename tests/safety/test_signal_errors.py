"""What a program's signal handler raises while code of ours runs is the program's; an error of ours is dropped."""

import harness

PROGRAM = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from gpumemprof._core.when_imported import before_import

class TimedOut(Exception):
    pass

class Handler:
    def __call__(self, number, frame):
        raise TimedOut(number)

    def method(self, number, frame):
        raise TimedOut(number)

def plain(number, frame):
    raise TimedOut(number)

def interrupted(module):
    os.kill(os.getpid(), signal.SIGALRM)
    for _ in range(1000):
        pass

def fails(module):
    raise TimedOut("ours")

def says(name, call):
    before_import(name, call)
    try:
        __import__(name)
    except TimedOut as error:
        return error.args[0]
    return "imported"

for handler in (plain, Handler(), Handler().method):
    signal.signal(signal.SIGALRM, handler)
    print(says("colorsys", interrupted), says("colorsys", fails))
    sys.modules.pop("colorsys", None)
"""


def test_what_a_signal_handler_raises_is_not_dropped_with_what_is_ours():
    argv = [harness.PYTHON, "-c", PROGRAM, harness.ROOT / "python"]
    assert harness.execute(argv).ok().stdout == b"14 imported\n" * 3
