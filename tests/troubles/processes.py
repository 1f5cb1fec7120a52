"""Troubles of pages that processes share: copies on writing to them, copies of mapped weights, workers that compile."""

from troubles.recipe import Recipe

# Children wait until a walk has seen what they share with their parent, and again for one that sees what they copied.
FORK = """
$children = []
for $i in range($n_workers):
    $pid = os.fork()
    if $pid == 0:
        rest($n_rest / 10)
        %s
        rest($n_rest / 10)
        os._exit(0)
    $children.append($pid)
for $pid in $children:
    os.waitpid($pid, 0)
"""
MULTIPROCESSING = """
import multiprocessing

def $work():
    rest($n_rest / 10)
    %s
    rest($n_rest / 10)

$children = [multiprocessing.get_context("fork").Process(target=$work) for _ in range($n_workers)]
for $child in $children:
    $child.start()
for $child in $children:
    $child.join()
"""
SIZES = {"n_shared": (96, 200), "n_written": (48, 90), "n_workers": (1, 4)}
PAGES = """
$held = mmap.mmap(-1, $n_shared << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
$held[::mmap.PAGESIZE] = b"x" * (len($held) // mmap.PAGESIZE)
"""
WRITE_PAGES = '$held[: $n_written << 20 : mmap.PAGESIZE] = b"y" * (($n_written << 20) // mmap.PAGESIZE)'
ARRAY = "import numpy\n$held = numpy.ones($n_shared << 17)\n"
RECORDS = {"n_records": (350_000, 600_000), "n_workers": (1, 3)}
# Each worker waits within its first batch and within its last.
DATASET = """
from torch.utils.data import DataLoader, Dataset

class $Dataset(Dataset):
    def __init__(self):
        self.rows = %s

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, $index):
        if $index in (0, 2500, len(self.rows) - 2501, len(self.rows) - 1):
            rest(0.1)
        return %s

for $batch in DataLoader($Dataset(), batch_size=2500, num_workers=$n_workers):
    pass
"""
FORK_COPY_ON_WRITE = [
    Recipe(PAGES + FORK % WRITE_PAGES, SIZES),
    Recipe(PAGES + MULTIPROCESSING % WRITE_PAGES, SIZES),
    Recipe(ARRAY + FORK % "$held[: $n_written << 17] += 1", SIZES),
    Recipe('$held = bytearray(b"x") * ($n_shared << 20)\n' + FORK % '$held[: $n_written << 20] = b"y" * ($n_written << 20)', SIZES),
    Recipe('$records = [{"path": f"{i}.jpg", "label": i} for i in range($n_records)]\n'
           + MULTIPROCESSING % 'sum(record["label"] for record in $records)', RECORDS),
    Recipe("$held = torch.ones($n_shared << 18)\n" + FORK % "$held[: $n_written << 18].mul_(2)", SIZES, torch=True),
    Recipe(DATASET % ('[(f"{i}.jpg", i) for i in range(5000 * $n_pairs)]', "self.rows[$index][1]"),
           {"n_pairs": (50, 80), "n_workers": (1, 3)}, torch=True),
]  # fmt: skip
OWN = "$own = mmap.mmap(-1, $n_written << 20); $own[::mmap.PAGESIZE] = b'y' * (len($own) // mmap.PAGESIZE)"
NO_COPY_ON_WRITE = [
    Recipe(PAGES + FORK % OWN.replace("<< 20)", "<< 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"), SIZES),
    Recipe(PAGES.replace(", flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS", "") + MULTIPROCESSING % WRITE_PAGES, SIZES),
    Recipe(ARRAY + FORK % "print($held.sum())", SIZES),
    Recipe(PAGES + FORK % WRITE_PAGES, {**SIZES, "n_written": (2, 5), "n_workers": (1, 2)}),
    Recipe(PAGES + """
$children = [subprocess.Popen([sys.executable, "-c", "from sampled import rest; held = bytearray(b'y') * ($n_written << 20); rest($n_rest / 10)"])
             for _ in range($n_workers)]
for $child in $children:
    $child.wait()
""", SIZES),
    # Or each worker's garbage collector writes to the head of every object of PyTorch's modules.
    Recipe("import gc\ngc.freeze()\n" + DATASET % ("torch.arange(5000 * $n_pairs)", "self.rows[$index]"),
           {"n_pairs": (10, 18), "n_workers": (1, 3)}, torch=True),
]  # fmt: skip

