"""Files that claim to be snapshots: one line with the place, exit 2, and nothing of them is run."""
import pickle
import resource

import pytest

import harness

CORPUS = harness.ROOT / "fuzz" / "corpus" / "fuzz_torch_snapshot"
SMALL = (CORPUS / "torch_2_10.pickle").read_bytes()
FIVE_GB = (5 * 10**9).to_bytes(8, "little")
ADDRESS_SPACE = 1 << 30


class RunsCode:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def read(command, path):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    options = ["--to", "jsonl"] if command == "export" else []
    return harness.execute([harness.COMMAND, command, path, *options], preexec_fn=limit, timeout=60)


def refused(path, command="analyze"):
    done = read(command, path)
    assert done.rc == 2 and done.stdout == b"", done
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"gpumemprof: {path}: "), done
    return lines[0]


@pytest.mark.parametrize("command", ["analyze", "export"])
def test_a_pickle_that_would_run_code_does_not(tmp_path, command):
    victim, path = tmp_path / "victim", tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [], "x": RunsCode(str(victim))}, 4))
    line = refused(path, command)
    assert "STACK_GLOBAL could run code" in line and line.endswith(f"(at byte {path.read_bytes().index(0x93)})")
    assert not victim.exists()


@pytest.mark.parametrize("name, data, said", [
    ("empty", b"\x80\x04", "is cut off or damaged, copy it again: the file ends inside the pickle (at byte 2)"),
    ("cut", SMALL[:700], "bytes goes beyond the end of the file (at byte 2)"),
    ("global", b"\x80\x02cos\nsystem\n.", "GLOBAL could run code"),
    ("itself", b"\x80\x04]\x94h\x00a.", "a shared container is changed, or contains itself (at byte 6)"),
    ("long text", b"\x80\x04\x8d" + FIVE_GB + b"x.", "5000000000 bytes goes beyond the end of the file (at byte 2)"),
    ("long list", b"\x80\x04](" + b"N" * 3_000_000, "too many values"),
    ("deep", b"\x80\x04" + b"](" * 1_000_000, "nested more than 1000 levels deep"),
    ("huge size", b"\x80\x04" + SMALL[11:].replace(b"M\xb8\x0b", b"\x8a\x09" + b"\x7f" * 9, 1),
     "'size' is a number that is out of range"),
    ("other", pickle.dumps({"weights": [1.0, 2.0]}, 4), "neither segments nor device_traces"),
    ("memo bomb", b"\x80\x04]" + b")\x94a" * 30_000_000 + b".", "not a PyTorch memory snapshot"),
], ids=lambda value: value if isinstance(value, str) and len(value) < 12 else "")
def test_what_is_wrong_is_said_in_one_line(tmp_path, name, data, said):
    path = tmp_path / name.replace(" ", "_")
    path.write_bytes(data)
    line = refused(path)
    assert said in line, line


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda p: p.name)
def test_small_snapshots_of_every_layout_are_analyzed(path):
    if path.name == "runs_code.pickle":
        refused(path)
        return
    lacks_some = harness.analysis(path)["lost"]["events"] > 0
    assert lacks_some == (path.name == "odd.pickle")
    assert read("export", path).rc == int(lacks_some)
