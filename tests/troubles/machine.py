"""Troubles that the kernel's books show: free memory that malloc keeps, files left in /dev/shm, page cache, kills."""

from troubles.recipe import Recipe

# Looks for holders, at which malloc is asked, come after numbers of allocations of tensors.
LOOKS = """
def $look():
    for _ in range(5_000):
        torch.empty(1000)

$look()
%s
for _ in range(6):
    $look()
"""
EXPLAIN = ("--explain-leaks",)
# Worth telling of beside two sets of weights, too, which rise and fall.
TOTAL = {"n_total": (400, 600), "n_each": (6, 90), "n_part": (20, 60)}
# What pins the free memory lives to the end, in a global.
COUNT = "range(($n_total << 10) // $n_each)"
MALLOC = """
import ctypes
$libc = ctypes.CDLL(None)
$libc.malloc.restype = ctypes.c_void_p
$libc.free.argtypes = [ctypes.c_void_p]
$blocks = [$libc.malloc($n_each << 10) for _ in COUNT]
for $block in $blocks:
    ctypes.memset($block, 1, $n_each << 10)
""".replace("COUNT", COUNT)
FREE = "for $i, $block in enumerate($blocks):\n    if $i % $n_part:\n        $libc.free($block)\n"
ROWS = f"import numpy\n$rows = [numpy.ones($n_each << 7) for _ in {COUNT}]\n"
TEXTS = f'$texts = {{i: "x" * ($n_each << 10) for i in {COUNT}}}\n'
THREADS = f"""
import threading

def $work($kept):
    $rows = [b"x" * ($n_each << 10) for _ in range((($n_total << 10) // $n_each) // $n_threads)]
    $kept += $rows[::$n_part]

$left = globals()["$kept"] = []
$threads = [threading.Thread(target=$work, args=($left,)) for _ in range($n_threads)]
for $thread in $threads:
    $thread.start()
for $thread in $threads:
    $thread.join()
"""


def looked(text: str, **numbers: tuple[int, int]) -> Recipe:
    return Recipe(LOOKS % text, {**TOTAL, **numbers}, torch=True, options=EXPLAIN)


MALLOC_RETENTION = [
    looked(MALLOC + FREE),
    looked(ROWS + 'globals()["$kept"] = $rows[::$n_part]\ndel $rows'),
    looked(TEXTS + 'globals()["$kept"] = list($texts.values())[::$n_part]\n$texts.clear()'),
    looked(THREADS, n_threads=(2, 5)),
]
NO_RETENTION = [
    looked(MALLOC + FREE + "$libc.malloc_trim(0)"),
    looked(MALLOC),
    looked(ROWS + "$sums = [$row.sum() for $row in $rows]"),
    looked("import numpy\nfor _ in range($n_part // 4):\n    $array = numpy.ones($n_large << 17)\ndel $array", n_large=(70, 160)),
    looked("import ctypes\nctypes.CDLL(None).mallopt(-3, 65536)\n" + ROWS + "$kept = $rows[::$n_part]\ndel $rows", n_each=(70, 90)),
    # Each step takes again what the one before gave back, to the end.
    Recipe("""
for _ in range($n_steps):
    $batch = [torch.ones($n_each << 8) for _ in range(($n_total << 10) // $n_each)]
    del $batch
    for _ in range(2_000):
        torch.empty(1000)
""", {**TOTAL, "n_steps": (12, 18), "n_each": (40, 90)}, torch=True, options=EXPLAIN),
]  # fmt: skip

WRITE_SHM = """
for $i in range($n_files):
    with open(f"/dev/shm/torch_{os.getpid()}_${n_name}_{$i}", "wb") as $file:
        $file.write(b"x" * ($n_mib << 20))
"""
BLOCK = """
from multiprocessing import resource_tracker, shared_memory
$shared = shared_memory.SharedMemory(create=True, size=$n_mib << 20)
$shared.buf[:] = b"x" * len($shared.buf)
"""
CHILD = """
$pid = os.fork()
if $pid == 0:
    %s
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid($pid, 0)
"""
SHM = {"n_files": (1, 4), "n_mib": (1, 14), "n_name": (1, 99999)}


def indented(text: str) -> str:
    return text.strip("\n").replace("\n", "\n    ")


SHM_LEFT = [
    Recipe(WRITE_SHM, SHM),
    Recipe(CHILD % indented(WRITE_SHM), SHM),
    Recipe(BLOCK + 'resource_tracker.unregister($shared._name, "shared_memory")\n$shared.close()', SHM),
    Recipe(WRITE_SHM + "os.kill(os.getpid(), signal.SIGKILL)", SHM, is_last=True, code=-9),
]
SHARED_TENSOR = """
import torch.multiprocessing
torch.multiprocessing.set_sharing_strategy("file_descriptor")
$tensor = torch.ones($n_mib << 18).share_memory_()
$child = torch.multiprocessing.get_context("fork").Process(target=$tensor.sum)
$child.start()
$child.join()
"""
NOT_LEFT = [
    Recipe(WRITE_SHM + '    os.unlink($file.name)', SHM),
    Recipe(BLOCK + "$shared.close()\n$shared.unlink()", SHM),
    Recipe(BLOCK + "$shared.close()", SHM),  # its tracker removes it
    Recipe(SHARED_TENSOR, SHM, torch=True),
]  # fmt: skip

