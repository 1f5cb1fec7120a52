"""What a report tells of is one click away: its evidence takes the blocks that the report counted."""

import re

import harness
import nested
import pytest
import runs

GROWING = """
import torch

kept = []
for step in range(30):
    layer = torch.empty(1000 + step)
    kept.append(torch.empty(4096))
    kept.append(torch.empty(256))
"""


def size_text(size_bytes):
    """As reports write sizes, from arithmetic."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    value, units = size_bytes / 1024, ["KiB", "MiB", "GiB"]
    while value >= 1023.5:
        value, units = value / 1024, units[1:]
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {units[0]}"


def evidence_of(document):
    """Title of the section, what is said, the evidence."""
    for section in document["sections"]:
        if "evidence" in section:
            yield section["title"], None, section["evidence"]
        for part in section["parts"]:
            for one in part.get("items", []) + part.get("rows", []):
                if "evidence" in one:
                    yield section["title"], one, one["evidence"]


def held(page, file, evidence):
    """Bytes of the blocks that evidence points at."""
    query = {"file": file, "device": evidence["device"], "filter": evidence.get("filter", "")}
    if "event" in evidence:
        header, columns = page.ask("holders", event=evidence["event"], **query)
    else:
        header, columns = page.ask("holders", what="left", **{"from": evidence["from"], "to": evidence["to"] + 1}, **query)
    assert header["total_bytes"] == columns["bytes"][0]
    return header["total_bytes"]


@pytest.mark.parametrize("path", runs.RUNS, ids=lambda path: path.name)
def test_rows_of_lines_and_types_hold_what_they_say(path, view):
    page = view(path)
    file = page.run()["files"][0]
    seen = 0
    for title, row, evidence in evidence_of(file["document"]):
        assert 0 <= evidence["device"] < len(file["devices"])
        if row is None or not ("line of your code" in title or title == "Memory at the peak, by type"):
            continue
        assert evidence["event"] == file["devices"][evidence["device"]]["peak"]["event"]
        assert size_text(held(page, 0, evidence)) == row["cells"][0]["text"], (title, row["cells"], evidence)
        seen += 1
    lines = [part for s in file["document"]["sections"] for part in s["parts"] if "line of your code" in s["title"]]
    rows = [row for table in lines for row in table.get("rows", [])]
    assert seen or all("no stack" in row["cells"][-1]["text"] for row in rows)


def test_what_grows_is_what_its_lines_leave_behind(tmp_path, view):
    pytest.importorskip("torch")
    program = tmp_path / "grows.py"
    program.write_text(GROWING)
    folder = tmp_path / "recording"
    nested.record(folder, [harness.PYTHON, program], timeout=300).ok()
    findings = runs.analysis(folder)["findings"]
    finding = next(one for one in findings if one["kind"] in ("leak", "growth_in_loop"))
    page = view(folder)
    file = page.run()["files"][0]
    # Also the growth of the device that the report tells with these lines.
    assert file["findings"] == len(findings)
    document = file["document"]
    told = [one for title, one, evidence in evidence_of(document) if title == "Findings" and "grows.py:7" in one["text"]]
    assert told, document["sections"]
    evidence = told[0]["evidence"]
    assert evidence["from"] == 0 and "line:" in evidence["filter"] and "grows.py:7" in evidence["filter"]
    # 30 blocks of 4096 floats at the first line, of 256 at the other where it is one finding with it.
    assert held(page, 0, evidence) == 30 * 4 * (4096 + 256 * ("grows.py:8" in evidence["filter"]))
    assert finding["bytes"] == held(page, 0, evidence)


@pytest.mark.parametrize("path", runs.RUNS, ids=lambda path: path.name)
def test_a_refused_request_is_shown_at_its_moment(path, view):
    findings = [one for one in runs.analysis(path)["findings"] if one["kind"] == "out_of_memory"]
    if not findings:
        pytest.skip("nothing was refused")
    page = view(path)
    document = page.run()["files"][0]["document"]
    told = [(one, evidence) for title, one, evidence in evidence_of(document) if title == "Findings" and re.search("were (requested|refused,) with", one["text"])]
    assert len(told) == len(findings)
    for finding, (one, evidence) in zip(findings, told):
        header, marks = page.ask("marks", device=evidence["device"])
        refused = {event: bytes for event, kind, bytes in zip(marks["event"], marks["kind"], marks["bytes"]) if header["kinds"][kind] == "out of memory"}
        is_explained = "device_free_bytes" in finding["evidence"]
        assert evidence["view"] == ("space" if is_explained else "holders") and refused[evidence["event"]] == finding["evidence"]["asked_bytes"]
        if path.suffix != ".gmp":
            assert evidence["event"] == finding["evidence"]["event_index"] + 1


@pytest.mark.parametrize("path", runs.RUNS, ids=lambda path: path.name)
def test_the_page_counts_the_findings_that_analyze_names(path, view):
    assert view(path).run()["files"][0]["findings"] == len(runs.analysis(path)["findings"])


def test_a_line_is_one_of_several(view):
    page = view(harness.ROOT / "tests" / "fixtures" / "allocator" / "training_2.5.pickle")
    header, columns = page.ask("levels", by="line", columns=1)
    lines = [key["label"] for key in header["keys"] if key["id"] not in (-1, None) and '"' not in key["label"]][:2]
    assert len(lines) == 2
    at = page.run()["files"][0]["devices"][0]["peak"]["event"]
    total = lambda filter: page.ask("holders", event=at, filter=filter)[0]["total_bytes"]  # noqa: E731
    a, b = (f'line:"{line}"' for line in lines)
    assert total(f"{a} {b}") == total(a) + total(b)
    assert total("") == total(f"{a} {b}") + total(f"not {a} not {b}")
    assert page.refusal("levels", filter="line:")["at"] == 5
