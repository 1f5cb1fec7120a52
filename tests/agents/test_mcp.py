"""The tools answer what the commands answer, within the limits that they promise."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import anyio
import harness
import nested
import pytest
from speaking import FIXTURES, run, talk

NAMES = ["open", "summary", "holders", "diff", "whatif", "explain_oom", "estimate", "sql"]
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}}
# Line 3 holds 7,000,001 bytes at the peak, line 4 another 2,000,003.
PROGRAM = """import torch

first = torch.empty(7_000_001, dtype=torch.uint8)
second = torch.empty({size}, dtype=torch.uint8)
"""
OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 23.68 GiB of which "
       "1.00 GiB is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but "
       "unallocated.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs, a snapshot and a log."""
    place = tmp_path_factory.mktemp("given")
    for name, size in (("before", 2_000_003), ("after", 5_000_003)):
        program = place / f"{name}.py"
        program.write_text(PROGRAM.format(size=size))
        nested.record(place / name, [harness.PYTHON, program]).ok()
    shutil.copy(FIXTURES / "streams_2.13.pickle", place / "snapshot.pickle")
    (place / "train.log").write_text(OOM + "\n")
    return place


def command(*words):
    return run(words).ok().stdout.decode()


def test_there_are_eight_tools_that_only_read(folder):
    async def use(speaker):
        return (await speaker.session.list_tools()).tools

    tools = talk(use, folder)
    assert [tool.name for tool in tools] == NAMES
    for tool in tools:
        assert tool.annotations.read_only_hint is True and tool.annotations.open_world_hint is False
        assert tool.input_schema["additionalProperties"] is False
        assert set(tool.input_schema["required"]) <= set(tool.input_schema["properties"])


def test_holders_are_the_program_s_own_sizes(folder):
    async def use(speaker):
        by_line = (await speaker.ask("holders", path="before")).ok()
        at_end = (await speaker.ask("holders", path="before", at="end", by="stack")).ok()
        return by_line, at_end

    by_line, at_end = talk(use, folder)
    lines = by_line.body.splitlines()
    assert lines[1].endswith("before.py:3 <module> 7000001") and lines[2].endswith("before.py:4 <module> 2000003"), by_line.text
    assert "live at end, by stack" in at_end.body


def test_sql_asks_the_same_figures(folder):
    async def use(speaker):
        query = "SELECT size_bytes FROM peak_blocks WHERE size_bytes > 1000000 ORDER BY ALL"
        return (await speaker.ask("sql", paths=["before"], query=query)).ok()

    assert talk(use, folder).body.splitlines() == ["size_bytes", "2000003", "7000001"]


def test_summary_diff_whatif_and_explain_oom_are_the_commands_own_lines(folder):
    async def use(speaker):
        pages = await speaker.whole("summary", path="before")
        return ("\n".join(page.body for page in pages), await speaker.ask("diff", a="before", b="after"),
                await speaker.ask("whatif", path="snapshot.pickle", set=["expandable_segments:True"]),
                await speaker.ask("explain_oom", path="train.log"), await speaker.ask("explain_oom", text=OOM))

    summary, diff, what_if, by_path, by_text = talk(use, folder)
    before, after = folder / "before", folder / "after"

    def lines(text):
        return [line.rstrip() for line in text.splitlines() if line.strip()]

    assert lines(summary) == lines(command("analyze", before, "--no-source", "--no-seal"))
    assert lines(diff.ok().body) == lines(command("diff", before, after, "--no-seal"))
    assert lines(what_if.ok().body) == lines(
        command("whatif", folder / "snapshot.pickle", "--set", "expandable_segments:True"))
    assert lines(by_path.ok().body) == lines(command("explain-oom", folder / "train.log"))
    assert by_text.ok().body.replace("standard input", str(folder / "train.log")) == by_path.body


