"""Every input of analyses and plots in one form (`Measured`): objects, and files of any kind."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._core.native import native
from .._telemetry.files import load_telemetry_events
from .measured import Measured
from .recordings import of_analysis
from .shapes import collect_object, of_events

MOST_BYTES = 256 * 2**20  # of a JSON object that is read as a whole


def collect(source: Any) -> Measured:
    """What `source` holds. Errors: TypeError for what is none of the documented sources, naming its type;
    ValueError and OSError of a file that cannot be read."""
    return _collect_file(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else collect_object(source)


def _collect_file(path: str) -> Measured:
    """A recording (a folder, a .gmp file), telemetry (JSON, JSON lines, CSV) or results that were saved as JSON.

    Errors: OSError where it cannot be opened, ValueError with one line where its content is none of these."""
    is_folder = os.path.isdir(path)
    if not is_folder:
        open(path, "rb").close()
    if is_folder or native().input_kind(path) == "recording":
        return of_analysis(json.loads(native().analyze_recording(path)))
    saved = _saved_object(path)
    if saved is not None:
        try:
            measured = collect_object(saved)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            line = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"{path}: not results that were saved by gpumemprof: {line}") from error
        # Saved by who knows which machine: its devices are not ours.
        return replace(measured, limit_bytes=None, device_id=None) if measured.functions else measured
    return of_events(load_telemetry_events(path))


def _saved_object(path: str) -> Mapping[str, Any] | None:
    """A JSON object that is not one telemetry record: a summary, saved results, an analysis, a timeline."""
    with open(path, "rb") as file:
        if file.read(64).lstrip()[:1] != b"{" or os.fstat(file.fileno()).st_size > MOST_BYTES:
            return None
        file.seek(0)
        try:
            saved = json.load(file)
        except (ValueError, RecursionError):  # JSON lines, or damaged: the core tells which, and at which byte
            return None
    return saved if isinstance(saved, dict) and "timestamp_ns" not in saved and "timestamp" not in saved else None
