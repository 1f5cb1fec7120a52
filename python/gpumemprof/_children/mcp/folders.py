"""The folders that were given, and what lies below them: nothing else is ever opened."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from ..told import plain

_MOST_ENTRIES = 20_000
_MOST_DEPTH = 6


class Refused(Exception):
    """One line: why a call has no answer."""


class Entry(NamedTuple):
    """Something below a folder. `kind` is by its name alone: `open` looks at the content."""

    kind: str
    path: str
    size_bytes: int


class Folders:
    def __init__(self, folders: list[str]) -> None:
        self.roots = [os.path.realpath(folder) for folder in folders]
        for folder, root in zip(folders, self.roots):
            if not os.path.isdir(root):
                raise Refused(f"{plain(folder)}: is not a folder")

    def resolve(self, path: str) -> str:
        """The real path of a file or folder below ours. A relative path is tried below each in turn. Raises Refused."""
        if not path or "\0" in path:
            raise Refused("a path is empty or has a NUL in it")
        tried = [path] if os.path.isabs(path) else [os.path.join(root, path) for root in self.roots]
        real = [os.path.realpath(one) for one in tried]
        inside = [one for one in real if self._has(one)]
        if not inside:
            raise Refused(f"{plain(path)}: is not below the folders that were given: {self.named()}")
        found = next((one for one in inside if os.path.lexists(one)), None)
        if found is None:
            raise Refused(f"{plain(path)}: No such file or directory")
        self._look_into(found, path)
        return found

    def named(self) -> str:
        return ", ".join(plain(root) for root in self.roots)

    def entries(self) -> list[Entry]:
        """What could be opened, by path. Hidden folders are left out."""
        found: list[Entry] = []
        for root in self.roots:
            self._list(root, 0, found)
        return found

    def runs_of_lake(self, path: str) -> list[str]:
        """Names of the runs of a lake; none where the folder is another one. Raises Refused."""
        real = self.resolve(path)
        if not os.path.isdir(real):
            return []
        if "runs.parquet" in os.listdir(real):
            return [os.path.basename(real)]
        return sorted(name for name in os.listdir(real) if os.path.isfile(os.path.join(real, name, "runs.parquet")))

    def _has(self, real: str) -> bool:
        return any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.roots)

    def _look_into(self, real: str, said: str) -> None:
        """Nothing in it may lead elsewhere or be no file: the commands follow what they find."""
        _require_plain(real, os.lstat(real).st_mode, said)
        if not os.path.isdir(real):
            return
        count = 0
        for folder, folders, files in os.walk(real):
            for name in folders + files:
                count += 1
                if count > _MOST_ENTRIES:
                    raise Refused(f"{plain(said)}: holds more than {_MOST_ENTRIES} files: name one of them")
                path = os.path.join(folder, name)
                target = os.path.realpath(path)
                if not self._has(target):
                    raise Refused(f"{plain(said)}: {plain(name)} in it leads out of the folders that were given")
                if os.path.lexists(target):
                    _require_plain(target, os.lstat(target).st_mode, path)

    def _list(self, folder: str, depth: int, found: list[Entry]) -> None:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        names = {entry.name for entry in entries}
        is_recording = any(name.endswith(".gmp") for name in names)
        if is_recording or "runs.parquet" in names:
            events = [entry for entry in entries if entry.name.endswith(".gmp") or not is_recording]
            size = sum(entry.stat(follow_symlinks=False).st_size for entry in events)
            found.append(Entry("recording" if is_recording else "run of a lake", folder, size))
            return
        for entry in entries:
            if len(found) >= _MOST_ENTRIES or entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if depth < _MOST_DEPTH:
                    self._list(entry.path, depth + 1, found)
            elif entry.is_file(follow_symlinks=False):
                found.append(Entry("file", entry.path, entry.stat(follow_symlinks=False).st_size))


def _require_plain(path: str, mode: int, said: str) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise Refused(f"{plain(said)}: is neither a file nor a folder")
    if not os.access(path, os.R_OK):
        raise Refused(f"{plain(said)}: Permission denied")
