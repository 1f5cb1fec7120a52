"""The pages of messages: `explain-oom` knows each message as it is shown, and says what the page says."""

import harness
import pytest
from pages import DOCS, ROOT, blocks

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (DOCS / "problems").glob("*.md"))
ANSWERED = [page for page in PAGES if any("explain-oom" in block.note for block in blocks(page))]


def test_every_page_of_a_message_has_its_answer():
    assert len(ANSWERED) == 6


@pytest.mark.parametrize("page", ANSWERED)
def test_the_message_is_explained_as_the_page_says(page, tmp_path):
    message, answer = [block for block in blocks(page) if block.language == "text"][:2]
    (tmp_path / "train.log").write_text(message.text)
    done = harness.execute([harness.COMMAND, "explain-oom", tmp_path / "train.log"]).ok()
    assert done.stdout.decode().splitlines()[0] == answer.text.strip()


def test_every_problem_is_in_the_table():
    table = (DOCS / "problems" / "index.md").read_text()
    assert [page for page in PAGES if page != "docs/problems/index.md" and f"({page.rpartition('/')[2]})" not in table] == []


SHOWN = [(page, block) for page in PAGES for block in blocks(page) if "analyze tests/fixtures/" in block.note]


@pytest.mark.parametrize("page, block", SHOWN, ids=[page for page, _ in SHOWN])
def test_a_page_of_a_trouble_shows_what_analyze_says_of_its_fixture(page, block):
    fixture = block.note.removeprefix('title="gpumemprof analyze ').removesuffix('"')
    done = harness.execute([harness.COMMAND, "analyze", ROOT / fixture]).ok()
    assert block.text.rstrip("\n") in done.stdout.decode()
