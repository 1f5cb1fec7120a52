"""Runs programs one after the other, each in a process that is forked once modules are there: nest.py MODULE…

A request is a line of JSON on stdin: {"argv": [PROGRAM, …] or ["-c", CODE, …], "cwd": path, "environment": what is set
in it, "stdout": path, "stderr": path}. Answered are two lines: the process's number and, when it has ended, its status as
os.waitpid() has it. Before the first one stands "ready".
"""

import atexit
import importlib
import json
import os
import sys
import threading
import types


def run(argv, cwd, environment, stdout, stderr):
    """As `python PROGRAM …` would, but for the interpreter's own end, which takes tenths of a second: what the program's
    module holds is dropped, as it is there."""
    os.setsid()
    os.chdir(cwd)
    os.environ.update(environment)
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, stdout, os.O_WRONLY), (2, stderr, os.O_WRONLY)):
        file = os.open(path, flags)
        os.dup2(file, number)
        os.close(file)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    if argv[0] == "-c":
        text, name = argv.pop(1), "<string>"
        sys.path[0] = ""
    else:
        with open(argv[0], encoding="utf-8") as file:
            text, name = file.read(), argv[0]
        module.__file__, sys.path[0] = name, os.path.dirname(name)
    sys.argv = argv
    status = 0
    try:
        exec(compile(text, name, "exec"), module.__dict__)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    module.__dict__.clear()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def main():
    for name in sys.argv[1:]:
        importlib.import_module(name)
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    print("ready", file=answers, flush=True)
    for line in requests:
        child = os.fork()
        if child == 0:
            requests.close(), answers.close()
            run(**json.loads(line))
        print(child, file=answers, flush=True)
        print(os.waitpid(child, 0)[1], file=answers, flush=True)


main()
