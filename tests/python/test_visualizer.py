"""MemoryVisualizer: what is drawn is what was measured, and it looks as it did.

`GPUMEMPROF_WRITE_IMAGES=1` writes the reference images anew; look at them before they are kept.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from carried_page import CarriedPage, has_no_network
from made_results import MIB, START_S, result, samples, training

from gpumemprof import MemoryVisualizer
from gpumemprof.visualizer._page import Page

pytest.importorskip("matplotlib", reason="the extra viz is not installed")
IMAGES = Path(__file__).parent / "images"
MOST_DIFFERENCE = 6  # root mean square of 255: letters move by a pixel from one FreeType to the next, bars do not


def parts(page, kind):
    """Those of one kind in the page's report."""
    document = page.document if isinstance(page, Page) else page["document"]
    return [part for section in document["sections"] for part in section["parts"] if part["kind"] == kind]


@pytest.fixture
def visualizer():
    return MemoryVisualizer(figure_size=(6.0, 3.6))


def tracked():
    return samples([(3 + 2 * (i % 20) / 20) * 2**30 for i in range(100)], used=[6 * 2**30] * 100, total=80 * 2**30)


def ranks():
    return [
        event
        for rank in range(4)
        for event in samples(
            [2**30] * 50, used=[(4 + rank) * 2**30 + (rank == 2) * i * 30 * MIB for i in range(50)], rank=rank
        )
    ]


PICTURES = {
    "timeline": lambda v, path: v.plot_memory_timeline(training(), save_path=path, interactive=False),
    "timeline_of_tracker": lambda v, path: v.plot_memory_timeline(tracked(), save_path=path, interactive=False),
    "functions": lambda v, path: v.plot_function_comparison(training(), save_path=path, interactive=False),
    "heatmap": lambda v, path: v.plot_memory_heatmap(training(), save_path=path),
    "ranks": lambda v, path: v.plot_cross_rank_timeline(ranks(), save_path=path),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_looks_as_it_did(visualizer, tmp_path, name):
    import matplotlib
    from matplotlib.testing.compare import compare_images

    if matplotlib.__version_info__ < (3, 11):  # the newest for Python 3.10 is older
        pytest.skip("the images are of matplotlib 3.11, and 3.10 lays text out elsewhere")
    path = tmp_path / f"{name}.png"
    PICTURES[name](visualizer, path)
    expected = IMAGES / path.name
    if os.environ.get("GPUMEMPROF_WRITE_IMAGES"):
        from PIL import Image

        Image.open(path).convert("RGB").quantize(64).save(expected, optimize=True)  # a third of the size
    difference = compare_images(str(expected), str(path), MOST_DIFFERENCE)
    assert difference is None, difference
    assert expected.stat().st_size < 30_000


def test_the_same_data_is_the_same_file(visualizer, tmp_path):
    for name in ("a.png", "b.png"):
        visualizer.plot_memory_timeline(training(), save_path=tmp_path / name, interactive=False)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def line(figure, gid):
    (found,) = [one for axes in figure.axes for one in axes.get_lines() if one.get_gid() == gid]
    return list(found.get_xdata()), list(found.get_ydata())


def test_the_timeline_is_sorted_by_time_whatever_the_order_of_results(visualizer):
    results = training()
    figure = visualizer.plot_memory_timeline(results[::-1], interactive=False)
    times, values = line(figure, "allocated")
    assert times == sorted(times) and times[0] == 0
    assert values[:4] == [200 * MIB, 232 * MIB, 232 * MIB, 200 * MIB]
    assert len(times) == 2 * len(results)


def test_the_peak_is_marked_at_the_call_that_had_it(visualizer):
    figure = visualizer.plot_memory_timeline([result("a", 0, 1, 0, 5 * MIB, 0), result("b", 2, 1, 0, 96 * MIB, MIB)],
                                             interactive=False)  # fmt: skip
    assert line(figure, "peak") == ([2.5], [96 * MIB])  # the middle of the call: when within it, nobody knows
    (label,) = [text.get_text() for text in figure.axes[0].texts if text.get_text()]
    assert label == "peak 96.0 MiB at 2.5 s"


def test_a_peak_between_samples_is_a_lower_bound(visualizer):
    figure = visualizer.plot_memory_timeline(samples([MIB, 8 * MIB, MIB]), interactive=False)
    assert [text.get_text() for text in figure.axes[0].texts if text.get_text()] == ["at least 8.00 MiB at 0.1 s"]


def test_the_title_says_what_it_is_and_where_the_numbers_come_from(visualizer):
    figure = visualizer.plot_memory_timeline(training(), interactive=False)
    assert figure.get_suptitle().strip() == "Memory of the CPU over time"
    assert [text.get_text() for text in figure.texts if text.get_gid() == "basis"] == ["exact, from allocator events"]


def test_the_axis_is_in_one_binary_unit(visualizer):
    figure = visualizer.plot_memory_timeline(training(), interactive=False)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["0", "64 MiB", "128 MiB", "192 MiB", "256 MiB", "320 MiB", "384 MiB", "448 MiB", "512 MiB"]


def test_functions_are_compared_by_their_highest_call(visualizer):
    figure = visualizer.plot_function_comparison(training(), interactive=False)
    axes = figure.axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    whole, before = axes.patches[:3], axes.patches[3:]
    assert dict(zip(names, [bar.get_width() for bar in whole], strict=True)) == {
        "train_step": 511 * MIB, "evaluate": 320 * MIB, "load_batch": 240 * MIB,
    }  # fmt: skip
    assert names[0] == "train_step"
    # What was allocated when the call began is pale, and no need of its own.
    assert [bar.get_width() for bar in before] == [232 * MIB, 200 * MIB, 200 * MIB]
    labels = [text.get_text() for text in axes.texts]
    assert labels == ["511 MiB (+279 MiB)", "320 MiB (+120 MiB)", "240 MiB (+40.0 MiB)"]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("memory_allocated", 12 * 40 * MIB),
        ("memory_kept", 12 * 32 * MIB),
        ("execution_time", 0.6),
        ("call_count", 12),
    ],
)
def test_every_metric_adds_up_the_calls(visualizer, metric, value):
    figure = visualizer.plot_function_comparison(training(), metric=metric, interactive=False)
    axes = figure.axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    bars = dict(zip(names, [bar.get_width() for bar in axes.patches], strict=True))
    assert bars["load_batch"] == pytest.approx(value)
    # The page has the same order, and bars of the same lengths.
    (table,) = parts(visualizer.plot_function_comparison(training(), metric=metric), "table")
    assert [row["cells"][0]["text"] for row in table["rows"]] == names
    assert [row["share"] for row in table["rows"]] == pytest.approx([abs(bars[name]) / max(map(abs, bars.values())) for name in names])


