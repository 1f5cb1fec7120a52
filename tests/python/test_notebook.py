"""The magic and the tables in a real kernel; runs in the venv of scripts/test-integrations."""

import base64
import html
import json
import os
import zlib

import harness
import pytest
from made_results import MIB, result, samples

import gpumemprof
from gpumemprof.notebook import CellReport, html_of

inside = pytest.mark.skipif(
    os.environ.get("GPUMEMPROF_INTEGRATIONS") != "1", reason="runs in the venv of scripts/test-integrations"
)


def test_a_report_says_peak_and_kept_in_one_line():
    report = CellReport(result("cell", 0, 0.25, MIB, 65 * MIB, 2 * MIB))
    assert repr(report) == "cell: peak 65.0 MiB (+64.0 MiB), kept 1.00 MiB, 0.25 s; exact"


def test_a_peak_that_is_a_lower_bound_is_called_so():
    report = CellReport(result("cell", 0, 0.25, 0, MIB, 0, peak_is_exact=False, basis="framework"))
    assert repr(report) == "cell: peak at least 1.00 MiB (+1.00 MiB), kept 0 B, 0.25 s; framework"


def test_names_are_text_in_html():
    page = html_of([result("<script>alert(1)</script>", 0, 1, 0, MIB, 0)])
    assert "<script>" not in page and "&lt;script&gt;" in page and "1.00 MiB" in page


def test_a_tracker_is_a_table_of_its_samples():
    page = html_of(samples([MIB, 3 * MIB, 2 * MIB]))
    cells = [part.split("</td>")[0].split(">")[-1] for part in page.split("<td")[1:]]
    assert cells[:4] == ["allocated", "1.00 MiB", "3.00 MiB", "2.00 MiB"]


def test_nothing_measured_says_so():
    assert html_of([]) == "<i>there are no results</i>"


def test_a_recording_shows_itself_as_the_page_in_a_frame():
    recording = harness.ROOT / "tests" / "fixtures" / "recordings" / "streams_2.13.gmp"
    shown = gpumemprof.load(recording)._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts" ') and shown.endswith("</iframe>")
    page = html.unescape(shown.partition('srcdoc="')[2].removesuffix('"></iframe>'))
    assert page.startswith("<!doctype html>") and "Content-Security-Policy" in page
    data = json.loads(page.partition('id="gpumemprof-data">')[2].partition("</script>")[0])
    run = zlib.decompress(base64.b64decode(data["answers"]["run"]), -15)
    assert b"streams_2.13.gmp" in run and len(shown) < 12_000_000


def test_what_cannot_be_shown_says_why(tmp_path):
    path = tmp_path / "gone.gmp"
    path.write_bytes((harness.ROOT / "tests" / "fixtures" / "recordings" / "streams_2.13.gmp").read_bytes())
    trace = gpumemprof.load(path)
    path.unlink()
    with pytest.raises(ValueError, match="gone.gmp"):
        trace._repr_html_()


def test_the_package_is_the_extension():
    from gpumemprof import notebook

    assert gpumemprof.load_ipython_extension is notebook.load_ipython_extension
    assert gpumemprof.unload_ipython_extension is notebook.unload_ipython_extension
    assert "load_ipython_extension" not in gpumemprof.__all__


def executed(cells):
    """Outputs of the cells in a new kernel, a list a cell."""
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in notebook.cells]


def text_of(output):
    return output.get("text") or output["data"]["text/plain"]


@inside
def test_a_cell_under_the_magic_is_measured_and_its_value_shown():
    load, cell, after, line = executed([
        "%load_ext gpumemprof",
        "%%gpumemprof my cell --device cpu\nkept = bytearray(64 << 20)\n2 + 3",
        "len(kept), type(_).__name__",
        "%gpumemprof kept2 = bytearray(1)",
    ])  # fmt: skip
    assert load == []
    assert text_of(cell[0]) == "5"
    assert text_of(cell[1]).startswith("my cell: peak ")
    assert "<table>" in cell[1]["data"]["text/html"]
    assert text_of(after[0]) == "(67108864, 'CellReport')"
    assert text_of(line[0]).startswith("cell: peak ")


@inside
def test_what_a_cell_raises_is_raised_once_and_its_memory_printed():
    _, cell, after = executed([
        "%load_ext gpumemprof.notebook", "%%gpumemprof\nbefore = 1\n1 / 0\nafter = 2", "before, 'after' in globals()",
    ])  # fmt: skip
    kinds = [output["output_type"] for output in cell]
    assert kinds == ["stream", "error"] and cell[1]["ename"] == "ZeroDivisionError"
    assert cell[0]["text"].startswith("cell: peak ")
    assert any("1 / 0" in line for line in cell[1]["traceback"])
    assert text_of(after[0]) == "(1, False)"


@inside
def test_magics_and_shell_lines_inside_a_cell_work():
    _, cell = executed(["%load_ext gpumemprof.notebook", "%%gpumemprof\nwords = !echo hello\nwords[0];"])
    assert [text_of(output).split(":")[0] for output in cell] == ["cell"]


@inside
def test_results_and_profilers_are_tables():
    *_, one, whole = executed(
        [
            "%load_ext gpumemprof.notebook",
            "from gpumemprof import GPUMemoryProfiler\np = GPUMemoryProfiler(device='cpu')",
            "p.profile_function(lambda: None)",
            "p",
        ]
    )
    for shown in (one, whole):
        assert "<caption>" in shown[0]["data"]["text/html"]


@inside
def test_the_page_of_a_recording_is_in_its_cell():
    recording = harness.ROOT / "tests" / "fixtures" / "recordings" / "streams_2.13.gmp"
    *_, cell = executed(["%load_ext gpumemprof", f"import gpumemprof\ngpumemprof.load({str(recording)!r})"])
    (output,) = cell
    assert output["output_type"] == "execute_result"
    shown = output["data"]["text/html"]
    assert shown.startswith('<iframe sandbox="allow-scripts" ') and "gpumemprof-data" in shown
