"""What cannot be read is wrong input, whatever the reason: exit code 1 says that the tool failed."""
import os
import subprocess
import tempfile
from pathlib import Path

import harness
import pytest

COMMANDS = [["analyze"], ["view", "--no-browser", "--no-index"], ["advise"], ["diff"], ["export", "--to", "csv"], ["whatif"]]


def refused(path, command, **options):
    words = [*command, path, path] if command == ["diff"] else [*command, path]
    done = subprocess.run([harness.COMMAND, *words], capture_output=True, text=True, timeout=60, **options)
    assert done.stderr.count("\n") == 1 and str(path) in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_link_to_itself_and_too_long_a_name_are_wrong_input(tmp_path, command):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert refused(loop, command)[0] == 2
    assert refused(tmp_path / ("n" * 300), command)[0] == 2


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_file_without_permission_is_wrong_input(command):
    options = {"user": 65534, "cwd": "/"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "noperm.pickle"
        path.write_bytes(b"\x80\x04")
        path.chmod(0)
        try:
            code, said = refused(path, command, **options)
        except PermissionError:
            pytest.skip("nobody may not run the command here")
    assert code == 2 and "Permission denied" in said
