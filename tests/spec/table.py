"""Every Python block of the documents: what it is given, what is checked, or why it does not run here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import checks_class_page as page
import checks_guide as guide
import documents
from given import DATASET_BYTES
from ran import Ran
from table_practices import PRACTICES


@dataclass(frozen=True)
class Case:
    """One block. `key` is the guide's line, the class page's mark or, with `is_practice`, a heading; `given` are its undefined names.

    `raises` names the exception with which it has to end; `recorded` says how many allocations of a size are in its
    recording; `gpus` is how many GPUs a machine without one seems to have; `needs` is a module that has to be there.
    """

    key: int | str
    given: str
    check: Callable[[Ran], dict[str, Any] | None]
    raises: str | None = None
    recorded: tuple[int, int] | None = None
    gpus: int = 1
    needs: str = ""
    port: int = 0
    is_practice: bool = False

    def text(self) -> str:
        if self.is_practice:
            return documents.practice_blocks()[str(self.key)].text
        blocks: Any = documents.class_page_blocks() if isinstance(self.key, str) else documents.guide_blocks("python")
        return str(blocks[self.key].text)


# Given names: `profiler_with_calls as profiler` makes one of given.py's and calls it `profiler`.
_GUIDE = [
    Case(76, "load_large_dataset train_model_on as train_model", guide.nothing, recorded=(DATASET_BYTES, 1000)),
    Case(85, "", lambda ran: guide.batch_size(ran, 1)),
    Case(95, "dataset train_step", guide.losses),
    Case(142, "model data target input_tensor", guide.basic_usage),
    Case(178, "torch talking_profiler as profiler", guide.tensor_messages),
    Case(199, "", guide.real_example),
    Case(353, "train_model", guide.tracked),
    Case(390, "tracking_results", guide.leaks),
    Case(437, "profiler_with_calls as profiler, results_of_calls as results, visualizer", guide.interactive_timeline),
    Case(445, "profiler_with_calls as profiler, results_by_function as results, visualizer", guide.function_bars),
    Case(453, "profiler_with_calls as profiler, results, visualizer", guide.heatmap),
    Case(461, "profiler_with_calls as profiler, results, visualizer", guide.dashboard, port=8050),
    Case(473, "profile_function", guide.decorator),
    Case(482, "profile_context", guide.contexts),
    Case(494, "ProfiledModule profile_model model", guide.modules),
    Case(518, "LargeVisionModel OptimizedVisionModel", lambda ran: guide.batch_size(ran, 32)),
    Case(677, "MemoryAnalyzer profiler_with_calls as profiler", guide.score),
    Case(688, "analyzer profiler_with_calls as profiler", guide.insights),
    Case(699, "analyzer profiler_with_calls as profiler", guide.patterns),
    Case(736, "", guide.quick_start),
    Case(779, "", guide.first_analysis),
    Case(832, "profiler my_tensor optimize_model", guide.snapshots),
    Case(849, "torch gc train_model", guide.watchdog),
    Case(876, "torch GPUMemoryProfiler", guide.every_gpu, gpus=2),
    Case(887, "mlflow train_model", guide.mlflow_metrics, needs="mlflow"),
    Case(917, "MemoryTracker MemoryAnalyzer out_of_memory_training as train_model", guide.out_of_memory),
    Case(947, "MemoryAnalyzer MemoryTracker", guide.sensitive),
    Case(963, "GPUMemoryProfiler MemoryTracker", guide.less_overhead),
]
_CLASS_PAGE = [
    Case("function", "", page.function),
    Case("context", "torch profiler", page.context),
    Case("monitoring", "profiler model train_epoch dataloader", page.monitoring),
    Case("options", "GPUMemoryProfiler", page.options),
    Case("result", "profiler my_function", page.result),
    Case("snapshot", "result_of_my_function as result", page.snapshot),
    Case("summary", "profiler_with_calls as profiler", page.summary),
    Case("peak", "profiler my_function", page.peak),
    Case("error", "profiler buggy_function", page.error, raises="ValueError"),
    Case("clear", "profiler_with_calls as profiler", page.clear),
    Case("tensors", "GPUMemoryProfiler create_tensors", page.tensors),
    Case("devices", "torch GPUMemoryProfiler", page.devices),
]
_PRACTICES = [
    Case(name, given, check, needs=module, gpus=0, is_practice=True)
    for name, (given, check, module) in PRACTICES.items()
]
CASES = {f"guide-{case.key}": case for case in _GUIDE} | {f"class-page-{case.key}": case for case in _CLASS_PAGE}
CASES |= {f"practice-{case.key.lower().replace(' ', '-')}": case for case in _PRACTICES}

# Blocks of the guide that do not run here, and why.
TENSORFLOW = {247, 279, 308, 759}  # the other framework's half: tensorflow_blocks.py
NO_CODE = {542}  # what a program printed, fenced as Python
