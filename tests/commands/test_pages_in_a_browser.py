"""Every page that a command writes, in a real browser, as wide as a desk and as a phone: nothing is cut, lies on something
else, breaks inside a short word or scrolls sideways."""
import shutil

import harness
import pytest

CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason="no Chromium: scripts/setup browser")]

# What is wrong with what is seen, as lines of text.
LOOK = """() => {
  const wrong = [], root = document.documentElement, texts = [];
  if (root.scrollWidth > root.clientWidth) wrong.push(`scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}`);
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, parent = node.parentElement, style = getComputedStyle(parent);
    if (!node.data.trim() || !parent.checkVisibility() || ['STYLE', 'SCRIPT', 'TITLE'].includes(parent.tagName)) continue;
    if (node.data.includes('\\ufffd')) wrong.push(`replacement character: ${node.data.slice(0, 60)}`);
    const in_svg = parent.closest('svg'), is_box = style.textOverflow === 'ellipsis';
    for (const word of node.data.matchAll(/[^\\s]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index), range.setEnd(node, word.index + word[0].length);
      const boxes = [...range.getClientRects()].filter(box => box.width > 0);
      const lines = new Set(boxes.map(box => Math.round(box.top)));
      if (lines.size > 1 && word[0].length < 16 && !/[\\/.,:_-]/.test(word[0])) wrong.push(`breaks inside: ${word[0]}`);
      const scrolls = parent.closest('.scroll');
      for (const box of boxes) {
        if (!scrolls && !is_box && (box.right > root.clientWidth + 1 || box.left < -1)) wrong.push(`cut: ${word[0]}`);
        if (!in_svg && !is_box) texts.push({box, word: word[0], parent});
      }
    }
    // A box of a flame graph ends in an ellipsis and shows everything when it is pointed at.
    if (style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis' && parent.scrollWidth > parent.clientWidth + 1) wrong.push(`cut: ${node.data.slice(0, 60)}`);
  }
  texts.sort((a, b) => a.box.top - b.box.top);
  for (let i = 0; i < texts.length; ++i) {
    for (let j = i + 1; j < texts.length && texts[j].box.top < texts[i].box.bottom - 2; ++j) {
      const a = texts[i].box, b = texts[j].box;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - b.top;
      if (wide > 2 && high > 3 && texts[i].parent !== texts[j].parent) wrong.push(`overlaps: ${texts[i].word}, ${texts[j].word}`);
    }
  }
  return [...new Set(wrong)].slice(0, 20);
}"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """What `make demo` records: a transformer, with two processes that load its data."""
    program = harness.ROOT / "examples/train_transformer.py"
    return harness.record(tmp_path_factory.mktemp("pages") / "r", [harness.PYTHON, program, "--steps", "5", "--batch", "8"], timeout=300).ok().folder


@pytest.fixture(scope="module")
def pages(recording, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    samples = folder / "samples.csv"
    harness.execute([harness.COMMAND, "track", "--interval", "0.1", "--duration", "1", "--output", samples, "--format", "csv"]).ok()
    snapshot = harness.ROOT / "fuzz/corpus/fuzz_torch_snapshot/torch_2_10.pickle"
    wanted = {
        "recording": ["analyze", recording], "snapshot": ["analyze", snapshot],
        "samples": ["analyze", samples], "diff": ["diff", recording, "--steps", "1", "4"],
        "flame": ["export", recording, "--to", "html"],
    }  # fmt: skip
    for name, words in wanted.items():
        form = [] if name == "flame" else ["--format", "html"]
        harness.execute([harness.COMMAND, *words, *form, "-o", folder / f"{name}.html"]).ok()
    assert "What to change" in (folder / "recording.html").read_text()
    return folder


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"])
        yield started
        started.close()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", ["recording", "snapshot", "samples", "diff", "flame"])
def test_a_page_can_be_read(pages, browser, name, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    try:
        page.goto(f"file://{pages}/{name}.html")
        assert page.evaluate(LOOK) == []
    finally:
        page.close()


@pytest.mark.parametrize("width", [1440, 390])
def test_how_the_program_ended_is_the_first_thing_on_its_page(tmp_path, light, browser, width):
    code = "import os\nfrom light import Block\nblock = Block(5000)\nos._exit(3)"
    done = harness.record(tmp_path / "r", [harness.PYTHON, "-c", code], env=light.env | {"PYTHONPATH": str(harness.PROGRAMS)})
    harness.execute([harness.COMMAND, "analyze", done.folder, "--format", "html", "-o", tmp_path / "page.html"]).ok()
    page = browser.new_page(viewport={"width": width, "height": 844})
    try:
        page.goto(f"file://{tmp_path}/page.html")
        first = page.locator(".notice").first
        assert first.inner_text() == "The program ended with exit code 3."
        assert "bad" in first.get_attribute("class") and first.bounding_box()["y"] < 200
    finally:
        page.close()
