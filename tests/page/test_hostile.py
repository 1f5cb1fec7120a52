"""Names and sizes of a hostile file come through as text and numbers, and break nothing."""

import pickle

import harness
import pytest

MIB = 1 << 20
NAMES = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\x1b[31m\x07\x00red", "\u202egnp.exe", "a" * 60_000,
         '"\\\n\r', "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"), "../../etc/passwd"]  # fmt: skip


def write(path, trace, segments=()):
    path.write_bytes(pickle.dumps({"segments": list(segments), "device_traces": [trace]}))
    return path


def event(action, address, size, frames, at, **more):
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames, "time_us": 1_700_000_000_000_000 + at, **more}


def frame(name, line=1):
    return {"filename": name, "line": line, "name": name}


def every_answer(page):
    """The bodies of all requests."""
    page.run()
    for what, query in (
        ("run", {}), ("levels", {"by": "stack"}), ("levels", {"by": "line"}), ("levels", {"by": "module"}), ("blocks", {}), ("marks", {}),
        ("holders", {"event": "peak"}), ("holders", {}), ("space", {}), ("space_time", {}), ("times", {}), ("block", {"id": 0}),
        ("stack", {"id": 1}), ("search", {"q": "a"}), ("compare", {}), ("whatif", {}), ("allocator", {}),
    ):  # fmt: skip
        status, headers, body = page.get(f"/api/v1/{what}", **query)
        assert status == 200, (what, body[:300])
        yield what, headers, body


def test_names_are_text(tmp_path, view):
    trace = [event("alloc", 4096 * (i + 1), MIB, [frame(name)], i) for i, name in enumerate(NAMES)]
    page = view(write(tmp_path / "<b>hostile & co.pickle", trace))
    for what, headers, body in every_answer(page):
        assert headers["Content-Type"] in ("application/json", "application/octet-stream")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert len(body) < 20_000_000
    files = [page.ask("stack", id=page.ask("block", id=i)["block"]["stack"])["frames"][0]["file"] for i in range(len(NAMES))]
    assert files[0] == NAMES[0] and files[1] == NAMES[1]
    found, columns = page.ask("search", q='"</script><script>"')
    assert columns["block"] == [0]


@pytest.mark.parametrize("size", [2**53 + 2, 2**63, 2**63 - 1])
def test_sizes_beyond_any_memory_break_nothing(tmp_path, view, size):
    trace = [event("alloc", 4096 * (i + 1), size, [frame("a.py")], i) for i in range(4)]
    page = view(write(tmp_path / "large.pickle", trace))
    run = page.run()["files"][0]
    if run["state"] == "failed":  # where the reader refuses it: with a line
        assert "\n" not in run["error"]
        return
    for what, _, body in every_answer(page):
        assert body
    header, _ = page.ask("levels", by="none")
    assert header.get("clamped", 0) > 0


def test_very_many_stacks_are_summed(tmp_path, view):
    count = 30_000
    trace = [event("alloc", 4096 * (i + 1), 512 + i, [frame("a.py", i + 1), frame("main.py", 1)], i) for i in range(count)]
    page = view(write(tmp_path / "stacks.pickle", trace))
    page.run()
    total = sum(512 + i for i in range(count))
    header, columns = page.ask("levels", by="stack", columns=10)
    assert header["keys"][-1] == {"id": -1, "label": "other", "keys": count - 24}
    assert sum(columns["values"][k * 10 + 9] for k in range(25)) == total
    header, tree = page.ask("holders", event="peak", limit=100)
    assert header["total_bytes"] == tree["bytes"][0] == total and len(tree["parent"]) <= 100
    assert header["left_out"]["nodes"] == count + 2 - len(tree["parent"])
    assert header["left_out"]["bytes"] == total - sum(tree["self_bytes"])


def test_of_two_files_that_which_is_none_is_named(tmp_path):
    """They are read at the same time."""
    good, bad = write(tmp_path / "good.pickle", [event("alloc", 4096, 512, [frame("a.py")], 0)]), tmp_path / "bad.pickle"
    bad.write_bytes(b"\x80\x04nothing")
    for paths in ((good, bad), (bad, good)):
        done = harness.execute([harness.COMMAND, "view", "--no-browser", "--port", "0", *paths])
        (line,) = done.stderr.decode().splitlines()
        assert done.rc == 2 and line.startswith(f"gpumemprof: {bad}: ") and str(good) not in line


def test_a_file_that_is_none_is_refused_with_a_line(tmp_path):
    path = tmp_path / "nothing.pickle"
    path.write_bytes(b"\x80\x04junk")
    done = harness.execute([harness.COMMAND, "view", "--no-browser", "--port", "0", path])
    assert done.rc == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1
    done = harness.execute([harness.COMMAND, "view", "--no-browser", tmp_path / "absent"])
    assert done.rc == 2 and done.stderr.count(b"\n") == 1