def test_an_unknown_metric_is_refused(visualizer):
    with pytest.raises(ValueError, match="Unknown metric: colour"):
        visualizer.plot_function_comparison(training(), metric="colour")


def test_function_profiles_of_a_summary_are_compared(visualizer):
    summaries = {"f": {"call_count": 2, "total_time": 1.0, "peak_memory": 3 * MIB, "total_memory_allocated": 4 * MIB}}
    (table,) = parts(visualizer.plot_function_comparison(summaries), "table")
    (row,) = table["rows"]
    assert [cell["text"] for cell in row["cells"]] == ["f", "2", "3.00 MiB", "4.00 MiB", "not known", "1 s", "3.00 MiB"]


def test_the_heatmap_has_a_row_a_function_and_holes_where_it_did_not_run(visualizer):
    figure = visualizer.plot_memory_heatmap(
        [result("a", 0, 1, 0, 4 * MIB, 0), result("b", 1, 2, 0, 8 * MIB, 0), result("a", 3, 1, 0, 6 * MIB, 0)],
        interactive=True,
    )
    (chart,) = parts(figure, "chart")
    rows = {line["name"]: line["bytes"] for line in chart["lines"]}
    assert list(rows) == ["b", "a"]
    known = [cell for cell in rows["a"] if cell is not None]
    assert set(known) == {4 * MIB, 6 * MIB} and None in rows["a"]
    assert [cell for cell in rows["b"] if cell is not None] == [8 * MIB] * 6  # half of twelve slices of 4 s


