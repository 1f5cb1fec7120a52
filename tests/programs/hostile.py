"""Programs that are hard on a recorder living in them. hostile.py torch|light MODE; the working directory is theirs.

What they print, what they leave in files and how they end must be the same with and without a recorder.
"""
import atexit
import ctypes
import faulthandler
import gc
import hashlib
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time

ALLOCATOR, MODE = sys.argv[1:3]
LONG = 20_000  # blocks: enough to fill a thread's buffer several times

if ALLOCATOR == "torch":
    import torch

    def make(size):
        return torch.empty(size, dtype=torch.uint8)
else:
    from light import Block as make

libc = ctypes.CDLL(None, use_errno=True)


def work(count=1_000):
    kept = [make(5_000)]
    for i in range(count):
        kept.append(make(1_000 + i % 977))
        if len(kept) > 50:
            kept.pop(i % 50)
    return kept


def work_until(stop):
    while not stop:
        work(10)


def say(text):
    os.write(1, text.encode() + b"\n")


# --- descriptors --------------------------------------------------------------------------------------------------
def own_files(first):
    """Every descriptor is closed and taken by a file of the program's own; all of them must stay as written."""
    files = []
    for number in range(40):
        fd = os.open(f"own{number}", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(fd, b"%d " % number * 2_000)
        files.append(fd)
    work(LONG)
    thread = threading.Thread(target=work, args=(LONG,))
    thread.start()
    thread.join()
    pid = os.fork()
    if pid == 0:
        work(LONG)
        os._exit(0)
    os.waitpid(pid, 0)
    digest = hashlib.sha256()
    for fd in files:
        digest.update(os.pread(fd, 1 << 20, 0))
        digest.update(b"%d" % os.fstat(fd).st_size)
    with open("digest", "w") as f:
        f.write(digest.hexdigest())
    if first > 2:
        say(digest.hexdigest())


def closes_descriptors_from_3():
    work()
    os.closerange(3, 65_536)
    own_files(3)


def closes_descriptors_from_0():
    work()
    os.closerange(0, 65_536)
    own_files(0)


def closes_descriptors_first():
    os.closerange(3, 65_536)
    own_files(3)


def takes_every_descriptor():
    """dup2 over whatever is there."""
    work()
    fd = os.open("target", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, b"mine" * 1_000)
    for number in range(3, 200):
        if number != fd:
            os.dup2(fd, number)
    own_files(3)
    say(str(os.path.getsize("target")))


def no_descriptor_left():
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    say(str(len(work(LONG))))


# --- limits -------------------------------------------------------------------------------------------------------
def file_size_limit():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    work()
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))
    work(LONG)
    threading.Thread(target=work, args=(LONG,)).start()
    say("alive")


def file_size_limit_first():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))
    work(LONG)
    say("alive")


def no_file_at_all():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    work(LONG)
    say("alive")  # stdout is a pipe, which has no limit


def address_space_limit():
    work()
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20),) * 2)
    say(str(len(work(LONG))))


# --- processes ----------------------------------------------------------------------------------------------------
def daemon():
    work()
    read, write = os.pipe()
    if os.fork():
        os.close(write)
        os.read(read, 1)
        say("daemon is ready")
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    for fd in (0, 1, 2):
        os.close(fd)
        os.open("/dev/null", os.O_RDWR)
    work(LONG)
    os.write(write, b"x")
    os._exit(0)


