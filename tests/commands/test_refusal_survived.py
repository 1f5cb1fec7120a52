"""A request for memory that is refused, and whose error the program catches: it is told, and not as the program's end."""
import re

import harness
import pytest
from carried_page import CarriedPage

MOST = 1 << 50  # of no machine

CATCHES = """
import torch
kept = torch.zeros(1 << 20, dtype=torch.uint8)
def ask(size):
    try:
        torch.empty(size, dtype=torch.uint8)
    except RuntimeError:
        pass
for size in SIZES:
    ask(size)
if GOES_ON:
    kept = torch.zeros(2 << 20, dtype=torch.uint8)
"""


def command(*words):
    return harness.execute([harness.COMMAND, *words]).ok().stdout.decode()


def record(folder, sizes, goes_on):
    program = folder / "catches.py"
    program.write_text(CATCHES.replace("SIZES", str(sizes)).replace("GOES_ON", str(goes_on)))
    return harness.record(folder / "r", [harness.PYTHON, program])


@pytest.mark.parametrize("goes_on", [True, False])
def test_one_that_is_caught_is_told_everywhere_and_is_no_end(tmp_path, goes_on):
    done = record(tmp_path, [MOST], goes_on).ok()
    analysis = harness.analysis(done.folder)
    end = analysis["end"]
    assert end["failure"] is None and end["refused"] == []
    (caught,) = end["caught"]
    assert (caught["device"], caught["requested_bytes"], caught["went_on"]) == ("cpu", MOST, True)
    assert caught["pid"] == analysis["processes"][0]["pid"]
    assert [line.rsplit("/", 1)[-1] for line in caught["stack"]] == ["catches.py:6 ask", "catches.py:10 <module>"]
    assert analysis["devices"][0]["events"]["oom"] == 1
    # So few allocations may be too little for a score; a refusal that a program outlives takes it from none.
    assert analysis["score"]["value"] is not None or analysis["score"]["reason"].startswith("too short")
    sentence = re.compile(r"The CPU allocator refused 1\.00 PiB at \S*catches\.py:6 ask; the program went on\.")
    assert re.search(f"^gpumemprof: {sentence.pattern}$", done.stderr.decode(), re.MULTILINE), done.stderr
    text = command("analyze", done.folder)
    assert text.startswith("Peak ") and re.search(f"^Note: {sentence.pattern}$", text, re.MULTILINE)
    assert sentence.search(command("advise", done.folder))
    assert sentence.search(CarriedPage(command("analyze", done.folder, "--format", "html")).text)
    assert [note for note in analysis["notes"] if sentence.fullmatch(note)] == analysis["notes"]


def test_of_several_the_largest_is_named(tmp_path):
    done = record(tmp_path, [MOST, 2 * MOST, MOST], True).ok()
    sentence = r"Note: The CPU allocator refused 3 requests, the largest of 2\.00 PiB at \S*catches\.py:6 ask; the program went on\."
    assert re.search(sentence, command("analyze", done.folder))
    sizes = [one["requested_bytes"] for one in harness.analysis(done.folder)["end"]["caught"]]
    assert sizes == [MOST, 2 * MOST, MOST]


IN_A_MODULE = """
import torch
class Grows(torch.nn.Module):
    def forward(self, x):
        return torch.empty(MOST, dtype=torch.uint8)
model = torch.nn.Sequential(Grows())
try:
    model(torch.ones(4))
except RuntimeError:
    pass
"""


def test_one_within_a_model_has_the_line_of_the_program(tmp_path):
    program = tmp_path / "catches.py"
    program.write_text(IN_A_MODULE.replace("MOST", str(MOST)))
    done = harness.record(tmp_path / "r", [harness.PYTHON, program]).ok()
    assert re.search(r"refused 1\.00 PiB at \S*catches\.py:5 Grows\.forward; the program went on\.", done.stderr.decode()), done.stderr


def test_one_that_nobody_caught_is_the_end_and_no_other(tmp_path):
    program = tmp_path / "catches.py"
    text = CATCHES.replace("SIZES", str([MOST])).replace("GOES_ON", "True")
    program.write_text(f"{text}torch.empty({4 * MOST}, dtype=torch.uint8)\n")
    again = harness.record(tmp_path / "again", [harness.PYTHON, program])
    assert again.rc == 1
    end = harness.analysis(again.folder)["end"]
    assert [one["requested_bytes"] for one in end["refused"]] == [4 * MOST]
    assert [(one["requested_bytes"], one["went_on"]) for one in end["caught"]] == [(MOST, True)]
    assert command("analyze", again.folder).startswith("Out of memory: 4.00 PiB were refused at ")


