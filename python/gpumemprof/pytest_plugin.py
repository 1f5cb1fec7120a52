"""The pytest plugin: limits of memory for tests, by markers. docs/places/ci.md says how it is used."""

from ._pytest.plugin import pytest_addoption as pytest_addoption
from ._pytest.plugin import pytest_configure as pytest_configure
from ._pytest.plugin import pytest_runtest_protocol as pytest_runtest_protocol
