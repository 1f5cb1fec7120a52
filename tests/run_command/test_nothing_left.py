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


COMMANDS = [["analyze"], ["view", "--html", "page.html"], ["advise"], ["diff", "mine"], ["export", "--to", "csv"], ["whatif"]]


def test_every_command_says_of_it_what_run_said(tmp_path):
    said = run_in(tmp_path, "sh", "-c", "exit 3", options=["-o", "mine"]).stderr
    assert said == f"gpumemprof: nothing recorded in mine: {WHY}\ngpumemprof: The program ended with exit code 3.\n"
    for words in COMMANDS:
        argv = [harness.COMMAND, *words, "mine"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        told = f"gpumemprof: mine: nothing was recorded here: {WHY}. The program ended with exit code 3.\n"
        assert (done.returncode, done.stderr) == (2, told), words


def test_one_that_run_was_silent_about_says_it_too(tmp_path):
    assert run_in(tmp_path, "true", options=["-q", "-o", "mine"]).stderr == ""
    done = subprocess.run([harness.COMMAND, "analyze", "mine"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, f"gpumemprof: mine: nothing was recorded here: {WHY}\n")


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
