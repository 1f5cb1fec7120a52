"""The hooks. A test without a marker runs as it would without this plugin."""

from __future__ import annotations

from typing import Any

import pytest

CHILD = "gpumemprof_child"  # the plugin that only the process of a test has


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gpumemprof", "memory of tests (gpumemprof)")
    group.addoption("--gpumemprof-all", action="store_true", default=False,
                    help="measure every test in a process of its own, not only those with a marker")  # fmt: skip
    group.addoption("--gpumemprof-keep", metavar="FOLDER", default=None,
                    help="keep the recordings of measured tests in this folder, for gpumemprof analyze and view")  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", 'limit_gpu_memory(limit, device=None): fail the test if its body allocates more than "2 GB" at once; '
                            "it runs in a process of its own")  # fmt: skip
    config.addinivalue_line("markers", 'limit_gpu_leaks(limit, device=None, warmups=False): fail the test if a line of code leaves more than "1 MB" '
                            "behind; it runs in a process of its own")  # fmt: skip


def _is_measured(item: Any) -> bool:
    return bool(item.config.getoption("gpumemprof_all") or any(item.get_closest_marker(name) for name in ("limit_gpu_memory", "limit_gpu_leaks")))


@pytest.hookimpl(tryfirst=True)  # pytest's own would run it here
def pytest_runtest_protocol(item: Any, nextitem: Any) -> bool | None:
    if item.config.pluginmanager.hasplugin(CHILD) or not _is_measured(item):
        return None
    from .parent import run_measured

    run_measured(item, nextitem)
    return True
