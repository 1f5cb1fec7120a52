"""A program that dies of memory, or of something else: that is the first thing that every command says."""
import json
import subprocess

import harness
import nested
import pytest
from carried_page import CarriedPage, words_of

DOUBLES = """
import resource, torch
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20),) * 2)
hoarded = []
def grow():
    hoarded.append(torch.empty(1 << 20 + len(hoarded), dtype=torch.uint8))
while True:
    grow()
"""


def command(*words):
    return harness.execute([harness.COMMAND, *words])


def first_line(*words):
    return command(*words).ok().stdout.decode().splitlines()[0]


@pytest.fixture(scope="module")
def died(tmp_path_factory):
    folder = tmp_path_factory.mktemp("died")
    program = folder / "doubles.py"
    program.write_text(DOUBLES)
    return harness.record(folder / "r", [harness.PYTHON, program])


def test_out_of_memory_is_the_first_line_of_everything(died):
    assert died.rc == 1
    analysis = harness.analysis(died.folder)
    refused = analysis["end"]["refused"][0]
    # Blocks of 1, 2, 4 … MiB: what is live is one MiB less than what was asked for next.
    asked = refused["requested_bytes"]
    assert asked & (asked - 1) == 0 and refused["live_bytes"] == asked - (1 << 20)
    assert analysis["devices"][0]["peak"]["allocated_bytes"] == refused["live_bytes"]
    assert refused["stack"][0].endswith("doubles.py:7 grow") and refused["stack"][1].endswith("doubles.py:9 <module>")
    assert [holder["bytes"] for holder in refused["holders"]] == [refused["live_bytes"]]
    assert analysis["end"]["failure"] == "the program ran out of memory" and analysis["score"]["value"] is None
    mib = asked >> 20
    sentence = f"Out of memory: {mib} MiB were refused at "
    lines = [died.stderr.decode().split("gpumemprof: ", 1)[1], first_line("analyze", died.folder), first_line("advise", died.folder)]
    for line in lines:
        assert line.startswith(sentence) and f"doubles.py:7 grow, with {mib - 1} MiB live on cpu." in line, line
    # The limit leaves 600 MiB, of which all but the last block are taken.
    room = refused["address_space_limit_bytes"] - refused["address_space_bytes"]
    assert 0 <= room <= (600 - (mib - 1)) << 20
    assert all(" were left just after: the process had mapped " in line for line in lines)
    assert command("analyze", died.folder, "--fail-on", "oom").rc == 3
    page = CarriedPage(command("analyze", died.folder, "--format", "html").ok().stdout)
    assert words_of(page.files[0]["document"]["sections"][0])[0].startswith(sentence)
    assert "Score: none, because the program ran out of memory." in command("analyze", died.folder).stdout.decode()


FILLS = """
import resource, torch
kept = torch.ones(5 << 20, dtype=torch.uint8)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20),) * 2)  # less than the package's core takes
torch.empty(128 << 20, dtype=torch.uint8)
"""


def test_out_of_memory_is_told_where_no_room_is_left_at_all(tmp_path):
    done = harness.record(tmp_path / "r", [harness.PYTHON, "-c", FILLS])
    assert done.rc == 1
    (refused,) = harness.analysis(done.folder)["end"]["refused"]
    assert (refused["requested_bytes"], refused["live_bytes"]) == (128 << 20, 5 << 20)
    assert first_line("analyze", done.folder).startswith("Out of memory: 128 MiB were refused at <string>:6 <module>, with 5.00 MiB live on cpu.")


def test_an_anonymous_report_tells_the_end_without_names(died):
    out = command("analyze", died.folder, "--anonymize", "--format", "json").ok().stdout.decode()
    refused = json.loads(out)["end"]["refused"][0]
    assert refused["live_bytes"] > 0 and refused["stack"] == [] and refused["message"] == ""
    assert "doubles" not in out and "hoarded" not in out