def test_interactive_is_the_page_and_otherwise_matplotlib(visualizer, tmp_path):
    import matplotlib.figure

    static = visualizer.plot_memory_timeline(training(), interactive=False)
    dynamic = visualizer.plot_memory_timeline(training(), interactive=True)
    assert isinstance(static, matplotlib.figure.Figure) and isinstance(dynamic, Page)
    # The file is what its name says, whatever is returned.
    both = visualizer.plot_memory_timeline(training(), interactive=True, save_path=tmp_path / "x.png")
    assert isinstance(both, Page)
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    visualizer.plot_memory_timeline(training(), interactive=False, save_path=tmp_path / "x.html")
    assert CarriedPage((tmp_path / "x.html").read_text()).documents() == [dynamic.document]


def test_an_html_page_needs_no_network_and_takes_no_markup(visualizer, tmp_path):
    harmless, evil = (CarriedPage(visualizer.create_dashboard([result(name, 0, 1, 0, MIB, 0)]).html()) for name in ("f", "</script><img src=x>"))
    has_no_network(evil)
    assert evil.frame == harmless.frame
    assert parts(evil.files[0], "table")[0]["rows"][0]["cells"][0]["text"] == "</script><img src=x>"


def test_the_page_has_the_timeline_the_functions_with_their_calls_and_functions_over_time(visualizer):
    page = visualizer.create_dashboard(training())
    timeline, over_time = parts(page, "chart")
    allocated = next(line for line in timeline["lines"] if line["name"] == "allocated")
    assert allocated["bytes"][:4] == [200 * MIB, 232 * MIB, 232 * MIB, 200 * MIB]
    calls = next(line for line in timeline["lines"] if line["name"] == "calls, as high as their peak")
    assert max(value for value in calls["bytes"] if value is not None) == 511 * MIB
    (table,) = parts(page, "table")
    assert [row["cells"][0]["text"] for row in table["rows"]] == ["train_step", "evaluate", "load_batch"]
    assert len(table["rows"][2]["details"][0]["rows"]) == 12
    assert {line["name"] for line in over_time["lines"]} == {"train_step", "evaluate", "load_batch"}
    assert "peak 511 MiB" in page.document["sections"][0]["parts"][0]["text"]


def test_a_tracker_has_a_dashboard_without_functions(visualizer):
    page = visualizer.create_dashboard(tracked())
    assert len(parts(page, "chart")) == 1 and parts(page, "table") == []


def test_exported_calls_come_back_as_they_were(visualizer, tmp_path):
    path = visualizer.export_data(training(epochs=1), save_path=tmp_path / "deep" / "run.csv")
    assert path == str(tmp_path / "deep" / "run.csv")
    first = list(csv.DictReader(open(path)))[0]
    assert first["function_name"] == "load_batch" and int(first["peak_memory"]) == 240 * MIB
    assert int(first["memory_diff"]) == 32 * MIB and float(first["execution_time"]) == 0.05
    rows = list(csv.DictReader(open(tmp_path / "deep" / "run_samples.csv")))
    assert [int(row["allocated_bytes"]) for row in rows] == [200 * MIB, 232 * MIB, 232 * MIB, 200 * MIB]
    assert float(rows[0]["timestamp"]) == START_S


def test_json_without_an_extension_gets_one(visualizer, tmp_path):
    path = visualizer.export_data(training(epochs=1), format="json", save_path=tmp_path / "run")
    document = json.loads(Path(path).read_text())
    assert path == str(tmp_path / "run.json") and document["metadata"]["num_results"] == 2
    assert [row["function_name"] for row in document["results"]] == ["load_batch", "train_step"]


def test_samples_alone_are_the_named_file(visualizer, tmp_path):
    path = visualizer.export_data(samples([1, 2, 3]), save_path=tmp_path / "s.csv")
    assert [row["allocated_bytes"] for row in csv.DictReader(open(path))] == ["1", "2", "3"]


def test_another_format_is_refused(visualizer, tmp_path):
    with pytest.raises(ValueError, match="Unsupported format: excel"):
        visualizer.export_data(training(), format="excel", save_path=tmp_path / "x")


def test_all_plots_are_saved(visualizer, tmp_path):
    paths = visualizer.save_plots(training(), tmp_path / "plots")
    assert sorted(Path(path).name for path in paths) == [
        "function_comparison.png",
        "memory_heatmap.png",
        "memory_timeline.png",
    ]
    assert all(Path(path).stat().st_size > 1000 for path in paths)