# Holes are pages of zeros in the page cache, as other pages are.
DATA = """
$path = "$data.bin"
with open($path, "wb") as $file:
    os.truncate($path, $n_limit * $n_share // 100 << 20)
"""
LIMIT = (160, 240)
READ = "with open($path, 'rb') as $file:\n    while $file.read(1 << 20):\n        pass\n"
WAIT = "\nrest($n_rest / 10)\n"
ANONYMOUS = """
$parts = []
for _ in range($n_limit * $n_share // 100 // 4):
    $parts.append(mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    $parts[-1][::mmap.PAGESIZE] = b"x" * ((4 << 20) // mmap.PAGESIZE)
    time.sleep(0.04)
"""


def limited(text: str, share: tuple[int, int], limit_mib: tuple[int, int] = LIMIT, **more) -> Recipe:
    return Recipe(text, {"n_share": share}, limit_mib=limit_mib, **more)


PAGE_CACHE = [
    limited(DATA + READ + WAIT, (140, 260)),
    limited(DATA + "import numpy\nfor $i in range(0, os.path.getsize($path) - (4 << 20), 4 << 20):\n"
            "    numpy.fromfile($path, dtype=numpy.uint8, count=4 << 20, offset=$i).max()" + WAIT, (160, 260)),
    limited(DATA + "with open($path, 'rb') as $file:\n    $mapped = mmap.mmap($file.fileno(), 0, access=mmap.ACCESS_READ)\n"
            "sum($mapped[:: mmap.PAGESIZE])" + WAIT, (140, 260)),
    limited('with open("$data.bin", "wb") as $file:\n    for _ in range($n_limit * $n_share // 100):\n'
            "        $file.write(bytes(1 << 20))\n    os.fsync($file.fileno())" + WAIT, (120, 160)),
    limited(DATA + CHILD.replace("os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)") % indented(READ + WAIT), (140, 260)),
]  # fmt: skip
NO_PAGE_CACHE = [
    limited(ANONYMOUS + WAIT, (50, 65)),
    limited(DATA + "with open($path, 'rb') as $file:\n    while $file.read(1 << 20):\n"
            "        os.posix_fadvise($file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)" + WAIT, (140, 260)),
    limited(DATA + READ + WAIT, (20, 40)),
    limited('with open("/dev/shm/$data", "wb") as $file:\n    for _ in range($n_limit * $n_share // 100):\n'
            "        $file.write(bytes(1 << 20))" + WAIT + "os.unlink($file.name)", (45, 60)),
]  # fmt: skip

KILLED_LIMIT = (120, 220)
KILLED = [
    limited(ANONYMOUS, (140, 180), KILLED_LIMIT, is_last=True, code=-9),
    limited(ANONYMOUS.replace(", flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS", ""), (140, 180), KILLED_LIMIT, is_last=True, code=-9),
    limited("import numpy\n$arrays = []\nwhile True:\n    $arrays.append(numpy.ones(1 << 19))\n    time.sleep(0.05)", (1, 2),
            KILLED_LIMIT, is_last=True, code=-9),
    limited("$pid = os.fork()\nif $pid == 0:\n" + "\n".join("    " + line for line in ANONYMOUS.strip().splitlines())
            + "\n    os._exit(0)\nos.waitpid($pid, 0)" + WAIT, (140, 180), KILLED_LIMIT, is_last=True),
    limited("$kept = []\nfor _ in range(1000):\n    $kept.append(torch.ones(1 << 20))\n    time.sleep(0.04)", (1, 2), (450, 600),
            torch=True, is_last=True, code=-9),
]  # fmt: skip
NOT_KILLED = [
    limited(ANONYMOUS + "os.kill(os.getpid(), signal.SIGKILL)", (45, 60), KILLED_LIMIT, is_last=True, code=-9),
    limited(ANONYMOUS + "os._exit(137)", (45, 60), KILLED_LIMIT, is_last=True, code=137),
    limited(ANONYMOUS + WAIT, (50, 65), KILLED_LIMIT),
    limited(ANONYMOUS + "$child = subprocess.Popen(['sleep', '60'])\ntime.sleep(1)\n$child.kill()\n$child.wait()", (45, 60), KILLED_LIMIT),
    limited("import resource\nresource.setrlimit(resource.RLIMIT_AS, ($n_limit << 20, $n_limit << 20))\ntry:\n"
            "    bytearray($n_limit << 20)\nexcept MemoryError:\n    print('refused')" + WAIT, (1, 2), (400, 600)),
]  # fmt: skip