def forks_in_a_storm():
    stop = []
    threads = [threading.Thread(target=work_until, args=(stop,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    codes = []
    for number in range(int(os.environ.get("STORM", "60"))):
        pid = os.fork()
        if pid == 0:
            work(50)
            os._exit(number % 7)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    stop.append(True)
    for thread in threads:
        thread.join()
    say(str(codes))


def subprocesses():
    for _ in range(20):
        work(100)
        say(subprocess.run(["/bin/echo", "hello"], capture_output=True, text=True, check=True).stdout)
    os.environ.clear()
    say(subprocess.run(["/bin/sh", "-c", "echo $LD_PRELOAD-"], capture_output=True, text=True, check=True).stdout)


def chroot():
    os.mkdir("jail")
    work()
    os.chroot("jail")
    os.chdir("/")
    work(LONG)
    thread = threading.Thread(target=work, args=(LONG,))
    thread.start()
    thread.join()
    say(str(os.listdir("/")))


def chroot_first():
    os.mkdir("jail")
    os.chroot("jail")
    os.chdir("/")
    work(LONG)
    say(str(os.listdir("/")))


def drops_privileges():
    work()
    os.setgid(65534)
    os.setuid(65534)
    work(LONG)
    pid = os.fork()
    if pid == 0:
        work(LONG)
        os._exit(5)
    say(str(os.waitpid(pid, 0)[1]))


def folder_is_deleted():
    """argv[3] is the recording's folder, or a folder that is nobody's."""
    work()
    subprocess.run(["rm", "-rf", sys.argv[3]], check=True)
    work(LONG)
    thread = threading.Thread(target=work, args=(LONG,))
    thread.start()
    thread.join()
    pid = os.fork()
    if pid == 0:
        work(LONG)
        os._exit(0)
    say(str(os.waitpid(pid, 0)[1]))


def file_is_truncated():
    """Somebody cuts the recording's files to nothing while they are mapped."""
    work()
    for name in os.listdir(sys.argv[3]) if os.path.isdir(sys.argv[3]) else []:
        os.truncate(os.path.join(sys.argv[3], name), 0)
    work(LONG)
    say("alive")


# --- seccomp ------------------------------------------------------------------------------------------------------
NUMBERS = {"open": 2, "mmap": 9, "munmap": 11, "pwrite64": 18, "ftruncate": 77, "gettid": 186, "openat": 257,
           "fallocate": 285, "mkdir": 83, "rename": 82, "unlink": 87, "pwritev": 296, "fstat": 5, "newfstatat": 262,
           "readlink": 89, "getpid": 39, "memfd_create": 319, "msync": 26, "sendto": 44, "socket": 41}


def sandbox(action, names, shared_mmap_only=False):
    """A filter on x86-64 system calls by number: `action` for `names`, everything else is allowed."""
    code = [struct.pack("HBBI", 0x20, 0, 0, 0)]  # load the number
    names = [n for n in names if n != "mmap"]
    if shared_mmap_only:  # mmap with MAP_SHARED: number 9 and bit 0 of the fourth argument
        code += [struct.pack("HBBI", 0x15, 0, 3, NUMBERS["mmap"]), struct.pack("HBBI", 0x20, 0, 0, 16 + 3 * 8),
                 struct.pack("HBBI", 0x45, 0, 1, 1), struct.pack("HBBI", 0x06, 0, 0, action),
                 struct.pack("HBBI", 0x20, 0, 0, 0)]
    for name in names:
        code += [struct.pack("HBBI", 0x15, 0, 1, NUMBERS[name]), struct.pack("HBBI", 0x06, 0, 0, action)]
    code.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(b"".join(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(program)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    if os.environ.get("BY_SYSCALL"):
        assert libc.syscall(317, 1, 0, header) == 0  # seccomp(SECCOMP_SET_MODE_FILTER)
    else:
        assert libc.prctl(22, 2, header, 0, 0) == 0


KILL, EPERM = 0x80000000, 0x00050001
WRITING = ["open", "openat", "pwrite64", "pwritev", "ftruncate", "fallocate", "rename", "unlink", "mkdir", "memfd_create",
           "socket", "sendto", "msync", "readlink"]


def seccomp_kills_writers():
    work()
    sandbox(KILL, WRITING)
    kept = work(LONG)
    thread = threading.Thread(target=work, args=(100,)) if os.environ.get("WITH_THREAD") else None
    if thread:
        thread.start()
        thread.join()
    say(str(len(kept)))
    os._exit(6)


def seccomp_kills_writers_first():
    sandbox(KILL, WRITING)
    say(str(len(work(LONG))))
    os._exit(6)


def seccomp_refuses_writers():
    work()
    sandbox(EPERM, WRITING)
    say(str(len(work(LONG))))
    os._exit(6)


def seccomp_refuses_mappings():
    """As under a container runtime that allows neither shared mappings of files nor fallocate: pwrite remains."""
    sandbox(EPERM, ["fallocate"], shared_mmap_only=True)
    say(str(len(work(LONG))))


# --- interpreter --------------------------------------------------------------------------------------------------
class AllocatesWhenItDies:
    def __del__(self):
        make(4_321)


def shutdown():
    """Allocations while the interpreter goes away: atexit, module globals, cycles, a thread that never ends."""
    global a_global, a_cycle
    atexit.register(work, 500)
    a_global, a_cycle = AllocatesWhenItDies(), AllocatesWhenItDies()
    a_cycle.me = a_cycle
    sys.modules["a module"] = AllocatesWhenItDies()
    work()
    say("ends")


def daemon_threads():
    def loop():
        while True:
            make(2_000)

    for _ in range(4):
        threading.Thread(target=loop, daemon=True).start()
    time.sleep(0.02)
    say("ends")


def threads_die_while_others_allocate():
    stop = []
    busy = [threading.Thread(target=work_until, args=(stop,)) for _ in range(3)]
    for thread in busy:
        thread.start()
    for _ in range(300):
        thread = threading.Thread(target=work, args=(5,))
        thread.start()
        thread.join()
    stop.append(True)
    for thread in busy:
        thread.join()
    say("ends")


def small_thread_stacks():
    threading.stack_size(128 * 1024)
    results = []
    for _ in range(20):
        thread = threading.Thread(target=lambda: results.append(len(work(300))))
        thread.start()
        thread.join()
    say(str(results))


def alarms():
    """A Python handler that allocates runs between any two bytecodes, also while another allocation is under way."""
    count = [0]

    def handler(*_):
        count[0] += 1
        make(3_333)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while count[0] < 200:
        work(200)
    signal.setitimer(signal.ITIMER_REAL, 0)
    say("ends")


def deep_recursion():
    sys.setrecursionlimit(100_000)

    def down(depth):
        block = make(1_000 + depth)
        return block if depth == 0 else down(depth - 1)

    down(5_000)
    sys.unraisablehook = id  # a block's end may be too deep, too; the message has an address. No frame of its own
    try:
        sys.setrecursionlimit(2_000)
        down(50_000)
    except (RecursionError, ctypes.ArgumentError):
        say("too deep")


def collector():
    gc.set_threshold(1)
    for _ in range(300):
        cycle = [make(1_234)]
        cycle.append(cycle)
    gc.collect()
    say(str(gc.isenabled()))


def fault_handler():
    faulthandler.enable(open("fault", "w"))
    work()
    os.kill(os.getpid(), signal.SIGSEGV)


def subinterpreter():
    import _xxsubinterpreters as interpreters
    work()
    number = interpreters.create(isolated=False)  # where ctypes can be imported
    interpreters.run_string(number, f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
                                    "from light import Block\nkept = [Block(9_876) for _ in range(500)]\nprint(len(kept), flush=True)")
    interpreters.destroy(number)
    work()
    say("ends")


def broken_pipe():
    """Python ignores SIGPIPE; here it is as in other programs."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    work()
    read, write = os.pipe()
    os.close(read)
    os.write(write, b"x")


def raises():
    work()
    raise SystemExit(77)


globals()[MODE]()
