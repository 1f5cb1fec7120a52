"""`python -m gpumemprof._children.runs OPTIONS -- ACTION WORD…`, the options as JSON; the exit code of the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

from ..lake.engine import CannotDo, answered, check_exist, duckdb
from ..told import EXIT_FAILED, EXIT_OK, end_now, plain, say
from .entry import Added, said_of
from .showing import words_of, write_list
from .store import Store


def _add(store: Store, paths: list[str], options: dict[str, Any]) -> int:
    duckdb()  # before minutes of reading
    said, code = options["said"], EXIT_OK
    for path in paths:
        with tempfile.TemporaryDirectory(prefix="gpumemprof-runs-") as place:
            added = Added(path, place, said, say)
            less = _events_of_less(store, added)
            if less is not None:
                store.remove(added.id)
                store.put(added.id, added.lake, [path], added.entry)
                sys.stdout.write(f"{added.id} replaced: {plain(path)}: {added.entry['events']:,} events instead of {less:,}\n")
            elif store.has(added.id):
                sys.stdout.write(f"{added.id} is already there: {plain(path)}\n")
                _say_what_stays(store, added.id, said)
            else:
                store.put(added.id, added.lake, [path], added.entry)
                sys.stdout.write(f"{added.id} added: {plain(path)}\n")
        if added.lost:
            say(f"{path}: {added.lost}")
        code = code if added.has_every_event else EXIT_FAILED
    return code


def _events_of_less(store: Store, added: Added) -> int | None:
    """Of an entry of the same run that has fewer events, their number; `added` takes over what was said of it. Else None."""
    try:
        entry = store.read_entry(added.id) if store.has(added.id) else {}
        _check(entry | {"id": added.id})
    except CannotDo:  # there is none, or it is damaged: that is said by `list`
        return None
    events = entry.get("events")
    if not isinstance(events, int) or events >= added.entry["events"]:
        return None
    said = ("commit", "model", "settings")
    added.entry.update({name: entry[name] for name in said if not added.entry[name] and entry.get(name)})
    return events


def _say_what_stays(store: Store, run: str, said: dict[str, Any]) -> None:
    """What was said of a run this time is not taken: the entry keeps what was said first."""
    entry = store.read_entry(run) if any(said.values()) else {}
    other = [name for name in ("commit", "model", "settings") if said[name] and said[name] != entry.get(name)]
    if other:
        say(f"{run}: keeps its {', '.join(other)}: to change that, remove the run and add it again")


def _list(store: Store, words: list[str], options: dict[str, Any]) -> int:
    entries, code, said = [], EXIT_OK, said_of(options)
    for run in store.ids():
        try:
            entry = store.read_entry(run)
            _check(entry)
        except CannotDo as error:
            code = say(f"left out: {error}", EXIT_FAILED)
            continue
        is_said = all(said[name] in (None, entry.get(name)) for name in ("commit", "model"))
        if is_said and said["settings"].items() <= entry["settings"].items():
            entries.append(entry)
    write_list(entries, options["line"], options["format"])
    return code


def _show(store: Store, words: list[str], options: dict[str, Any]) -> int:
    run = store.find(words[0])
    entry = store.read_entry(run)
    if options["format"] == "json":
        sys.stdout.write(json.dumps(entry, indent=1) + "\n")
        return EXIT_OK
    _check(entry)
    sys.stdout.write("".join(plain(line) + "\n" for line in words_of(entry)) + "\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="gpumemprof-runs-") as place:
        return _command(options, "analyze", store.source(run, place))


def _diff(store: Store, words: list[str], options: dict[str, Any]) -> int:
    first, second = (store.find(word) for word in words)
    form = "json" if options["format"] == "json" else "text"
    with tempfile.TemporaryDirectory(prefix="gpumemprof-runs-") as place:
        sources = [store.source(run, os.path.join(place, run[:12])) for run in (first, second)]
        return _command(options, "diff", *sources, "--format", form)


def _rm(store: Store, words: list[str], options: dict[str, Any]) -> int:
    runs = list(dict.fromkeys(store.find(word) for word in words))  # all are found before one is removed
    for run in runs:
        store.remove(run)
        sys.stdout.write(f"{run} removed\n")
    return EXIT_OK


def _command(options: dict[str, Any], *words: str) -> int:
    """The command itself, which alone knows what a run says."""
    return subprocess.run([options["command"], *words, "--no-seal"], stdin=subprocess.DEVNULL, check=False).returncode


def _check(entry: dict[str, Any]) -> None:
    """Of what is calculated or sorted with: an entry is a file like any other."""
    numbers = all(isinstance(entry.get(name), (int, float, type(None))) for name in ("recorded_ns", "score", "peak_bytes"))
    texts = all(isinstance(entry.get(name), (str, type(None))) for name in ("commit", "model", "name", "device", "command", "lost"))
    lists = all(isinstance(entry.get(name), list) and all(isinstance(one, str) for one in entry[name]) for name in ("hosts", "boards"))
    lines = isinstance(entry.get("lines"), list) and all(
        isinstance(one, dict) and isinstance(one.get("line"), str) and type(one.get("size_bytes")) is int for one in entry["lines"]
    )
    if not (numbers and texts and lists and lines and type(entry.get("added_ns")) is int and isinstance(entry.get("settings"), dict)):
        raise CannotDo(f"entries/{entry['id']}.json: is damaged: a value is of another kind")


class _Action(NamedTuple):
    answer: Callable[[Store, list[str], dict[str, Any]], int]
    least: int
    most: int
    takes: str
    options: tuple[str, ...]  # names of those beside --store
    formats: tuple[str, ...] = ("table",)


_ACTIONS = {
    "add": _Action(_add, 1, 10**6, "one path or more", ("commit", "model", "settings")),
    "list": _Action(_list, 0, 0, "nothing", ("commit", "model", "settings", "line"), ("table", "csv", "json")),
    "show": _Action(_show, 1, 1, "one id", (), ("table", "json")),
    "diff": _Action(_diff, 2, 2, "two ids", (), ("table", "json")),
    "rm": _Action(_rm, 1, 10**6, "one id or more", ()),
}
_TYPED = {"commit": "--commit", "model": "--model", "settings": "--set", "line": "--line"}


def _refuse_unused(name: str, words: list[str], options: dict[str, Any]) -> None:
    """What an action does nothing with. Raises CannotDo."""
    action = _ACTIONS[name]
    if not action.least <= len(words) <= action.most:
        raise CannotDo(f"runs {name} takes {action.takes}")
    for option, typed in _TYPED.items():
        if options[option] and option not in action.options:
            users = " and ".join(other for other, one in _ACTIONS.items() if option in one.options)
            raise CannotDo(f"{typed} goes with {users}, not with {name}")
    if options["format"] not in action.formats:
        raise CannotDo(f"--format {options['format']} does not go with {name}, which has {' and '.join(action.formats)}")


def _run(arguments: list[str]) -> int:
    options, (action, *words) = json.loads(arguments[0]), arguments[2:]
    _refuse_unused(action, words, options)
    if action == "add":  # before a package is looked for
        options["said"] = said_of(options)
        check_exist(words)
    return _ACTIONS[action].answer(Store(options["store"]), words, options)


def main(words: list[str]) -> None:
    end_now(lambda: answered(lambda: _run(words)))


if __name__ == "__main__":
    main(sys.argv[1:])
