"""The views and macros of daily questions: one file of SQL each, the same for every engine.

The first line of a file names it, and its parameters in the order of a call: `-- live_at(run, memory, event): …`. In the
query they are `:in_run`, `:in_memory` and so on, in the order in which they appear there first.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

_FOLDER = os.path.join(os.path.dirname(__file__), "queries")
_HEAD = re.compile(r"-- (?P<name>\w+)(?:\((?P<parameters>[\w, ]+)\))?: (?P<meaning>.+)")
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


class Query(NamedTuple):
    name: str
    call: str  # as one writes it
    meaning: str
    parameters: tuple[str, ...]
    text: str

    def with_names(self) -> str:
        """Parameters as plain names, as in a macro."""
        return _PARAMETER.sub(r"\1", self.text)

    def with_values(self, *values: str | int) -> str:
        """Parameters as literals, for an engine without macros."""
        said = dict(zip(self.parameters, values))

        def literal(found: re.Match[str]) -> str:
            value = said[found[1]]
            return str(value) if isinstance(value, int) else "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"

        return _PARAMETER.sub(literal, self.text)


def queries() -> list[Query]:
    """In the order in which they may build on each other."""
    found = []
    for name in sorted(os.listdir(_FOLDER)):
        if name.endswith(".sql"):
            with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
                head, text = file.read().split("\n", 1)
            said = _HEAD.fullmatch(head)
            if said is None:
                raise ValueError(f"{name}: the first line is not `-- name: meaning`")
            call = said["name"] + (f"({said['parameters']})" if said["parameters"] else "")
            parameters = tuple(dict.fromkeys(_PARAMETER.findall(text)))
            found.append(Query(said["name"], call, said["meaning"], parameters, text))
    return found
