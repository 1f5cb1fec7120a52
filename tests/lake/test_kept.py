"""What `sql` exported of a recording is kept for the next question, as long as the recording is the same."""

import os
import shutil

import harness
import lakes
import pytest
from commands.programs_for_commands import LIVE_BYTES, standing_program

QUERY = "SELECT SUM(size_bytes) AS bytes FROM intervals WHERE death_event IS NULL"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gpumemprof"


def kept(place):
    """{file: inode} of all that is kept."""
    return {file: file.stat().st_ino for file in place.rglob("*.parquet")} if place.exists() else {}


def copy_of(recording, folder):
    return shutil.copytree(recording, folder / "copy")


def test_the_second_question_reads_what_the_first_one_kept(training, place, tmp_path):
    recording = copy_of(training, tmp_path)
    first = lakes.ask(QUERY, recording)
    before = kept(place)
    assert {file.name for file in before} >= {"runs.parquet", "ranks.parquet", "intervals.0.parquet", "stacks.parquet"}
    assert lakes.ask(QUERY, recording) == first == lakes.ask(QUERY, lakes.export(recording, tmp_path / "lake"))
    assert kept(place) == before
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in place.iterdir())


def test_another_content_replaces_what_was_kept(place, tmp_path):
    file = tmp_path / "one.gmp"
    for fixture in lakes.RECORDINGS[:2]:
        shutil.copyfile(fixture, file)
        assert lakes.ask(QUERY, file, options=["--no-seal"]) == lakes.ask(QUERY, fixture, options=["--no-seal"])
        (folder,) = [folder for folder in place.glob("*.lakes") if any(folder.rglob("one.gmp"))]
        assert len(list(folder.iterdir())) == 1, "of the content before nothing is left"


def test_a_recording_that_grows_is_not_kept(place, tmp_path):
    pytest.importorskip("torch")
    with standing_program(tmp_path / "r"):
        assert lakes.ask(QUERY, tmp_path / "r") == [{"bytes": LIVE_BYTES}]
        assert kept(place) == {}


def test_without_a_place_it_is_answered_all_the_same(training, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert lakes.ask(QUERY, training)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "")
    assert lakes.ask(QUERY, training)


def test_a_kept_file_that_is_damaged_is_made_anew_or_named(training, place, tmp_path):
    recording = copy_of(training, tmp_path)
    lakes.ask(QUERY, recording)
    (ranks,) = [file for file in kept(place) if file.name == "ranks.parquet"]
    ranks.write_bytes(b"PAR1 not at all")
    done = lakes.run(["sql", recording, "SELECT * FROM ranks", "--format", "json"])
    assert done.rc == 1 and b"ranks.parquet: left out" in done.stderr


def test_what_is_lost_is_said_each_time(place, tmp_path):
    """A recording whose last bytes are gone lacks events: also where its answer comes from what was kept."""
    (fixture,) = [path for path in lakes.RECORDINGS if path.name == "1.1-small-sealed.gmp"]
    whole = fixture.read_bytes()
    file = tmp_path / "torn.gmp"
    file.write_bytes(whole[: len(whole) * 3 // 4])
    said = [lakes.run(["sql", file, QUERY, "--no-seal"]) for _ in range(2)]
    assert said[0].rc == said[1].rc and said[0].stderr == said[1].stderr and said[0].stdout == said[1].stdout
    if said[0].rc == 0:
        assert harness.analysis(file)["lost"]["events"] == 0


def test_what_a_killed_process_left_goes(training, place, tmp_path):
    recording = copy_of(training, tmp_path)
    lakes.ask(QUERY, recording)
    (folder,) = place.glob("*.lakes")
    (folder / ".4194303").mkdir()
    file = next(recording.glob("*.gmp"))
    os.utime(file, (1, 1))
    lakes.ask(QUERY, recording)
    assert not (folder / ".4194303").exists() and len(list(folder.iterdir())) == 1
