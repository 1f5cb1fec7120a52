"""Troubles of models and of what trains them: copies made by saving, two sets of weights at once, NCCL's memory."""

from troubles.recipe import Recipe

WAIT = "\nrest($n_rest / 10)\n"
MODEL = """
$model = torch.nn.Sequential(*[torch.nn.Linear($n_width, $n_width) for _ in range($n_layers)])
with torch.no_grad():
    $model(torch.ones(2, $n_width))
$state = $model.state_dict()
"""
NETWORK = {"n_width": (1600, 2300), "n_layers": (7, 11)}
SAVE = "from torch.distributed.checkpoint._state_dict_stager import StateDictStager\n"
ASYNC = """
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dcp.%s
dist.destroy_process_group()
"""


def saved(text: str) -> Recipe:
    return Recipe(MODEL + text + WAIT.replace("$n_rest / 10", "0.3"), NETWORK, torch=True)


CHECKPOINT_STAGING = [
    saved("from torch.distributed._state_dict_utils import _create_cpu_state_dict\n$copy = _create_cpu_state_dict($state)"),
    saved("from torch.distributed._state_dict_utils import _create_cpu_state_dict\n"
          "for _ in range(2):\n    $copy = _create_cpu_state_dict($state, share_memory=True)\n    del $copy"),
    saved(SAVE + "$copy = StateDictStager(pin_memory=False, share_memory=False).stage($state)"),
    saved(SAVE + "$stager = StateDictStager(pin_memory=False, share_memory=True)\n"
          "for _ in range(3):\n    $copy = $stager.stage($state)"),
    saved(ASYNC % 'async_save($state, checkpoint_id="$folder").result()'),
]  # fmt: skip
NO_STAGING = [
    saved("$copy = {k: v.clone() for k, v in $state.items()}"),
    saved("import copy\n$copy = copy.deepcopy($state)"),
    saved('torch.save($state, "$file.pt")'),
    saved("import io\n$stream = io.BytesIO()\ntorch.save($state, $stream)"),
    saved("from torch.distributed._state_dict_utils import _offload_state_dict_to_cpu\n$copy = _offload_state_dict_to_cpu($state)"),
    saved(ASYNC % 'save($state, checkpoint_id="$folder")'),
]  # fmt: skip

NET = """
def $build():
    return torch.nn.Sequential(%s)

def $use($network):
    with torch.no_grad():
        for _ in range($n_passes):
            $network(%s)
            time.sleep(0.1)

$model = $build()
$use($model)
"""
LINEAR = NET % ("*[torch.nn.Linear($n_width, $n_width) for _ in range($n_layers)]", "torch.randn(2, $n_width)")
CONVOLUTION = NET % ("*[torch.nn.Conv2d($n_width // 4, $n_width // 4, 3, padding=1) for _ in range($n_layers)]",
                     "torch.randn(1, $n_width // 4, 4, 4)")  # fmt: skip
TRANSFORMER = NET % ("*[torch.nn.TransformerEncoderLayer($n_width // 2, 8, 2 * $n_width, batch_first=True) for _ in range($n_layers // 3)]",
                     "torch.randn(1, 4, $n_width // 2)")  # fmt: skip
SIZES = {"n_width": (1024, 1400), "n_layers": (12, 18), "n_passes": (4, 8)}
# A multiple of the heads.
EVEN = {**SIZES, "n_width": (64, 88)}


def handed(text: str) -> list[Recipe]:
    wide = TRANSFORMER.replace("$n_width", "16 * $n_width")
    return [Recipe(LINEAR + text, SIZES, torch=True), Recipe(CONVOLUTION + text, SIZES, torch=True), Recipe(wide + text, EVEN, torch=True)]


HAND_OFF = "$new = $build()\n$new.load_state_dict($model.state_dict())\n$model = $new\ndel $new\n$use($model)\n"
DOUBLE_WEIGHTS = [
    *handed(HAND_OFF),
    *handed("import copy\n$new = copy.deepcopy($model)\n$model = $new\ndel $new\n$use($model)\n"),
    *handed('torch.save($model.state_dict(), "$file.pt")\n$new = $build()\n$new.load_state_dict(torch.load("$file.pt"))\n'
            "$model = $new\ndel $new\n$use($model)\n"),
    *handed(HAND_OFF + HAND_OFF),
    *handed(HAND_OFF + "time.sleep(0.3)\n" + HAND_OFF + HAND_OFF),
]  # fmt: skip
NO_DOUBLE_WEIGHTS = [
    *handed("$halves = {k: v.half() for k, v in $model.state_dict().items()}\n$model.load_state_dict($halves)\ndel $halves\n$use($model)\n"),
    *handed("$student = $build()\n$use($student)\n$use($model)\n"),
    *handed("del $model\n$model = $build()\n$use($model)\n"),
    *handed("import copy\n$average = copy.deepcopy($model)\nfor _ in range(2):\n    $use($model)\n$use($average)\n"),
]  # fmt: skip

DRIVER = "\nfrom driver_calls import library\n"
NCCL = DRIVER + """
$runtime, $nccl, $torch = library("libcudart.so.12"), library("libnccl.so.2", 0), library("libc10_cuda.so", 0)
$runtime.begin()
$torch.malloc($n_torch << 20)
for _ in range($n_groups):
    $nccl.malloc($n_each << 20)
    $nccl.make("cuMemHostAlloc", $n_pinned << 20, 0)
"""
GROUPS = {"n_torch": (300, 1500), "n_groups": (1, 6), "n_each": (90, 260), "n_pinned": (2, 10)}
OTHERS = DRIVER + """
$runtime, $blas, $torch = library("libcudart.so.12"), library("libcublas.so.12"), library("libc10_cuda.so", 0)
$runtime.begin()
$torch.malloc($n_torch << 20)
for _ in range($n_groups):
    $blas.malloc($n_each << 20)
"""


def driven(text: str, **numbers: tuple[int, int]) -> Recipe:
    return Recipe(text, {**GROUPS, **numbers}, driver=True)


NCCL_COMMUNICATORS = [
    driven(NCCL),
    driven(NCCL.replace("$nccl.malloc($n_each << 20)", "$block = $nccl.malloc($n_each << 20)") + "$nccl.free($block)\n"),
    driven(NCCL + '$torch.make("cuMemHostAlloc", $n_pinned << 20, 0)\n', n_each=(34, 60), n_pinned=(12, 40), n_groups=(2, 5),
           n_torch=(300, 600)),
]  # fmt: skip
NO_NCCL = [
    driven(NCCL, n_groups=(1, 2), n_each=(8, 30), n_pinned=(1, 4)),
    driven(NCCL, n_groups=(1, 2), n_each=(34, 60), n_torch=(1400, 2000)),
    driven(OTHERS),
    # Gone before the device is fullest.
    driven(NCCL.replace("$torch.malloc($n_torch << 20)\n", "").replace("$nccl.malloc($n_each << 20)", "$nccl.free($nccl.malloc($n_each << 20))")
           + "$torch.malloc($n_torch << 20)\n", n_torch=(600, 1500)),
]  # fmt: skip
