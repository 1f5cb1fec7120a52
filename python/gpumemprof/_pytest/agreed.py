"""What pytest and the process of a test agree on."""

from __future__ import annotations

from typing import Any

CHILD = "gpumemprof_child"  # the plugin that only the process of a test has

# What of the session's options is not for the process of one test.
CHILD_OPTIONS: dict[str, Any] = {
    "numprocesses": None, "maxprocesses": None, "dist": "no", "tx": [], "distload": False, "looponfail": False, "usepdb": False,
    "xmlpath": None, "lf": False, "failedfirst": False, "newfirst": False, "stepwise": False, "stepwise_skip": False, "cacheclear": False,
    "collectonly": False, "keyword": "", "markexpr": "", "deselect": None, "ignore": None, "ignore_glob": None, "maxfail": 0, "pastebin": None, "no_cov": True,
}  # fmt: skip
