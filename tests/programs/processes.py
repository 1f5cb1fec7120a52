"""Processes of every kind, each allocating sizes of its own. processes.py LOG MODE

Every process that allocates appends {"pid", "who", "sizes"} to LOG, which is what the recording is held to.
"""
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

from light import allocate, release

COUNT = 30
BASES = {"main": 10_000, "child": 20_000, "grandchild": 30_000, "second": 40_000, "other": 50_000}


def work(log, who, number=0):
    """Allocates COUNT sizes that nobody else uses and frees every second block."""
    sizes = [BASES[who] + number * 100 + i for i in range(COUNT)]
    entry = json.dumps({"pid": os.getpid(), "who": who, "sizes": sizes})
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for size in sizes:
        block = allocate(size)
        if size % 2:
            release(block)
    os.write(fd, entry.encode() + b"\n")
    os.close(fd)


def wait(pid):
    return os.waitpid(pid, 0)[1]


def fork(log, leave=None, who="child", number=0, then=None):
    pid = os.fork()
    if pid == 0:
        work(log, who, number)
        if then:
            then()
        leave() if leave else sys.exit(0)
    return pid


def fork_exit(log):
    work(log, "main")
    wait(fork(log))
    work(log, "main", 1)


def fork_underscore_exit(log):
    work(log, "main")
    wait(fork(log, lambda: os._exit(0)))
    work(log, "main", 1)


def vfork_and_killed(log):
    work(log, "main")
    try:
        subprocess.run(["/nowhere/nothing"], check=False)
    except FileNotFoundError:
        os.kill(os.getpid(), signal.SIGKILL)


def fork_killed(log):
    work(log, "main")
    wait(fork(log, lambda: os.kill(os.getpid(), signal.SIGKILL)))


def fork_before_anything(log):
    wait(fork(log, lambda: os._exit(0)))


def fork_of_fork(log):
    work(log, "main")
    wait(fork(log, then=lambda: wait(fork(log, lambda: os._exit(0), "grandchild"))))


def fork_and_both_go_on(log):
    work(log, "main")
    pid = fork(log, lambda: os._exit(0))
    for number in range(1, 20):
        work(log, "main", number)
    wait(pid)


def fork_many(log):
    work(log, "main")
    for pid in [fork(log, lambda: os._exit(0), number=n) for n in range(40)]:
        wait(pid)


def fork_from_a_thread(log):
    """Other threads are inside the recorder at the moment of the fork."""
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            release(allocate(77))

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(20):
        wait(fork(log, lambda: os._exit(0), number=number))
    stop.set()
    for thread in threads:
        thread.join()
    work(log, "main")


def double_fork(log):
    """As a daemon is made: the grandchild outlives its parents."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        work(log, "grandchild")
        os.write(write, b"x")
        os._exit(0)
    wait(pid)
    os.close(write)
    os.read(read, 1)
    time.sleep(0.05)


def execv(log):
    work(log, "main")
    os.execv(sys.executable, [sys.executable, __file__, log, "second"])


def second(log):
    work(log, "second")


def subprocesses(log):
    work(log, "main")
    for number in range(3):
        subprocess.run([sys.executable, __file__, log, f"other:{number}"], check=True)
    subprocess.run(f"{sys.executable} {__file__} {log} other:3", shell=True, check=True)
    subprocess.run(["env", "A=B", sys.executable, __file__, log, "other:4"], check=True, close_fds=False)
    wait(os.posix_spawn(sys.executable, [sys.executable, __file__, log, "other:5"], os.environ))
    work(log, "main", 1)


def work_beside(barrier):
    """In a pool's worker: each takes one task before any takes a second."""
    global beside
    beside = barrier


def work_once_all_have_one(log, who, number):
    work(log, who, number)
    if number < 2:
        beside.wait()


def by_multiprocessing(log, method):
    context = multiprocessing.get_context(method)
    work(log, "main")
    for epoch in range(2):
        workers = [context.Process(target=work, args=(log, "child", 10 * epoch + n)) for n in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    with context.Pool(2, work_beside, (context.Barrier(2),)) as pool:  # ends by SIGTERM
        pool.starmap(work_once_all_have_one, [(log, "other", n) for n in range(6)], 1)


def same_pid_again(log):
    """Makes the kernel give the same PID out twice; needs to be root."""
    pid = fork(log, lambda: os._exit(0), number=0)
    wait(pid)
    for number in range(1, 200):
        try:
            with open("/proc/sys/kernel/ns_last_pid", "w") as last:
                last.write(str(pid - 1))
        except OSError:
            break
        again = os.fork()
        if again == 0:
            if os.getpid() == pid:
                work(log, "child", 1)
            os._exit(0)
        wait(again)
        if again == pid:
            print("same pid")
            break


if __name__ == "__main__":
    log, mode = sys.argv[1:]
    if mode.startswith("other:"):
        work(log, "other", int(mode[6:]))
    elif mode.startswith("multiprocessing:"):
        by_multiprocessing(log, mode[16:])
    else:
        globals()[mode](log)