FILE = """
$path = "$weights.bin"
with open($path, "wb") as $file:
    for _ in range($n_mib):
        $file.write(os.urandom(1 << 10) * 1024)
"""
MIB_OF_FILE = {"n_mib": (96, 200)}
SHARDS = """
for $i in range(8):
    torch.save({f"layer{$i}": torch.ones($n_mib << 15)}, f"$weights{$i}.pt")
$state = {}
for $i in range(8):
    $state.update(torch.load(f"$weights{$i}.pt", mmap=True))
"""
WAIT = "\nrest($n_rest / 10)\n"
LINEAR = """
$model = torch.nn.Sequential(*[torch.nn.Linear($n_width, $n_width) for _ in range($n_layers)])
torch.save($model.state_dict(), "$weights.pt")
$model.load_state_dict(torch.load("$weights.pt", mmap=True), assign=%s)
$optimizer = torch.optim.SGD($model.parameters(), lr=0.1)
for _ in range(3):
    $model(torch.ones(2, $n_width)).sum().backward()
    $optimizer.step()
    $optimizer.zero_grad()
"""
NETWORK = {"n_width": (1800, 2300), "n_layers": (6, 9)}
WEIGHTS_COPIED = [
    Recipe(SHARDS + "for $tensor in $state.values():\n    $tensor.mul_(0.5)" + WAIT, MIB_OF_FILE, torch=True),
    Recipe(SHARDS + "for $name in $state:\n    $state[$name].copy_(torch.zeros($n_mib << 15))" + WAIT, MIB_OF_FILE, torch=True),
    Recipe(LINEAR % True + WAIT, NETWORK, torch=True, is_large=True),
    Recipe(FILE + 'import numpy\n$array = numpy.memmap($path, mode="c", dtype=numpy.float32)\n$array[:] = 0' + WAIT, MIB_OF_FILE),
    Recipe(FILE + """
with open($path, "rb") as $file:
    $mapped = mmap.mmap($file.fileno(), 0, access=mmap.ACCESS_COPY)
$mapped[:: mmap.PAGESIZE] = b"x" * (len($mapped) // mmap.PAGESIZE)
""" + WAIT, MIB_OF_FILE),
    Recipe(FILE + "$tensor = torch.from_file($path, shared=False, size=$n_mib << 18)\n$tensor.zero_()" + WAIT, MIB_OF_FILE, torch=True),
]  # fmt: skip
NOT_COPIED = [
    Recipe(SHARDS + "print(sum($tensor.sum() for $tensor in $state.values()))" + WAIT, MIB_OF_FILE, torch=True),
    Recipe(SHARDS + "$state = {k: v.clone() for k, v in $state.items()}\nfor $tensor in $state.values():\n    $tensor.mul_(0.5)" + WAIT,
           MIB_OF_FILE, torch=True),
    Recipe(LINEAR % False + WAIT, NETWORK, torch=True),
    Recipe(FILE + 'import numpy\n$array = numpy.memmap($path, mode="r+", dtype=numpy.float32)\n$array[:] = 0' + WAIT, MIB_OF_FILE),
    Recipe(FILE + "import numpy\n$array = numpy.fromfile($path, dtype=numpy.float32)\n$array[:] = 0" + WAIT, MIB_OF_FILE),
    Recipe(FILE + """
with open($path, "rb") as $file:
    $mapped = mmap.mmap($file.fileno(), 0, access=mmap.ACCESS_COPY)
print(sum($mapped[:: mmap.PAGESIZE]))
""" + WAIT, MIB_OF_FILE),
]  # fmt: skip

POOL = """
from torch._inductor.compile_worker.subproc_pool import SubprocPool
$pool = SubprocPool($n_workers)
for $job in [$pool.submit(time.sleep, $n_rest / 10) for _ in range($n_workers)]:
    $job.result()
rest(0)
$pool.shutdown()
"""
# The name of the script is all that such a process has of PyTorch's; what it holds is drawn.
SCRIPTS = """
os.makedirs("$folder/%s", exist_ok=True)
with open("$folder/%s/__main__.py", "w") as $file:
    $file.write("from sampled import rest; held = bytearray(b'x') * ($n_each << 20); rest($n_rest / 10)")
$workers = [subprocess.Popen([sys.executable, "$folder/%s/__main__.py"]) for _ in range($n_workers)]
for $worker in $workers:
    $worker.wait()
"""
COMPILE_WORKERS = [
    Recipe(POOL, {"n_workers": (3, 6)}, torch=True),
    Recipe(SCRIPTS.replace("%s", "compile_worker"), {"n_workers": (4, 8), "n_each": (80, 150)}),
]
NO_COMPILE_WORKERS = [
    Recipe(SCRIPTS.replace("%s", "data_worker"), {"n_workers": (4, 8), "n_each": (80, 150)}),
    Recipe("$held = bytearray(b'x') * ($n_held << 20)\n" + SCRIPTS.replace("%s", "compile_worker"),
           {"n_workers": (1, 3), "n_each": (8, 24), "n_held": (300, 500)}),
    Recipe(MULTIPROCESSING % "$x = torch.ones($n_each << 18)",
           {"n_workers": (2, 5), "n_each": (80, 150)}, torch=True),
]  # fmt: skip
