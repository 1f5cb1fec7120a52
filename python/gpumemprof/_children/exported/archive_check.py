"""What a .pt2 archive would run when it is loaded, looked for before that.

torch.export.load is not made for files of strangers: it unpickles objects, takes functions by their name from torch,
evaluates expressions of sizes and puts names into source text that it compiles. So an archive is refused where it has
pickled objects, or a name or an expression that is more than a name of an operator, an identifier or arithmetic."""

from __future__ import annotations

import ast
import json
import re
import zipfile
from typing import Any

from ..error import NoAnswer

_MOST_GRAPH_BYTES = 64 << 20
_OPERATOR = re.compile(
    r"torch\.ops\.(aten|prims|prim|higher_order|quantized|quantized_decomposed)(\.[A-Za-z_]\w*){1,2}"
    r"|_operator\.(add|sub|mul|floordiv|truediv|mod|neg|pos|pow|eq|ne|lt|le|gt|ge|and_|or_|not_|getitem|abs)"
    r"|math\.(ceil|floor|trunc|sqrt)|torch\.sym_(float|int|ite|max|min|not|sqrt|sum)"
)
_NAME = re.compile(r"[\w.\-:/ ]*")
# Sizes are sums, products and comparisons of symbols, in sympy's words for them, all of which begin with a capital.
_ARITHMETIC = (
    ast.Expression, ast.Call, ast.keyword, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.Compare,
    ast.BoolOp, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
)  # fmt: skip
_SYMBOL = re.compile(r"[A-Z]\w*|[a-z]{1,3}\d+")
# Texts that nothing is made of: where a line came from, and layouts of containers, which are looked up in a table.
_PASSED_OVER = {"metadata", "torch_version", "in_spec", "out_spec", "guards_code", "verifiers"}


def check_archive(path: str) -> None:
    """Raises NoAnswer with the first thing that could run code."""
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                _check_entry(archive, entry)
    except (zipfile.BadZipFile, RecursionError, ValueError) as error:
        raise NoAnswer(f"it is not an archive of torch.export.save: {error}") from None


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    name = entry.filename.split("/", 1)[-1]
    base = name.rsplit("/", 1)[-1]
    if base.startswith(("custom_obj_", "opaque_obj_")):
        raise NoAnswer(f"it has a pickled object ({name}), and unpickling it could run code")
    if name.startswith("data/constants/") and base.endswith(".pt"):
        raise NoAnswer(f"it has pickled constants ({name}) of an older torch.export: export it again")
    if not base.endswith(".json"):
        return
    if entry.file_size > _MOST_GRAPH_BYTES:
        raise NoAnswer(f"{name} has more than {_MOST_GRAPH_BYTES >> 20} MiB")
    content = json.loads(archive.read(entry))
    if name.startswith("data/") and _is_pickled(content):
        raise NoAnswer(f"it has pickled tensors ({name}), and unpickling them could run code")
    if name.startswith("models/"):
        _check_graph(content, "")


def _is_pickled(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value.get("use_pickle")) or any(_is_pickled(one) for one in value.values())
    return isinstance(value, list) and any(_is_pickled(one) for one in value)


def _check_graph(value: Any, key: str) -> None:
    if key in _PASSED_OVER:
        return
    if isinstance(value, dict):
        for name, one in value.items():
            _check_text(name, "")
            _check_graph(one, name)
    elif isinstance(value, list):
        for one in value:
            _check_graph(one, key)
    elif isinstance(value, str):
        _check_text(value, key)


def _check_text(text: str, key: str) -> None:
    if key == "target":
        fine = _OPERATOR.fullmatch(text) is not None and "__" not in text
    elif key == "expr_str":
        fine = _is_arithmetic(text)
    else:
        fine = _NAME.fullmatch(text) is not None
    if not fine:
        raise NoAnswer(f"loading it could run code: its graph has {text[:80]!r} where a name is expected")


def _is_arithmetic(text: str) -> bool:
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, _ARITHMETIC):
            return False
        if isinstance(node, ast.Name) and not _SYMBOL.fullmatch(node.id):
            return False
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _NAME.fullmatch(node.value):
            return False
    return True
