import pytest

pytest.importorskip("mcp", reason="the mcp package is not installed: scripts/setup tests")