def test_open_lists_and_says_what_a_path_is(folder):
    async def use(speaker):
        return (await speaker.ask("open")).ok().body, (await speaker.ask("open", path="before")).ok().body

    listed, one = talk(use, folder)
    run(["export", folder / "before", "--to", "parquet", "-o", folder / "lake"]).ok()

    async def look(speaker):
        rows = await speaker.ask("sql", paths=["lake"], query="SELECT run FROM runs")
        return (await speaker.ask("open", path="lake")).ok().body, rows.ok().body, (await speaker.ask("open")).ok().body

    lake, rows, listed_again = talk(look, folder)
    assert lake == "a lake: ask sql; its runs:\nbefore" and rows == "run\nbefore"
    assert "run of a lake  " in listed_again and str(folder / "lake" / "before") in listed_again
    assert f"recording  {sum(file.stat().st_size for file in (folder / 'before').glob('*.gmp'))} bytes  {folder / 'before'}" in listed
    assert str(folder / "snapshot.pickle") in listed
    report = json.loads(command("analyze", folder / "before", "--format", "json"))
    assert f"cpu of process {report['processes'][0]['pid']}: peak {report['devices'][0]['peak']['requested_bytes']} bytes" in one


def test_estimate_is_a_closed_form_and_runs_nothing(folder):
    config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 128}
    (folder / "config.json").write_text(json.dumps(config))

    async def use(speaker):
        return (await speaker.ask("estimate", config="config.json", batch=2, optimizer="adamw"),
                await speaker.ask("estimate"))

    estimate, nothing = talk(use, folder)
    assert estimate.ok().body.split() == command(
        "estimate", "--config", folder / "config.json", "--batch", "2", "--optimizer", "adamw").split()
    assert "gpumemprof estimate -- COMMAND" in nothing.refused()


def test_an_answer_says_its_limits_and_how_to_ask_on(folder):
    async def use(speaker):
        return await speaker.whole("summary", path="before", full_stacks=True), await speaker.ask("summary", path="before", page=99)

    pages, beyond = talk(use, folder, options=["--memory", "3GiB", "--timeout", "50"])
    count = len(pages)
    for number, page in enumerate(pages, 1):
        assert page.foot.startswith(f"[page {number} of {count}")
        assert page.foot.endswith("; a call may use 3.00 GiB of memory and 50 s]")
    assert beyond.refused() == f"the answer has {count} page{'s' if count > 1 else ''}"


def test_a_wrong_call_is_one_line(folder):
    async def use(speaker):
        return {
            "sumary": await speaker.ask("sumary"),
            "missing": await speaker.ask("summary"),
            "type": await speaker.ask("summary", path=7),
            "unknown": await speaker.ask("summary", path="before", output="x"),
            "moment": await speaker.ask("holders", path="before", at="noon"),
            "value": await speaker.ask("whatif", path="snapshot.pickle", set=["--output=x"]),
            "query": await speaker.ask("sql", paths=["before"], query="SELEC 1"),
            "after all": await speaker.ask("holders", path="before"),
        }

    said = talk(use, folder)
    said.pop("after all").ok()
    lines = {name: answer.refused() for name, answer in said.items()}
    assert "there is no tool 'sumary'" in lines["sumary"]
    assert lines["missing"] == "'path' is a required property"
    assert lines["type"] == "path: 7 is not of type 'string'"
    assert "'output' was unexpected" in lines["unknown"]
    assert "'noon' is not a moment" in lines["moment"]


def test_a_cancelled_call_ends_its_process_and_not_the_server(folder):
    marker = "SELECT 424242"
    endless = f"WITH RECURSIVE a AS ({marker} AS x UNION ALL SELECT x + 1 FROM a) SELECT COUNT(*) FROM a"

    def working():
        found = subprocess.run(["pgrep", "-f", f"_children.sql.__main__ .* {folder}"], capture_output=True, text=True, check=False)
        return found.stdout.split()

    async def use(speaker):
        with anyio.move_on_after(4) as scope:
            await speaker.ask("sql", paths=["before"], query=endless)
        assert scope.cancelled_caught
        deadline = time.monotonic() + 20
        while working() and time.monotonic() < deadline:
            await anyio.sleep(0.1)
        return working(), (await speaker.ask("holders", path="before")).ok()

    left, _ = talk(use, folder)
    assert left == []


