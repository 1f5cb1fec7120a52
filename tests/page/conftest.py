import subprocess
import sys
from pathlib import Path

import harness
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from page_client import page_of  # noqa: E402

REAL = harness.ROOT.parent / "shared" / "snapshots"


@pytest.fixture
def view():
    """view(*files) -> a Page of a `view` that ends with the test."""
    open_pages = []

    def start(*paths):
        context = page_of([harness.COMMAND], *paths)
        open_pages.append(context)
        return context.__enter__()

    yield start
    for context in open_pages:
        context.__exit__(None, None, None)
