"""A store of runs, through Arrow's file systems: a folder, or a bucket of whatever speaks S3.

    entries/ID.json   what is told of a run; written last, removed first: without it there is no run
    lake/ID/          the run in a lake, for `gpumemprof sql` and others
    sources/ID/NAME   the recording or snapshot itself, for `diff` and `show`
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any

from ..lake.engine import CannotDo, CannotWrite
from ..._core.needed import needed
from ..told import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ID = re.compile(r"[0-9a-f]{32}")
_PART_OF_ID = re.compile(r"[0-9a-f]{6,32}")
_CHUNK_BYTES = 1 << 20
_MOST_ENTRY_BYTES = 8 << 20


def arrow() -> Any:
    try:
        from pyarrow import fs
    except ImportError as error:
        raise CannotDo(needed("pyarrow", "pyarrow duckdb")) from error
    return fs


class Store:
    """Raises CannotDo with one line where `place` cannot be a store."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._fs = arrow()
        try:
            if "://" in place:
                system, path = self._fs.FileSystem.from_uri(place)
            else:
                system, path = self._fs.LocalFileSystem(), os.path.abspath(place)
        except (ValueError, OSError, NotImplementedError) as error:
            raise CannotDo(f"{plain(place)}: is not a store: {_one_line(error)}") from error
        self.folder = path if isinstance(system, self._fs.LocalFileSystem) else None
        if self.folder is not None and os.path.exists(path) and not os.path.isdir(path):
            raise CannotDo(f"{plain(place)}: is a file: a store is a folder")
        self._system = self._fs.SubTreeFileSystem(path, system)

    def ids(self) -> list[str]:
        """Of all entries, sorted. A bucket has no folders: only in a folder a wrong name can be told."""
        if self.folder is not None and not os.path.isdir(self.folder):
            raise FileNotFoundError(f"{plain(self.place)}: No such file or directory")
        found = self._list("entries")
        return sorted(name[: -len(".json")] for name in found if name.endswith(".json") and _ID.fullmatch(name[:-5]))

    def find(self, name: str) -> str:
        """The one entry whose id is, or begins with, `name`. Raises CannotDo."""
        if not _PART_OF_ID.fullmatch(name):
            raise CannotDo(f"{plain(name)[:60]}: is not the id of a run: give 6 or more of its hexadecimal digits, as list shows them")
        found = [one for one in self.ids() if one.startswith(name)]
        if len(found) != 1:
            why = "is not a run of this store" if not found else f"is the beginning of {len(found)} ids: give more digits"
            raise CannotDo(f"{name}: {why}")
        return found[0]

    def read_entry(self, run: str) -> dict[str, Any]:
        """Raises CannotDo if it is damaged."""
        path = f"entries/{run}.json"
        try:
            with self._system.open_input_stream(path) as file:
                data = file.read(_MOST_ENTRY_BYTES + 1)
            entry = json.loads(data) if len(data) <= _MOST_ENTRY_BYTES else None
        except (ValueError, RecursionError) as error:
            raise CannotDo(f"{path}: is damaged: {_one_line(error)}") from error
        except OSError as error:
            raise CannotDo(f"{path}: cannot be read: {_one_line(error)}") from error
        if not isinstance(entry, dict) or entry.get("id") != run or entry.get("schema") != "gpumemprof.run":
            raise CannotDo(f"{path}: is damaged: it is not the entry of that run")
        if entry.get("schema_version") != 1:
            raise CannotDo(f"{path}: has version {entry.get('schema_version')!r:.20}, and this command knows 1")
        return entry

    def has(self, run: str) -> bool:
        return bool(self._system.get_file_info(f"entries/{run}.json").type == self._fs.FileType.File)

    def put(self, run: str, lake: str, sources: list[str], entry: dict[str, Any]) -> None:
        """Adds a run. What is left of an add that did not finish is written over. Raises CannotWrite."""
        with self._writing():
            self._send(lake, f"lake/{run}")
            for source in sources:
                self._send(source, f"sources/{run}/{os.path.basename(os.path.abspath(source))}")
            self._system.create_dir("entries")
            place = f"entries/{run}.json"
            # A bucket shows a file when it is whole; in a folder a name is given to it then.
            made = place if self.folder is None else f"entries/.{run}.{os.getpid()}"
            with self._system.open_output_stream(made) as file:
                file.write(json.dumps(entry, indent=1).encode())
            if made != place:
                self._system.move(made, place)

    def remove(self, run: str) -> None:
        """The run, and nothing else. Raises CannotWrite."""
        with self._writing():
            self._system.delete_file(f"entries/{run}.json")
            for folder in (f"lake/{run}", f"sources/{run}"):
                if self._system.get_file_info(folder).type != self._fs.FileType.NotFound:
                    self._system.delete_dir(folder)

    def source(self, run: str, place: str) -> str:
        """Where the run's recording or snapshot lies: in the store, or copied into the folder `place`."""
        base = f"sources/{run}"
        names = [name for name in self._list(base) if _is_name(name)]
        if len(names) != 1:
            raise CannotDo(f"{run[:12]}: its recording is not in the store")
        if self.folder is not None:
            return os.path.join(self.folder, base, names[0])
        target = os.path.join(place, names[0])
        self._fetch(f"{base}/{names[0]}", target)
        return target

    def _list(self, folder: str) -> list[str]:
        selector = self._fs.FileSelector(folder, allow_not_found=True)
        try:
            return [info.base_name for info in self._system.get_file_info(selector)]
        except OSError as error:
            raise CannotDo(f"{plain(self.place)}: cannot be read: {_one_line(error)}") from error

    def _send(self, source: str, target: str) -> None:
        for path, inside in _files(source):
            place = f"{target}/{inside}" if inside else target
            self._system.create_dir(place.rpartition("/")[0])
            with open(path, "rb") as from_, self._system.open_output_stream(place) as to:
                _copy(from_.read, to.write)

    def _fetch(self, source: str, target: str) -> None:
        if self._system.get_file_info(source).type == self._fs.FileType.File:
            found = [(source, target)]
        else:
            infos = self._system.get_file_info(self._fs.FileSelector(source, recursive=True))
            found = []
            for info in infos:
                inside = info.path[len(source) + 1 :]
                if not all(_is_name(part) for part in inside.split("/")):
                    raise CannotDo(f"{plain(info.path)[:200]}: is not the name of a file of a recording")
                if info.type == self._fs.FileType.File:
                    found.append((info.path, os.path.join(target, inside)))
        for path, place in found:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with self._system.open_input_stream(path) as from_, open(place, "xb") as to:
                _copy(from_.read, to.write)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CannotWrite(f"{plain(self.place)}: cannot be written: {_one_line(error)}") from error


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def _files(source: str) -> Iterator[tuple[str, str]]:
    """(path, path below `source`) of its regular files; of a file alone the second is empty."""
    if not os.path.isdir(source):
        yield source, ""
        return
    for folder, _, names in os.walk(source):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path, os.path.relpath(path, source)


def _copy(read: Callable[[int], bytes], write: Callable[[bytes], Any]) -> None:
    while part := read(_CHUNK_BYTES):
        write(part)


def _one_line(error: BaseException) -> str:
    return plain(" ".join(str(error).split()))[:300]