def test_nothing_to_show_is_said(visualizer):
    with pytest.raises(ValueError, match="No data available for plotting: the profiler has no results yet"):
        MemoryVisualizer().plot_memory_timeline({"results": []})
    with pytest.raises(ValueError, match="nothing was measured"):
        visualizer.plot_memory_timeline()


def test_a_real_profiler_is_drawn(tmp_path):
    from gpumemprof import GPUMemoryProfiler

    profiler = GPUMemoryProfiler(device="cpu")
    with profiler.profile_context("block"):
        pass
    MemoryVisualizer(profiler).plot_memory_timeline(interactive=False, save_path=tmp_path / "t.png")
    assert (tmp_path / "t.png").exists()


def test_drawing_touches_no_global_state_of_matplotlib(tmp_path):
    program = """if True:
        import sys, matplotlib
        before = dict(dict.items(matplotlib.rcParams))  # not rcParams["backend"]: to ask is to choose one
        from gpumemprof import MemoryVisualizer
        MemoryVisualizer().plot_memory_timeline([1, 2, 3], interactive=False, save_path=sys.argv[1])
        assert dict(dict.items(matplotlib.rcParams)) == before
        assert "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", program, tmp_path / "x.png"], check=True)


def test_a_missing_library_names_its_package():
    program = """if True:
        import sys
        sys.modules["matplotlib"] = None
        from gpumemprof import MemoryVisualizer
        try:
            MemoryVisualizer().plot_memory_timeline([1, 2, 3], interactive=False)
        except ImportError as error:
            assert str(error) == (
                "Matplotlib, for MemoryVisualizer, is required: "
                f"install it for {sys.executable} with `pip install matplotlib`"
            )
        else:
            raise SystemExit("no error")
        MemoryVisualizer().plot_memory_timeline([1, 2, 3]).html()  # the page needs nothing
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_picture_of_other_data_is_told_apart(visualizer, tmp_path):
    from matplotlib.testing.compare import compare_images

    path = tmp_path / "other.png"
    visualizer.plot_memory_timeline(training(leak_bytes=8 * MIB), save_path=path, interactive=False)
    assert compare_images(str(IMAGES / "timeline.png"), str(path), MOST_DIFFERENCE) is not None


def test_names_are_names_whatever_is_in_them(visualizer, tmp_path):
    """A lambda is no HTML, a price is no mathematics, and two long names that end alike are two."""
    alike = [f"{letter}{'_long' * 10}" for letter in "ab"]
    names = ["<lambda>", "costs $5 or $6_{", *alike]
    results = [result(name, i, 0.5, 0, (4 - i) * MIB, 0) for i, name in enumerate(names)]
    visualizer.save_plots(results, tmp_path)
    (table,) = parts(visualizer.plot_function_comparison(results), "table")
    assert [row["cells"][0]["text"] for row in table["rows"]] == names
    static = visualizer.plot_function_comparison(results, interactive=False)
    assert static.axes[0].get_yticklabels()[1].get_text() == r"costs \$5 or \$6_{"


def test_a_page_of_very_many_samples_and_calls_stays_small_and_keeps_the_peaks(visualizer):
    series = [MIB + i % 7 for i in range(50_000)]
    series[33_333] = 9 * MIB
    (chart,) = parts(visualizer.plot_memory_timeline(series), "chart")
    assert len(chart["lines"][0]["times_s"]) <= 4000 and max(chart["lines"][0]["bytes"]) == 9 * MIB
    calls = [result("f", i, 0.5, 0, (i % 3000) * MIB, 0) for i in range(3000)]
    (chart,) = parts(visualizer.plot_memory_timeline(calls), "chart")
    blocks = chart["lines"][1]
    assert blocks["name"].endswith(", the highest 1000 of 3000") and max(y for y in blocks["bytes"] if y) == 2999 * MIB


def test_a_summary_is_drawn_from_the_profiler_that_it_sums_up():
    from gpumemprof import GPUMemoryProfiler

    profiler = GPUMemoryProfiler(device="cpu")
    profiler.profile_function(lambda: None)
    summary = profiler.get_summary()
    assert len(MemoryVisualizer(profiler).plot_memory_timeline(summary, interactive=False).axes) == 2
    with pytest.raises(ValueError, match="totals have no moments in them"):
        MemoryVisualizer().plot_memory_timeline(summary)
    assert MemoryVisualizer().plot_function_comparison(summary["function_summaries"]).document
