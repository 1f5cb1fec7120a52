"""Examples of our own with the calls of the documents in their order, for where the documents are not."""

import os
import re
import sys
from pathlib import Path

import nested
import pytest

pytest.importorskip("torch")

OWN = Path(__file__).parent / "own"
EXAMPLES = sorted(path.stem for path in OWN.glob("*.py") if path.stem != "expect")
BASIS = {"run": "exact", "plain": "exact"}


@pytest.mark.parametrize("how", BASIS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_and_its_figures_are_right(tmp_path, name, how):
    argv = [sys.executable, OWN / f"{name}.py", BASIS[how]]
    popen = dict(cwd=tmp_path, timeout=120, env=dict(os.environ, MPLBACKEND="Agg"))
    done = nested.record(tmp_path / "recording", argv, **popen) if how == "run" else nested.execute(argv, **popen)
    done.ok()


def test_the_examples_touch_every_name_that_the_documents_use():
    text = "\n".join((OWN / f"{name}.py").read_text() for name in EXAMPLES)
    used = set(re.findall(r"\w+", text))
    promised = """GPUMemoryProfiler MemoryTracker MemoryWatchdog MemoryAnalyzer MemoryVisualizer ProfiledModule
        profile_model profile_function profile_context start_monitoring stop_monitoring get_summary clear_results
        capture_snapshot track_tensor detect_memory_leaks generate_optimization_report generate_performance_insights
        analyze_memory_patterns plot_memory_timeline plot_function_comparison
        create_memory_heatmap create_interactive_dashboard start_tracking stop_tracking get_statistics
        add_cleanup_callback peak_memory_usage memory_diff memory_allocated memory_freed tensors_created tensors_deleted
        gpu_memory_mb enable_tensor_tracking sensitivity""".split()
    assert not set(promised) - used
