"""The tools: each is one command, asked with the arguments of a call. No figure is made here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from ..told import plain
from .folders import Folders, Refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .running import Runner


class Tool(NamedTuple):
    name: str
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...]
    narrower: str  # how to ask for less
    answer: Callable[[Toolbox, dict[str, Any]], Awaitable[str]]

    @property
    def schema(self) -> dict[str, Any]:
        """Of its arguments, as JSON Schema."""
        page = {"type": "integer", "minimum": 1, "maximum": 100_000, "description": "page of the answer, from 1 on"}
        return {
            "type": "object",
            "properties": {**self.properties, "page": page},
            "required": list(self.required),
            "additionalProperties": False,
        }


def _text(meaning: str, most: int = 4096) -> dict[str, Any]:
    return {"type": "string", "maxLength": most, "description": meaning}


def _choice(meaning: str, *names: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(names), "description": meaning}


def _yes(meaning: str) -> dict[str, Any]:
    return {"type": "boolean", "description": meaning}


def _several(meaning: str, most: int, item: dict[str, Any] | None = None) -> dict[str, Any]:
    items = item or {"type": "string", "maxLength": 4096}
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most, "description": meaning}


_PATH = _text("a recording (folder or .gmp file) or a PyTorch snapshot, below the folders of the server")
_DEVICE = _text("cpu, cuda:1, …; PID/cuda:1 for one process; default: the main device", 100)


class Toolbox:
    def __init__(self, folders: Folders, runner: Runner) -> None:
        self.folders = folders
        self.runner = runner

    async def ask(self, command: str, paths: list[str], options: list[str], text: str = "") -> str:
        """Options follow the paths as --NAME=VALUE, so that no value is taken for an option."""
        real = [self.folders.resolve(path) for path in paths]
        return await self.runner.output_of([command, *real, *options], paths=real, text=text)


def _options(arguments: dict[str, Any], *names: str) -> list[str]:
    """--NAME=VALUE of those that were given: of a truth --NAME, of a list one each."""
    words: list[str] = []
    for name in names:
        value = arguments.get(name)
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif isinstance(value, list):
            words += [f"{option}={one}" for one in value]
        elif value not in (None, False, ""):
            words.append(f"{option}={value}")
    return words


async def _open(box: Toolbox, arguments: dict[str, Any]) -> str:
    path = arguments.get("path")
    if not path:
        lines = [f"{one.kind}  {one.size_bytes} bytes  {plain(one.path)}" for one in box.folders.entries()]
        return "\n".join([f"Below {box.folders.named()}:", *(lines or ["nothing"])])
    if runs := box.folders.runs_of_lake(path):
        return "\n".join(["a lake: ask sql; its runs:", *map(plain, runs)])
    report = await box.ask("analyze", [path], ["--format=json", "--no-seal"])
    try:
        said = json.JSONDecoder().raw_decode(report)[0]  # a note may follow
    except ValueError:  # longer than the runner keeps
        return "a run with a long report: ask summary"
    if "source" not in said or "devices" not in said:
        return "no events: summary has what these samples say, explain_oom what a log says"
    source, lost = said["source"], said["lost"]
    lines = [f"{source['kind']} of {source['bytes']} bytes with {source['events']} events"]
    lines.append("nothing was lost" if not lost["events"] and not lost["reasons"] else f"lost: {plain(json.dumps(lost))}")
    for process in said["processes"]:
        lines.append(f"process {process['pid']} on {plain(process['host'] or 'an unknown host')}, "
                     f"{'' if process['rank'] is None else 'rank %d, ' % process['rank']}{plain(process['command'] or 'command unknown')}")  # fmt: skip
    for device in said["devices"]:
        of = "" if device["process"] is None else f" of process {device['process']}"
        lines.append(f"{plain(device['device'])}{of}: peak "
                     f"{device['peak']['requested_bytes'] or device['peak']['allocated_bytes']} bytes")  # fmt: skip
    steps = [moment["step"] for moment in said.get("moments", []) if moment["kind"] == "step_end"]
    lines.append(f"steps {steps[0]} to {steps[-1]}" if steps else "no steps are known")
    return "\n".join(lines)


async def _summary(box: Toolbox, arguments: dict[str, Any]) -> str:
    if arguments.get("advice"):
        return await box.ask("advise", [arguments["path"]], ["--format=text", "--no-seal"])
    options = ["--format=text", "--no-seal", "--no-source", *_options(arguments, "full_stacks", "capacity")]
    return await box.ask("analyze", [arguments["path"]], options)


async def _holders(box: Toolbox, arguments: dict[str, Any]) -> str:
    by = arguments.get("by", "line")
    rows = await box.ask("export", [arguments["path"]],
                         ["--to=folded", "--no-seal", f"--by={by}", *_options(arguments, "at", "device")])  # fmt: skip
    return f"live at {arguments.get('at') or 'peak'}, by {by}, the largest first; the last word is bytes\n{rows}"


async def _diff(box: Toolbox, arguments: dict[str, Any]) -> str:
    paths = [arguments["a"], *([arguments["b"]] if arguments.get("b") else [])]
    steps = arguments.get("steps")
    options = [*_options(arguments, "device", "rows"), *(["--steps", *map(str, steps)] if steps else [])]
    return await box.ask("diff", paths, ["--format=text", "--no-seal", *options])


async def _what_if(box: Toolbox, arguments: dict[str, Any]) -> str:
    options = _options(arguments, "set", "sweep", "capacity", "torch", "device")
    return await box.ask("whatif", [arguments["path"]], ["--format=text", "--no-seal", *options])


async def _explain_oom(box: Toolbox, arguments: dict[str, Any]) -> str:
    if bool(arguments.get("path")) == bool(arguments.get("text")):
        raise Refused("give a path or a text, and not both")
    if arguments.get("path"):
        return await box.ask("explain-oom", [arguments["path"]], ["--format=text"])
    return await box.ask("explain-oom", [], ["--format=text", "-"], arguments["text"])


async def _estimate(box: Toolbox, arguments: dict[str, Any]) -> str:
    if bool(arguments.get("config")) == bool(arguments.get("trace")):
        raise Refused("give a config or traces: a program is estimated in a shell, gpumemprof estimate -- COMMAND")
    paths = arguments.get("trace") or [arguments["config"]]
    real = [box.folders.resolve(path) for path in paths]
    options = [f"--{'trace' if arguments.get('trace') else 'config'}={path}" for path in real]
    options += _options(arguments, "batch", "capacity", "optimizer", "precision", "sequence", "tp", "pp", "dp", "zero",
                        "checkpointing", "inference", "settings")  # fmt: skip
    return await box.runner.output_of(["estimate", *options, "--format=text"], paths=real)


async def _sql(box: Toolbox, arguments: dict[str, Any]) -> str:
    options = ["--format=csv", "--no-seal", f"--timeout={box.runner.timeout_s:g}"]
    return await box.ask("sql", arguments["paths"], options, arguments["query"])


_COUNT = {"type": "integer", "minimum": 1, "maximum": 1_000_000}
TOOLS = (
    Tool("open", "Lists what can be opened, or says of one path what it is: its processes, devices, peaks and steps. Begin here.",
         {"path": _PATH}, (), "give a path", _open),
    Tool("summary", "The report of a run: the peak, the lines that held it, types, modules, findings, how the program ended.",
         {"path": _PATH, "advice": _yes("what to change instead, with the bytes saved"),
          "full_stacks": _yes("every frame"), "capacity": _text("size of the device, such as 24GiB", 100)},
         ("path",), "holders answers for one moment", _summary),
    Tool("holders", "What was live at a moment: bytes by line of code, module, type or whole stack.",
         {"path": _PATH, "at": _text("peak, last-alloc (before the exit frees), end, step:3 (its end), or a time after the first event such as 1.5s", 100),
          "by": _choice("line is the default", "line", "module", "category", "stack"), "device": _DEVICE},
         ("path",), "by=line is the shortest", _holders),
    Tool("diff", "What changed between two runs, or between the ends of two steps of one run, line by line.",
         {"a": _PATH, "b": _PATH, "steps": _several("two numbers: of a and of b, or both of a without b", 2,
                                                     {"type": "integer", "minimum": 0, "maximum": 10**12}) | {"minItems": 2},
          "device": _DEVICE, "rows": {**_COUNT, "description": "rows a table (10)"}},
         ("a",), "rows=5", _diff),
    Tool("whatif", "Replays the run's allocations under other settings of PyTorch's CUDA allocator, or another size of the device.",
         {"path": _PATH, "set": _several("settings as in PYTORCH_CUDA_ALLOC_CONF, one simulation each", 16),
          "sweep": _yes("try a set of promising settings"), "capacity": _text("memory of the device, or none", 100),
          "torch": _text("release whose rules apply", 100), "device": {"type": "integer", "minimum": 0, "maximum": 1023}},
         ("path",), "set instead of sweep", _what_if),
    Tool("explain_oom", "Explains an out-of-memory message: too little memory or fragmentation, who else used it, what to try.",
         {"path": _text("a log below the folders of the server"), "text": _text("the message itself", 1 << 20)},
         (), "give the message alone", _explain_oom),
    Tool("estimate", "Predicts the memory of a training run from a language model's config.json or from traces of two steps. Runs no program.",
         {"config": _text("config.json below the folders of the server"), "trace": _several("traces of gpumemprof estimate", 2),
          "batch": {"anyOf": [_COUNT, {"const": "auto"}], "description": "samples a step; auto: the largest that fits capacity"},
          "capacity": _text("such as 24GiB", 100), "optimizer": _text("adamw, sgd, …", 200),
          "precision": _text("fp32, bf16, amp-bf16, …", 200), "sequence": {**_COUNT, "description": "tokens"},
          **{name: {**_COUNT, "description": f"{kind}-parallel ranks"} for name, kind in
             (("tp", "tensor"), ("pp", "pipeline"), ("dp", "data"))},
          "zero": {"type": "integer", "minimum": 0, "maximum": 3}, "checkpointing": _yes("recompute activations"),
          "inference": _yes("no gradients and no optimizer"), "settings": _several("allocator settings to compare", 16)},
         (), "fewer settings", _estimate),
    Tool("sql", "Asks runs and lakes in SQL (DuckDB, reading only). Tables: runs, ranks, intervals, categories, stacks, samples, steps, "
         "findings. Views: peaks, peak_blocks, peak_by_line, peak_by_category, peak_by_module. Macros: live_at(run, memory, event), "
         "levels(run, memory), grew(before_run, after_run), event_at(run, memory, time_ns). DESCRIBE NAME lists columns.",
         {"paths": _several("recordings, snapshots, lakes", 16), "query": _text("one query", 65_536)},
         ("paths", "query"), "LIMIT, WHERE or GROUP BY", _sql),
)  # fmt: skip