def test_the_dump_that_run_names_is_read(died):
    dump = next((died.folder / "oom_dumps").glob("oom_dump_*"))
    assert str(dump) in died.stderr.decode()
    told = command("analyze", dump).ok().stdout.decode().splitlines()
    # A dump alone has no event of the refusal.
    assert told[0] == first_line("analyze", died.folder).replace(" live on cpu.", " live on cpu just after it.")
    *share, place, function = told[1].split()[2:]  # a long path loses its front
    assert share == ["100.0", "%"] and place.endswith(f"/{died.folder.parent.name}/doubles.py:7") and function == "grow"
    assert told[-1].startswith("The error: ") and "DefaultCPUAllocator" in told[-1]
    refused = json.loads(command("analyze", dump, "--format", "json").ok().stdout)["end"]["refused"]
    assert refused[0]["live_bytes"] == harness.analysis(died.folder)["end"]["refused"][0]["live_bytes"]
    page = CarriedPage(command("analyze", dump, "--format", "html").ok().stdout)
    (file,) = page.files
    assert file["kind"] == "dump" and file["devices"] == []
    assert page.text.split("\n")[1] == told[0] and f"/{died.folder.parent.name}/doubles.py:7 grow" in page.text
    assert command("analyze", dump, "--anonymize").rc == 2


@pytest.mark.parametrize("ends, said", [
    ("os.kill(os.getpid(), 9)", "SIGKILL ended the program."), ("os._exit(3)", "The program ended with exit code 3."),
    ("os._exit(0)", None)], ids=["killed", "code", "well"])  # fmt: skip
def test_the_end_of_a_program_is_said(tmp_path, light, ends, said):
    code = f"import os\nfrom light import Block\nblock = Block(5000)\n{ends}"
    env = light.env | {"PYTHONPATH": str(harness.PROGRAMS)}
    done = harness.record(tmp_path / "r", [harness.PYTHON, "-c", code], env=env)
    first = [done.stderr.decode().split("gpumemprof: ", 1)[1].splitlines()[0], first_line("analyze", done.folder)]
    assert all(line.startswith(said or "Peak 4.88 KiB") for line in first), first
    end = harness.analysis(done.folder)["end"]
    assert (end["failure"] is None) == (said is None)
    assert [(run["exit_code"], run["signal"]) for run in end["runs"]] == [(3 if "3" in ends else 0 if "(0)" in ends else None, "SIGKILL" if "9" in ends else None)]


RAISES = """
import multiprocessing, sys, threading, torch

class Odd(ValueError):
    def __str__(self):
        print("code of the program ran")
        return "never"

def worker():
    kept = torch.ones(1000)
    raise Odd("bad batch\\nsecond line")

def in_a_thread():
    raise KeyError("of a thread")

kept = torch.ones(1000)
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
if sys.argv[1] == "process":
    process = multiprocessing.get_context("fork").Process(target=worker)
    process.start()
    process.join()
    raise RuntimeError("a worker failed")
if sys.argv[1] == "main":
    worker()
"""


@pytest.mark.parametrize("where, line", [("main", "worker"), ("process", "worker"), ("none", None)])
def test_an_exception_that_ended_the_program_is_said_with_its_line(tmp_path, where, line):
    program = tmp_path / "raises.py"
    program.write_text(RAISES)
    done = harness.record(tmp_path / "r", [harness.PYTHON, program, where])
    plain = nested.execute([harness.PYTHON, program, where])
    assert (done.rc, done.stdout) == (plain.rc, plain.stdout)
    end = harness.analysis(done.folder)["end"]
    if line is None:  # an exception that a thread did not catch ended no program
        assert done.rc == 0 and end["failure"] is None and end["uncaught"] == []
        return
    first = [done.stderr.decode().split("gpumemprof: ", 1)[1].splitlines()[0], first_line("analyze", done.folder), first_line("advise", done.folder)]
    assert all(one.startswith("Odd ended the program at ") and one.endswith("raises.py:11 worker: bad batch.") for one in first), first
    assert end["failure"] == "Odd ended the program"
    kinds = [(one["kind"], one["message"], one["stack"][0].split("/")[-1]) for one in end["uncaught"]]
    assert kinds[0] == ("Odd", "bad batch", "raises.py:11 worker")
    assert kinds[1:] == ([("RuntimeError", "a worker failed", "raises.py:24 <module>")] if where == "process" else [])
    hidden = command("analyze", done.folder, "--anonymize", "--format", "json").ok().stdout.decode()
    assert json.loads(hidden)["end"]["failure"] == "an exception ended the program" and "bad batch" not in hidden and "Odd" not in hidden


LOADS = """
import torch
class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        if i == 37:
            raise ValueError(f"corrupt sample {i}")
        return torch.zeros(100)
for batch in torch.utils.data.DataLoader(Samples(), batch_size=8, num_workers=1):
    batch.sum()
"""


