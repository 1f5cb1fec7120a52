"""Where nothing was recorded no folder is left that nobody named."""
import os
import subprocess

import harness

WHY = "no process loaded PyTorch, TensorFlow or JAX; run --host records blocks of malloc and maps of 64 KiB and more"


def run_in(folder, *argv, options=()):
    words = [harness.COMMAND, "run", *options, "--", *argv]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60)


def test_a_folder_with_our_name_goes_where_nothing_was_recorded(tmp_path):
    done = run_in(tmp_path, "sh", "-c", "exit 3")
    assert done.returncode == 3 and os.listdir(tmp_path) == []
    assert done.stderr.splitlines() == [
        f"gpumemprof: nothing recorded: {WHY}",
        "gpumemprof: The program ended with exit code 3.",
    ]


def test_one_with_the_users_name_tells_how_it_ended(tmp_path):
    assert run_in(tmp_path, "sh", "-c", "exit 3", options=["-o", "mine"]).returncode == 3
    assert "meta.json" in os.listdir(tmp_path / "mine")


def test_it_stays_while_a_child_may_record_into_it(tmp_path):
    held = tmp_path / "held"
    os.mkfifo(held)
    done = run_in(tmp_path, "sh", "-c", f"cat {held} >/dev/null 2>&1 & exit 0")
    folders = [name for name in os.listdir(tmp_path) if name.startswith("gpumemprof-sh-")]
    held.write_text("go on\n")
    assert done.returncode == 0 and len(folders) == 1
    assert done.stderr == f"gpumemprof: nothing recorded in {folders[0]}: {WHY}\n"


def test_another_file_in_it_is_left_alone(tmp_path):
    done = run_in(tmp_path, "sh", "-c", "for folder in gpumemprof-*; do touch $folder/mine; done")
    (folder,) = os.listdir(tmp_path)
    assert done.returncode == 0 and "mine" in os.listdir(tmp_path / folder)