def test_without_cpu_tensors_none_is_told(tmp_path):
    program = tmp_path / "catches.py"
    program.write_text(CATCHES.replace("SIZES", str([MOST])).replace("GOES_ON", "True"))
    done = harness.record(tmp_path / "r", [harness.PYTHON, program], ["--no-cpu"]).ok()
    assert "refused" not in done.stderr.decode()
    assert not list(done.folder.glob("*.gmp"))


RETRIES = """
import resource, sys, torch
def step(size):
    batch = torch.empty(size, dtype=torch.uint8)
    result = torch.empty(size, dtype=torch.uint8)
def fit(size):
    if size < 64 << 20:
        torch.ones(10)
        sys.exit("no batch fits")
    try:
        return step(size)
    except RuntimeError:
        if WITHIN:
            return fit(size // 2)
    return fit(size // 2)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 29),) * 2)
fit(1 << 30)
"""


def retry(folder, within):
    (folder / "retry.py").write_text(RETRIES.replace("WITHIN", str(within)))
    return harness.execute([harness.COMMAND, "run", "-o", folder / "r", harness.PYTHON, "retry.py"], cwd=folder)


def test_a_retry_within_the_except_block_is_told_as_what_it_is(tmp_path):
    """1.5 GiB are left; the first attempt needs 2 GiB, of which it gets one, and the exception keeps that."""
    done = retry(tmp_path, within=True)
    assert done.rc == 1 and b"no batch fits" in done.stderr
    said = [line.removeprefix("gpumemprof: ") for line in done.stderr.decode().splitlines() if line.startswith("gpumemprof: ")]
    analysis = harness.analysis(tmp_path / "r")
    (refused,) = analysis["end"]["refused"]
    count = 1 + len(analysis["end"]["caught"])
    mib = refused["requested_bytes"] >> 20
    assert said[0].startswith(f"Out of memory: {mib}.0 MiB were refused at retry.py:"), said[0]
    assert f" step, the last of {count} requests, with " in said[0]
    assert said[1] == "The program ended with exit code 1." and analysis["end"]["failure"] == "the program ran out of memory"
    (finding,) = (one for one in analysis["findings"] if one["kind"] == "out_of_memory")
    assert (finding["name"], finding["evidence"]["held_by_attempt_bytes"]) == ("attempt_held_by_exception", 1 << 30)
    text = " ".join(harness.execute([harness.COMMAND, "analyze", "r"], cwd=tmp_path).ok().stdout.decode().split())
    assert (
        "Next: leave the except block before you try again at retry.py:14, and keep no exception: it holds the frames of "
        "the attempt at retry.py:5, and their 1.00 GiB."
    ) in text
    note = f"Note: The CPU allocator refused {count - 1} requests, the largest of 1.00 GiB at retry.py:5 step before that."
    assert count > 2 and note in text and "went on" not in text
    assert harness.execute([harness.COMMAND, "analyze", tmp_path / "r", "--fail-on", "oom"]).rc == 3


def test_a_retry_after_the_except_block_is_no_trouble(tmp_path):
    done = retry(tmp_path, within=False).ok()
    analysis = harness.analysis(tmp_path / "r")
    assert [one["requested_bytes"] for one in analysis["end"]["caught"]] == [1 << 30]
    assert analysis["end"]["refused"] == [] and [one for one in analysis["findings"] if one["kind"] == "out_of_memory"] == []
    assert b"The CPU allocator refused 1.00 GiB at retry.py:5 step; the program went on.\n" in done.stderr


def test_what_ulimit_allows_is_told_of_a_caught_refusal_too(tmp_path):
    (tmp_path / "gives_up.py").write_text("import sys, torch\ntry:\n    torch.empty(8 << 30, dtype=torch.uint8)\nexcept RuntimeError:\n    sys.exit(1)\n")
    run = ["bash", "-c", 'ulimit -v 6291456; exec "$@"', "bash", harness.COMMAND, "run", "-o", "r", harness.PYTHON, "gives_up.py"]
    done = harness.execute(run, cwd=tmp_path)
    first = "Out of memory: 8.00 GiB were refused at gives_up.py:3 <module>, with 0 B live on cpu. The process may map 6.00 GiB (ulimit -v)."
    assert done.stderr.decode().splitlines()[:2] == [f"gpumemprof: {first}", "gpumemprof: The program ended with exit code 1."]
    (refused,) = harness.analysis(tmp_path / "r")["end"]["refused"]
    assert (refused["address_space_limit_bytes"], refused["address_space_bytes"]) == (6 << 30, None)