def test_a_call_that_takes_too_long_is_stopped(folder):
    async def use(speaker):
        endless = "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a) SELECT COUNT(*) FROM a"
        late = await speaker.ask("sql", paths=["before"], query=endless)
        return late.refused(), (await speaker.ask("open")).ok()

    line, _ = talk(use, folder, options=["--timeout", "5"])
    assert "stopped after 5 s" in line


def test_nothing_but_the_protocol_is_on_standard_output(folder):
    """Answers to requests of every sort, broken ones too: each line is a message of JSON-RPC."""
    messages = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    calls = [("summary", {"path": "before"}), ("summary", {"path": "nothing"}), ("sql", {"paths": ["before"], "query": "x"}),
             ("nothing", {}), ("explain_oom", {"text": "nothing"})]
    messages += [{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
                 for number, (name, arguments) in enumerate(calls, 2)]
    server = subprocess.Popen([harness.COMMAND, "mcp", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=dict(os.environ, GPUMEMPROF_PYTHON=harness.PYTHON))
    server.stdin.write("\n".join(map(json.dumps, messages)) + "\nnot JSON\n{\n[]\n")
    server.stdin.flush()
    wanted, lines = {1, *range(2, 2 + len(calls))}, []
    while wanted:
        line = server.stdout.readline()
        assert line, "the server ended"
        lines.append(line)
        wanted.discard(json.loads(line).get("id"))
    server.stdin.close()
    lines += server.stdout.read().splitlines()
    assert server.wait(20) == 0
    for line in lines:
        assert json.loads(line)["jsonrpc"] == "2.0", line


@pytest.mark.parametrize("how", ["close", signal.SIGTERM, signal.SIGINT, "broken pipe"])
def test_the_server_ends_with_its_client_and_leaves_nothing_running(folder, how, tmp_path):
    endless = "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a) SELECT COUNT(*) FROM a"
    messages = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                 "params": {"name": "sql", "arguments": {"paths": ["before"], "query": endless}}}]
    env = dict(os.environ, GPUMEMPROF_PYTHON=harness.PYTHON, TMPDIR=str(tmp_path))
    server = subprocess.Popen([harness.COMMAND, "mcp", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=env)
    server.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
    server.stdin.flush()
    assert harness.until(lambda: any(tmp_path.glob("gpumemprof-sql-*/*")), 60), "the query did not start"
    if isinstance(how, int):
        server.send_signal(how)
    else:
        (server.stdout if how == "broken pipe" else server.stdin).close()
        if how == "broken pipe":
            server.stdin.close()
    assert server.wait(30) == {"close": 0, "broken pipe": 1}.get(how, 128 + how if isinstance(how, int) else None)
    assert harness.until(lambda: not any(tmp_path.iterdir()), 30), "a private folder is left"
    assert server.stderr.read() == ""
    server.stdout.close()


def test_without_the_package_one_line_says_what_to_install(folder, tmp_path):
    (tmp_path / "mcp.py").write_text("raise ImportError('hidden')\n")
    ended = run(["mcp", folder], env=dict(os.environ, PYTHONPATH=str(tmp_path)))
    assert ended.rc == 2
    assert re.fullmatch(
        r'gpumemprof: the mcp package, 2\.3 or newer, is required: install it for /\S+ with `pip install "mcp>=2\.3"`\n',
        ended.stderr.decode())


@pytest.mark.parametrize("words, line", [
    (["no-such-folder"], "gpumemprof: no-such-folder: is not a folder\n"),
    ([__file__], f"gpumemprof: {__file__}: is not a folder\n"),
    (["--memory", "1GiB"], "gpumemprof: --memory: must be 2GiB or more\n"),
])
def test_a_wrong_start_is_one_line(words, line):
    ended = run(["mcp", *words])
    assert (ended.rc, ended.stderr.decode(), ended.stdout) == (2, line, b"")
