"""A recording that lost its end or a part of it: never called exact, and what is missing is counted once, in every face."""
import json
import shutil
import struct

import pytest

import harness

PAGE = 4096
SEALED_EVENTS, FOOTER = 4, 7


def chunks(data):
    """(offset, end, type, count) of every chunk, by docs/recording-format.md."""
    at = PAGE
    while at + 64 <= len(data):
        magic, kind, _, length, _, _, _, _, _, _, count, _ = struct.unpack_from("<IHHIIQQQQIIQ", data, at)
        if magic != 0x4b434d47:
            at += PAGE
            continue
        end = at + (64 + length + PAGE - 1) // PAGE * PAGE
        yield at, min(end, len(data)), kind, count
        at = end


@pytest.fixture(scope="module")
def whole(tmp_path_factory, light):
    """A recording with its peak near the beginning, of more events than one chunk holds."""
    folder = tmp_path_factory.mktemp("whole") / "recording"
    harness.record(folder, [harness.PYTHON, harness.PROGRAMS / "churn.py", 100_000], env=light.env).ok()
    return folder


@pytest.fixture
def changed(whole, tmp_path):
    """Calls back with a copy of the recording whose one file holds other bytes."""
    (file,) = harness.files(whole)
    numbers = iter(range(1000))

    def change(data):
        folder = tmp_path / str(next(numbers))
        shutil.copytree(whole, folder)
        (folder / file.name).write_bytes(data)
        return folder

    return change


def data_of(folder):
    (file,) = harness.files(folder)
    return file.read_bytes()


def analysis_of(folder, *options):
    done = harness.execute([harness.COMMAND, "analyze", folder, "--format", "json", *options]).ok()
    return json.loads(done.stdout)


def loss_line(folder):
    lines = harness.execute([harness.COMMAND, "analyze", folder]).ok().stdout.decode().splitlines()
    assert "NOT EXACT" in lines[0]
    (line,) = [line for line in lines if line.startswith("LOST: ")]
    return line


def test_a_finished_file_cut_anywhere_is_not_exact_and_tells_how_many_events_are_gone(whole, changed):
    data, total = data_of(whole), harness.analysis(whole)["source"]["events"]
    boundaries = {at for chunk in chunks(data) for at in chunk[:2]} - {len(data)}
    assert len(boundaries) > 5
    for length in sorted(boundaries | {PAGE, len(data) - 1, len(data) // 2, 3 * len(data) // 4 + 1}):
        folder = changed(data[:length])
        for options in (["--no-seal"], []):  # and what `analyze` may write itself makes it no whole file
            analysis = analysis_of(folder, *options)
            gone = total - analysis["source"]["events_read"]
            assert analysis["lost"]["events"] == gone, length
            assert all(not device["peak"]["exact"] for device in analysis["devices"]), length
        if analysis["devices"]:
            assert f"{gone:,} event" in loss_line(folder) or gone == 0


def test_a_chunk_of_events_that_is_gone_is_counted_once(whole, changed):
    data, total = data_of(whole), harness.analysis(whole)["source"]["events"]
    sealed = [chunk for chunk in chunks(data) if chunk[2] == SEALED_EVENTS]
    assert len(sealed) > 1 and sum(count for *_, count in sealed) == total
    for begin, end, _, count in sealed:
        analysis = analysis_of(changed(data[:begin] + bytes(end - begin) + data[end:]))
        assert analysis["lost"]["events"] == count
        assert not analysis["devices"][0]["peak"]["exact"]


def test_what_is_gone_neither_passes_a_condition_nor_is_less_memory(whole, changed):
    data = data_of(whole)
    part = changed(data[:[begin for begin, _, kind, _ in chunks(data) if kind == SEALED_EVENTS][1]])
    nothing = changed(data[:PAGE])
    for folder, said in ((part, b"events were lost"), (nothing, b"events were lost"), (whole, None)):
        done = harness.execute([harness.COMMAND, "analyze", folder, "--fail-on", "leak,peak>1TiB"])
        why = b"gpumemprof: --fail-on: leak, peak>1TiB: unknown whether it holds, because %s\n" % said if said else b""
        assert (done.rc, done.stderr) == (1 if said else 0, why)
        assert harness.execute([harness.COMMAND, "analyze", part, "--fail-on", "leak,peak>1"]).rc == 3
    assert harness.execute([harness.COMMAND, "analyze", nothing]).ok().stdout.startswith(b"No events: all were lost.\n")
    first = harness.execute([harness.COMMAND, "diff", whole, nothing]).ok().stdout.decode().splitlines()[0]
    assert first.startswith("B's peak is unknown, because events were lost; A's is "), first
    first = harness.execute([harness.COMMAND, "diff", part, whole]).ok().stdout.decode().splitlines()[0]
    assert first.endswith("; NOT EXACT: events were lost (A)"), first


@pytest.mark.parametrize("to", ["jsonl", "csv", "perfetto", "pprof", "speedscope", "folded", "html"])
def test_an_export_that_lacks_events_says_so_and_fails(whole, changed, to, tmp_path):
    data = data_of(whole)
    cut = changed(data[:[begin for begin, _, kind, _ in chunks(data) if kind == SEALED_EVENTS][1]])
    done = harness.execute([harness.COMMAND, "export", cut, "--to", to, "-o", tmp_path / "out"])
    assert (done.rc, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"gpumemprof: {cut}: {loss_line(cut)}\n"
    assert (tmp_path / "out").stat().st_size > 0
    done = harness.execute([harness.COMMAND, "export", whole, "--to", to, "-o", tmp_path / "out"])
    assert (done.rc, done.stdout, done.stderr) == (0, b"", b"")


def test_sealing_leaves_a_file_that_was_cut_as_it_is_and_says_so(whole, changed):
    data = data_of(whole)
    (footer,) = [begin for begin, _, kind, _ in chunks(data) if kind == FOOTER]
    cut = changed(data[:footer])
    done = harness.execute([harness.COMMAND, "seal", cut])
    (file,) = harness.files(cut)
    assert done.rc == 2
    assert done.stderr.decode() == f"gpumemprof: {file}: its end is missing; left as it is\n"
    assert file.read_bytes() == data[:footer]
