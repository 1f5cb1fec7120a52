"""Tests of the package say themselves when the probe is attached; test_attaches_by_itself.py has programs as users start them."""
import pytest


@pytest.fixture(autouse=True)
def nothing_attaches_by_itself(monkeypatch):
    monkeypatch.setenv("GPUMEMPROF_NO_ATTACH", "1")