def test_an_exception_of_a_loaders_worker_is_told_with_its_own_words_and_line(tmp_path):
    program = tmp_path / "loads.py"
    program.write_text(LOADS)
    done = harness.record(tmp_path / "r", [harness.PYTHON, program])
    (error,) = harness.analysis(done.folder)["end"]["uncaught"]
    assert done.rc == 1 and error["kind"] == "ValueError"
    assert error["message"] == ("Caught ValueError in DataLoader worker process 0. ValueError: corrupt sample 37 "
                                f'(File "{program}", line 8, in __getitem__)')
    assert "corrupt sample 37" in first_line("analyze", done.folder)


def test_what_to_do_about_one_request_that_is_too_large(tmp_path):
    program = tmp_path / "asks.py"
    program.write_text("import torch\nkept = torch.ones(1 << 20)\ntorch.empty(1 << 55, dtype=torch.uint8)\n")
    folder = harness.record(tmp_path / "r", [harness.PYTHON, program]).folder
    text = " ".join(command("analyze", folder).ok().stdout.decode().split())
    assert "Next: check the shapes and sizes of the request that was refused; 32.0 PiB is more than an ordinary machine has." in text


GROWS = """
import resource, torch
torch.set_num_threads(1)
net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
net(torch.ones(8, 256)).sum().backward()
with open("/proc/self/statm") as file:
    mapped = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + (256 << 20), resource.RLIM_INFINITY))
for n in range(1, 200):
    net(torch.ones(2048 * n, 256)).sum().backward()
"""


def test_where_a_batch_holds_the_peak_of_a_program_that_ran_out_a_smaller_one_is_next(tmp_path):
    program = tmp_path / "grows.py"
    program.write_text(GROWS)
    folder = harness.record(tmp_path / "r", [harness.PYTHON, program]).folder
    text = " ".join(command("analyze", folder).ok().stdout.decode().split())
    assert text.startswith("Out of memory: "), text[:200]
    assert "Next: a smaller batch or checkpointing; " in text and " are activations, inputs and temporaries." in text


def test_a_note_of_an_exception_may_hold_anything(tmp_path, light):
    code = "from light import Block\nblock = Block(5000)\nimport os\nos._exit(3)"
    done = harness.record(tmp_path / "r", [harness.PYTHON, "-c", code], env=light.env | {"PYTHONPATH": str(harness.PROGRAMS)})
    note = done.folder / "uncaught.1.2.json"
    for text in ("", "[]", "{", '{"kind": 3}', '{"kind": ""}', "\0" * 100, '{"kind": ["a"]}'):
        note.write_text(text)
        assert first_line("analyze", done.folder) == "The program ended with exit code 3.", text
    note.write_text(json.dumps({"kind": "E\33[31m", "message": "m\nn\33]0;t\7", "stack": [1, None, "no colon", "a:b:c\n d"], "time_ns": -1, "pid": "x"}))
    out = command("analyze", done.folder).ok().stdout
    assert b"\33" not in out and out.startswith(b"E") and out.splitlines()[0].endswith(b"."), out[:200]


def test_the_log_of_a_run_is_explained_with_its_recording(died, tmp_path):
    log = tmp_path / "job.log"
    log.write_bytes(died.stderr)
    said = json.loads(command("explain-oom", log, "--format", "json").ok().stdout)["messages"][0]
    assert said["advice"][0]["command"] == f"gpumemprof analyze {died.folder}"
    assert "gpumemprof run" not in command("explain-oom", log).ok().stdout.decode()


