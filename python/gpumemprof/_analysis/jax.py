"""The memory of a compiled JAX function, as XLA reports it: `gpumemprof.jax_memory_analysis(compiled)`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_FIELDS = {
    "argument_bytes": "argument_size_in_bytes",
    "output_bytes": "output_size_in_bytes",
    "alias_bytes": "alias_size_in_bytes",
    "temp_bytes": "temp_size_in_bytes",
    "generated_code_bytes": "generated_code_size_in_bytes",
    "peak_bytes": "peak_memory_in_bytes",
    "host_argument_bytes": "host_argument_size_in_bytes",
    "host_output_bytes": "host_output_size_in_bytes",
    "host_alias_bytes": "host_alias_size_in_bytes",
    "host_temp_bytes": "host_temp_size_in_bytes",
    "host_generated_code_bytes": "host_generated_code_size_in_bytes",
}


@dataclass(frozen=True)
class CompiledMemory:
    """Bytes on one device that a compiled function needs, as its compiler planned them: not measured, and without other
    live memory. What this jaxlib or backend does not report is None, with the reason in `unknown`.

    The `host_…` fields are host memory of an accelerator's function. For a function for the CPU all memory is in the
    other fields.
    """

    argument_bytes: int | None  #: what it is called with, padded as the device wants it
    output_bytes: int | None  #: what it returns, with the tables of tuples
    alias_bytes: int | None  #: outputs that lie in donated arguments; in both fields above too
    temp_bytes: int | None  #: one arena for all that lives only while it runs
    generated_code_bytes: int | None
    peak_bytes: int | None  #: the most at one moment of a run; at least arguments, outputs and temporaries together
    host_argument_bytes: int | None
    host_output_bytes: int | None
    host_alias_bytes: int | None
    host_temp_bytes: int | None
    host_generated_code_bytes: int | None
    unknown: dict[str, str] = field(default_factory=dict)  #: field: why it is None


def jax_memory_analysis(compiled: Any) -> CompiledMemory:
    """The memory of `compiled`, from `jax.jit(f).lower(*arguments).compile()`.

    Nothing is run, and JAX is not imported. Raises TypeError if the argument is not a compiled function.
    """
    analysis = getattr(compiled, "memory_analysis", None)
    if analysis is None:
        kind = type(compiled).__name__
        raise TypeError(f"{kind} is not compiled: give jax.jit(f).lower(*arguments).compile()")
    why = "the backend does not report a compiled function's memory"
    try:
        said = analysis()
    except Exception as error:  # what JAX raises where its backend has no such answer differs between releases
        said, why = None, f"the backend cannot report it: {type(error).__name__}: {error}"
    values: dict[str, int | None] = {}
    unknown: dict[str, str] = {}
    for name, theirs in _FIELDS.items():
        value = getattr(said, theirs, None)
        values[name] = value if isinstance(value, int) and value >= 0 else None
        if values[name] is None:
            unknown[name] = why if said is None else f"this jaxlib does not give {theirs}"
    _correct_peak(values)
    return CompiledMemory(**values, unknown=unknown)


def _correct_peak(values: dict[str, int | None]) -> None:
    """jaxlib's peak for a CPU leaves out most temporaries, but a call allocates all its blocks before it begins."""
    peak, arguments, outputs, alias, temporaries = (
        values[name] for name in ("peak_bytes", "argument_bytes", "output_bytes", "alias_bytes", "temp_bytes"))
    if peak is None or arguments is None or outputs is None or alias is None or temporaries is None:
        return
    values["peak_bytes"] = max(peak, arguments + outputs - alias + temporaries)
