"""What the documentation shows works: its programs run, its commands exist, its links lead somewhere."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import harness
import nested
import pytest
from examples_test import OPTION, commands_in
from pages import DOCS, PAGES, ROOT, anchors, blocks, links, program, shape

PROGRAMS = [page for page in PAGES if program(page)]
NEEDS = {"docs/guide/integrations.md": "mlflow"}
INTEGRATIONS = ROOT / "build" / "venvs" / "integrations" / "bin" / "python"
COMMANDS = sorted(path.stem for path in (DOCS / "commands").glob("*.md"))


def python_with(module):
    """An interpreter that has it: this one, or that of the environment which scripts/test-integrations makes."""
    if importlib.util.find_spec(module) is not None:
        return sys.executable
    if not INTEGRATIONS.exists() or not harness.has(INTEGRATIONS, module):
        pytest.skip(f"needs {module}: scripts/test-integrations installs it")
    return INTEGRATIONS


def run_text(folder, text, name, python=sys.executable):
    script = folder / f"{name}.py"
    script.write_text(text)
    # No display, no GPU; MLflow's folder of files wants to be asked for.
    env = dict(os.environ, MPLBACKEND="Agg", CUDA_VISIBLE_DEVICES="", MLFLOW_ALLOW_FILE_STORE="true",
               MLFLOW_TRACKING_URI=(folder / "mlruns").as_uri())
    if python != sys.executable:
        return harness.execute([python, script], cwd=folder, env=env, timeout=150).ok()
    imports = ("tensorflow",) if "import tensorflow" in text else nested.TORCH
    return nested.execute([python, script], imports=imports, cwd=folder, env=env, timeout=150).ok()


@pytest.mark.parametrize("page", PROGRAMS)
def test_the_python_of_a_page_runs_from_top_to_bottom(tmp_path, page):
    pytest.importorskip("torch")
    python = python_with(NEEDS[page]) if page in NEEDS else sys.executable
    run_text(tmp_path, program(page), "page", python)


@pytest.mark.parametrize("page, line", [(p, b.line) for p in PAGES for b in blocks(p) if "needs" in b.note])
def test_a_block_that_needs_a_library_runs_where_it_is(tmp_path, page, line):
    (block,) = [b for b in blocks(page) if b.line == line]
    run_text(tmp_path, block.text, "block", python_with(re.search(r"needs (\w+)", block.note)[1]))


def test_the_first_page_says_what_its_program_prints(tmp_path):
    pytest.importorskip("torch")
    done = run_text(tmp_path, program("docs/index.md"), "first")
    assert re.fullmatch(r"peak \d+\.\d\d MiB \((host|framework|exact)\)\n", done.stdout.decode())


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_exist(page):
    for command in commands_in(page):
        match = re.match(r"(?:\S*/)?gpumemprof ([a-z][a-z-]*)(.*)", command)
        if match is None or match[1] == "lines":  # what follows `lines` is the script's
            continue
        shown = harness.execute([harness.COMMAND, match[1], "--help"])
        assert shown.rc == 0, f"{page}: no subcommand in: {command}"
        for option in OPTION.findall(match[2].split(" -- ")[0]):
            assert option in shown.stdout.decode(), f"{page}: {option} in: {command}"


def test_the_readme_shows_what_whatif_prints():
    (block,) = (one for one in blocks("README.md") if one.text.startswith("$ gpumemprof whatif"))
    command, _, shown = block.text.removeprefix("$ gpumemprof ").partition("\n")
    assert harness.execute([harness.COMMAND, *command.split()], cwd=ROOT).ok().stdout.decode() == shown


@pytest.mark.slow
def test_the_readme_shows_what_the_demo_prints(tmp_path):
    """Every line but for the figures, and the order of those that differ in a few bytes."""
    pytest.importorskip("torch")
    (block,) = (one for one in blocks("README.md") if one.text.startswith("$ gpumemprof run"))
    recorded, _, report = block.text.partition("$ gpumemprof analyze demo.gpumemprof\n")
    env = dict(os.environ, CUDA_VISIBLE_DEVICES="", PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    argv = [harness.COMMAND, "run", "-o", tmp_path / "demo.gpumemprof", "--", "python3", "examples/train_transformer.py"]
    done = harness.execute(argv, cwd=ROOT, env=env, timeout=400).ok()
    told = harness.execute([harness.COMMAND, "analyze", tmp_path / "demo.gpumemprof"], cwd=ROOT).ok().stdout.decode()
    for shown, printed in ((recorded, (done.stdout + done.stderr).decode()), (report, told)):
        lines = {shape(line) for line in printed.splitlines()}
        assert [line for line in shown.splitlines() if line not in ("", "…") and not line.startswith("$ ") and shape(line) not in lines] == []


def test_every_command_has_a_page():
    shown = harness.execute([harness.COMMAND, "--help"]).ok().stdout.decode()
    listed = re.findall(r"^  ([a-z][a-z-]*) {3,}", shown, re.MULTILINE)
    assert sorted(listed) == COMMANDS


@pytest.fixture(scope="module")
def options():
    """The options of each command, as its help shows them; its examples have those of programs, too."""
    helps = {c: harness.execute([harness.COMMAND, c, "--help"]).ok().stdout.decode() for c in COMMANDS}
    return {command: set(OPTION.findall(shown.partition("\nExamples:")[0])) - {"--help"} for command, shown in helps.items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_page_and_its_help_have_the_same_options(options, command):
    page = (DOCS / "commands" / f"{command}.md").read_text()
    named = set(OPTION.findall(page))
    assert not options[command] - named, "in the help, not on the page"
    of_others = {"--help", "--version"}.union(*options.values())
    assert not named - of_others, "on the page, in no command's help"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_page_has_its_short_options(command):
    shown = harness.execute([harness.COMMAND, command, "--help"]).ok().stdout.decode().partition("\nExamples:")[0]
    page = (DOCS / "commands" / f"{command}.md").read_text()
    short = set(re.findall(r"^  (-[a-zA-Z]),--", shown, re.MULTILINE)) - {"-h"}
    assert [option for option in short if not re.search(rf"`{option}\b", page)] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    here = (ROOT / page).parent
    for target, anchor in links(page):
        if "://" in target:
            continue
        path = (here / target).resolve() if target else ROOT / page
        assert path.exists(), f"{page}: {target}"
        assert path.is_relative_to(ROOT)
        assert not anchor or path.suffix != ".md" or anchor in anchors(path), f"{page}: {target}#{anchor}"


def test_links_lead_from_the_first_page_to_every_page():
    reached, left = {"README.md"}, ["docs/index.md"]  # the README leads to the first page
    while left:
        page = left.pop()
        if page in reached:
            continue
        reached.add(page)
        here = (ROOT / page).parent
        targets = [(here / target).resolve() for target, _ in links(page) if target and "://" not in target]
        left += [path.relative_to(ROOT).as_posix() for path in targets if path.suffix == ".md" and path.is_relative_to(DOCS)]
    assert len(reached) > 100 and [page for page in PAGES if page not in reached] == []


def test_every_public_class_and_function_is_in_the_reference():
    import gpumemprof

    pages = "\n".join(path.read_text() for path in (DOCS / "reference").glob("*.md"))
    targets = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    shown = {target.rsplit(".", 1)[-1] for target in targets}
    missing = []
    for name in gpumemprof.__all__:
        value = getattr(gpumemprof, name)
        home = getattr(value, "__module__", "")
        if name != "__version__" and name not in shown and home not in targets:
            missing.append(f"{home}.{name}")
    assert not missing


def test_the_guide_names_every_field_of_a_telemetry_event():
    from gpumemprof.telemetry import FIELDS_V2

    page = (DOCS / "guide" / "telemetry.md").read_text()
    assert [name for name in FIELDS_V2 if f"`{name}`" not in page] == []


@pytest.mark.slow
def test_the_site_builds_without_a_warning():
    done = harness.execute([ROOT / "scripts" / "docs"], timeout=300).ok()
    assert b"WARNING -" not in done.stderr
    for page in ("index.html", "guide/first-steps.html", "reference/gpu-memory-profiler.html", "commands/run.html"):
        assert (ROOT / "build" / "site" / page).exists()
    reference = (ROOT / "build" / "site" / "reference" / "gpu-memory-profiler.html").read_text()
    assert "profile_function" in reference and "Calls <code>func(*args, **kwargs)</code> once" in reference


@pytest.mark.parametrize("page", PAGES)
def test_what_stands_behind_a_fence_is_a_title(page):
    """Of anything else the site makes no block of code: the fence and all up to the next one become one paragraph."""
    assert [block.line for block in blocks(page) if not re.fullmatch(r'(title="[^"]*")?', block.note)] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    by_folder = set(re.findall(r'": "(\w+)"', (ROOT / "scripts" / "docs_hooks.py").read_text()))
    pages = [path.relative_to(DOCS) for path in DOCS.rglob("*.md")]
    missing = [p for p in pages if p.parts[0] not in by_folder and not re.search(rf"[ :]{p}$", navigation, re.MULTILINE)]
    assert len(pages) > 50 and {"commands", "reference", "tensorflow"} <= by_folder and missing == []