def test_a_message_of_the_kernel_is_explained():
    text = b"Out of memory: Killed process 12 (python) total-vm:9kB, anon-rss:2097152kB, file-rss:0kB\n"
    done = subprocess.run([harness.COMMAND, "explain-oom", "-"], input=text, capture_output=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith(b"The host ran out of memory, and the kernel killed a process.")
    assert b"It killed process 12 (python), which held 2.00 GiB" in done.stdout


OF_A_WORKER = """
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return torch.empty(1 << 50) if i == 6 else torch.ones(250)

def batches():
    try:
        yield from DataLoader(Images(), 2, num_workers=1)
    except RuntimeError as error:
        raise ValueError("no more batches") from error

for batch in batches():
    pass
"""


def test_what_a_worker_was_refused_is_told_once_with_its_line_and_process(tmp_path):
    """The main process raises it again, and the program raises another exception from that."""
    program = tmp_path / "images.py"
    program.write_text(OF_A_WORKER)
    done = harness.record(tmp_path / "r", [harness.PYTHON, program])
    end = harness.analysis(done.folder)["end"]
    (refused,) = end["refused"]
    (worker,) = {int(file.name.split(".")[-3]) for file in harness.files(done.folder)} - {refused["pid"]}
    assert refused["requested_bytes"] == 4 << 50 and end["caught"] == [] and refused["asked_by_pid"] == worker
    assert refused["stack"][0].endswith("images.py:9 Images.__getitem__") and "no more" not in refused["message"]
    lines = [done.stderr.decode().split("gpumemprof: ", 1)[1], first_line("analyze", done.folder), first_line("advise", done.folder)]
    for line in lines:
        place = line.split(", with ")[0]
        assert place.startswith("Out of memory: 4.00 PiB were refused at ") and place.endswith(f"images.py:9 Images.__getitem__ in process {worker}"), line
    assert "went on" not in done.stderr.decode() + command("analyze", done.folder).ok().stdout.decode()
    (dump,) = (done.folder / "oom_dumps").glob("oom_dump_*")  # of the process that waited
    assert f"gpumemprof: What process {refused['pid']} held, which waited for it, is in {dump}\n" in done.stderr.decode()
    said = command("analyze", dump).ok().stdout.decode().splitlines()
    assert said[0].startswith("Out of memory: 4.00 PiB were refused at ")
    assert "images.py:9 __getitem__ in DataLoader worker process 0 on cpu." in said[0]
    assert said[1] == "This process, which waited for it, had 0 B live on cpu."
    assert said[-1].startswith("The error: RuntimeError: [enforce fail at alloc_cpu.cpp:") and "Traceback" not in said[-1]


KEPT_BY_A_FUNCTION = """
import torch
def train(net, optimizer):
    outputs = []
    for step in range(30):
        x = torch.randn(256, 1024)
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        outputs.append(net(x))
    torch.empty(1 << 48, dtype=torch.uint8)  # more than there are addresses
%s
def main():
    net = torch.nn.Linear(1024, 1024)
    train(net, torch.optim.SGD(net.parameters(), lr=1e-3))
main()
"""
RAISED_AGAIN = """
first = train
def train(*arguments):
    try:
        first(*arguments)
    except RuntimeError as error:
        raise ValueError("training failed") from error
"""


@pytest.mark.alone  # the look has 0.3 s of CPU time, which neighbours on the same core lengthen
@pytest.mark.parametrize("again", ["", RAISED_AGAIN], ids=["raised", "raised again"])
def test_what_a_function_kept_that_an_exception_ended_has_its_name_and_no_forecast(tmp_path, again):
    program = tmp_path / "train.py"
    program.write_text(KEPT_BY_A_FUNCTION % again)
    done = harness.record(tmp_path / "r", [harness.PYTHON, program])
    (leak,) = (one for one in harness.analysis(done.folder)["findings"] if one["kind"] == "leak")
    # Of each step the input, which the output's graph keeps, and the output: 256 × 1024 floats.
    assert leak["evidence"]["bytes_a_step"] == 2 * 256 * 1024 * 4
    assert leak["evidence"]["holder"] == "outputs in train (train.py)"
    assert leak["name"] == "outputs_kept_with_graph"
    # The limit is not to be reached: it was. Without the leak the request would not have fitted, either.
    assert (leak["severity"], "steps_until_limit" in leak["evidence"]) == ("warning", False)


GIVES_UP = """
import sys, torch
class TrainingFailed(Exception):
    pass
def step(kept):
    kept.append(torch.ones(1 << 20, dtype=torch.uint8))
    if len(kept) == 8:
        torch.empty(1 << 48, dtype=torch.uint8)  # more than there are addresses
def main():
    kept = []
    try:
        while True:
            step(kept)
    except RuntimeError:
        %s
main()
"""


@pytest.mark.parametrize(
    ("gives_up", "then"),
    [("sys.exit(3)", "The program ended with exit code 3."), ("raise TrainingFailed('at 8') from None", "TrainingFailed ended the program at train.py:15 main: at 8.")],
)
def test_a_refusal_that_is_caught_before_the_program_gives_up_is_its_end(tmp_path, gives_up, then):
    (tmp_path / "train.py").write_text(GIVES_UP % gives_up)
    done = harness.execute([harness.COMMAND, "run", "-o", tmp_path / "r", harness.PYTHON, "train.py"], cwd=tmp_path)
    first = "Out of memory: 256 TiB were refused at train.py:8 step, with 8.00 MiB live on cpu."
    said = [line.removeprefix("gpumemprof: ") for line in done.stderr.decode().splitlines() if line.startswith("gpumemprof: ")]
    assert said[:2] == [first, then], done.stderr
    analyzed = harness.execute([harness.COMMAND, "analyze", "r"], cwd=tmp_path).ok().stdout.decode().splitlines()
    assert analyzed[:2] == [first, then]
    end = harness.analysis(tmp_path / "r")["end"]
    (refused,) = end["refused"]
    assert (refused["requested_bytes"], refused["live_at_refusal_bytes"], refused["was_caught"]) == (1 << 48, 8 << 20, True)
    assert end["failure"] == "the program ran out of memory" and end["caught"] == []
    assert command("analyze", tmp_path / "r", "--fail-on", "oom").rc == 3


LIMITED = """
import resource, torch
kept = []
def step(net):
    kept.append(net(torch.ones(1024, 1024)).sum())
net = torch.nn.Linear(1024, 1024)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20),) * 2)
while True:
    step(net)
"""


@pytest.mark.alone  # the look has 0.3 s of CPU time, which neighbours on the same core lengthen
def test_a_leak_without_which_the_request_would_have_fitted_is_critical(tmp_path):
    done = harness.record(tmp_path / "r", [harness.PYTHON, "-c", LIMITED])
    leak = next(one for one in harness.analysis(done.folder)["findings"] if one["kind"] == "leak")
    # The graph of each sum keeps the input: 4 MiB, beside the number.
    assert (leak["severity"], leak["evidence"]["bytes_a_step"]) == ("critical", (1 << 22) + 4)
    assert "steps_until_limit" not in leak["evidence"]
    # Half the batch would keep half as much with every step, and run out later.
    advised = json.loads(command("advise", done.folder, "--format", "json").ok().stdout)
    assert [one["kind"] for one in advised["advice"]] == ["loss_kept_with_graph"]
    assert "a leak has " in advised["unknown"]["smaller_batch"]


FEW_STEPS = """
import torch
def train(net, optimizer):
    outputs = []
    for step in range(2):
        optimizer.zero_grad()
        net(torch.randn(256, 1024)).square().mean().backward()
        optimizer.step()
        outputs.append(net(torch.randn(256, 1024)))
    torch.empty(1 << 48, dtype=torch.uint8)  # more than there are addresses
net = torch.nn.Linear(1024, 1024)
train(net, torch.optim.SGD(net.parameters(), lr=1e-3))
"""


@pytest.mark.alone  # the look has 0.3 s of CPU time, which neighbours on the same core lengthen
def test_a_program_that_runs_out_after_a_few_steps_is_looked_at(tmp_path):
    done = harness.record(tmp_path / "r", [harness.PYTHON, "-c", FEW_STEPS])
    (path,) = done.folder.glob("holders.*.json")
    look = json.loads(path.read_text())["looks"][-1]
    (outputs,) = (number for number, one in enumerate(look["holders"]) if one["path"].startswith("outputs in train "))
    # Two outputs and the two inputs that their graphs keep; the weights have a name of their own.
    assert sum(holder == outputs for _, holder in look["storages"]) == 4 and look["why_incomplete"] == ""


def test_a_process_that_another_program_replaced_was_not_killed(tmp_path):
    program = tmp_path / "replaces.py"
    program.write_text(
        "import os, sys, torch\n"
        "kept = torch.empty(5 << 20, dtype=torch.uint8)\n"
        "if len(sys.argv) > 1: os.execv(sys.executable, [sys.executable, __file__])\n"
        "sys.exit(7)\n"
    )
    done = harness.record(tmp_path / "r", [harness.PYTHON, program, "exec"])
    assert done.rc == 7 and len(harness.files(done.folder)) == 2
    assert harness.analysis(done.folder)["end"]["unfinished"] == []
    said = done.stderr.decode().splitlines()
    assert said[0] == "gpumemprof: The program ended with exit code 7." and "killed" not in done.stderr.decode()
