"""Ends in every way in which a program can, each in a forked child, and prints how: {way: wait status}. With a folder as the
first argument it attaches itself to that."""

import asyncio
import json
import multiprocessing
import os
import signal
import sys
import threading
import time

import torch

if sys.argv[1:]:
    import gpumemprof

    gpumemprof.attach(sys.argv[1])


class Interrupted(KeyboardInterrupt):
    pass


class Hostile(Exception):
    def __str__(self):
        print("__str__ was called", file=sys.stderr, flush=True)
        return "hostile"


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def raised():
    torch.empty(1000)
    raise KeyboardInterrupt


def while_it_computes():
    a = torch.ones(10)
    threading.Timer(0.2, interrupt).start()
    while True:
        a = a * 1.0


def through_finally():
    try:
        interrupt()
        time.sleep(10)
    finally:
        exec("1")


def after_another():
    try:
        raise ValueError
    except ValueError:
        raise KeyboardInterrupt from None


def in_a_join():
    threading.Timer(0.2, interrupt).start()
    waits = threading.Thread(target=time.sleep, args=(30,), daemon=True)
    waits.start()
    waits.join()


def in_asyncio():
    async def wait():
        asyncio.get_running_loop().call_later(0.1, interrupt)
        await asyncio.sleep(30)

    asyncio.run(wait())


def in_a_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(abs, range(4))
        interrupt()
        time.sleep(10)


def in_a_thread():
    def interrupted():
        raise KeyboardInterrupt

    thread = threading.Thread(target=interrupted, name="ends")
    thread.start()
    thread.join()


def subclass():
    raise Interrupted


def leaves_with_text():
    sys.exit("bye")


def leaves_with_a_number():
    sys.exit(3)


def generator_exit():
    raise GeneratorExit


def fails():
    raise Hostile("own")


def fails_in_a_thread():
    def failing():
        raise Hostile("own")

    thread = threading.Thread(target=failing, name="ends")
    thread.start()
    thread.join()


WAYS = [
    raised, while_it_computes, through_finally, after_another, in_a_join, in_asyncio, in_a_pool, in_a_thread, subclass,
    leaves_with_text, leaves_with_a_number, generator_exit, fails, fails_in_a_thread,
]  # fmt: skip
ended = {}
for way in WAYS:
    print(f"-- {way.__name__}", file=sys.stderr, flush=True)
    child = os.fork()
    if child == 0:
        way()
        sys.exit(0)  # through the interpreter's own end
    ended[way.__name__] = os.waitpid(child, 0)[1]
print(json.dumps(ended))
