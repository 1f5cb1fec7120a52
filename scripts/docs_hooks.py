"""What mkdocs.yml cannot say: navigation from the folders, and links that leave the documentation."""

import re
from pathlib import Path, PurePosixPath

# Entries of the navigation that list a folder, below the page that stands there already.
FOLDERS = {"Commands": "commands", "Reference": "reference", "TensorFlow": "tensorflow"}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config):
    """One page a command and a page a class: whoever adds a file has it in the navigation."""
    root = Path(config.docs_dir)
    for entry in config.nav:
        for title, pages in entry.items() if isinstance(entry, dict) else ():
            folder = FOLDERS.get(title)
            if folder is not None:
                found = sorted(f"{folder}/{path.name}" for path in (root / folder).glob("*.md"))
                pages += [page for page in found if page not in pages]
    return config


def on_page_markdown(markdown, page, config, files):
    """A link to a file of the repository that is not part of the site becomes the name of that file."""
    here = PurePosixPath(page.file.src_uri).parent

    def resolved(match):
        text, target = match[1], match[2]
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        parts = []
        for part in (here / target).parts:
            if part != "..":
                parts.append(part)
            elif parts:
                parts.pop()
            else:  # above docs/
                name = PurePosixPath(target).name
                return f"`{name}`" if text in target else f"{text} (`{name}` in the repository)"
        return match[0]

    return LINK.sub(resolved, markdown)
