"""The source of figures, decided in one place.

Three sources, best first. *exact*: the probe is in this process (under `gpumemprof run`, or after
`gpumemprof.attach()`) and counts every allocation and free. *framework*: PyTorch's own counters of a GPU. *host*: the
resident memory of the process, for the CPU without a probe. Every result names its source, and the reason.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from .._core.torch import program_has_torch
from .devices import CPU, Device, JaxHost, resolve_device
from .exact_source import ExactSource
from .framework_source import FrameworkSource
from .host_source import HostSource, read_rss_bytes, rss_bytes, status_bytes
from .probe_counters import exact_available, read_counters
from .spans import Figures, Own, Reading, SegmentedSpan, Source, Span, figures_of

__all__ = [
    "CPU", "Device", "Figures", "Own", "Reading", "SegmentedSpan", "Source", "Span", "Watch", "exact_available",
    "figures_of", "read_rss_bytes", "resolve_device", "rss_bytes", "source_for", "source_changed", "status_bytes",
]  # fmt: skip

# Counts up when the kind of source of this process has changed; who keeps a source then asks for it again.
generation = 0
_exact: bool | None = None  # the kind when it was last asked for


def source_changed() -> None:
    """To be called after something was attached. Attaching once more changes nothing, and is not counted."""
    _note_kind(exact_available()[0])


def _note_kind(exact: bool) -> None:
    global generation, _exact
    if _exact is not None and _exact != exact:
        generation += 1
    _exact = exact


def _after_fork() -> None:
    global generation
    if _exact:  # a child counts from zero, so what is kept of its parent's figures is of another kind
        generation += 1


os.register_at_fork(after_in_child=_after_fork)


def source_for(device: Any = None) -> Source:
    """The best source of figures for a device, as resolve_device takes it. Begins exact counting where that can be. Of the
    host it is PyTorch's memory; JAX's in a program that has JAX and no PyTorch."""
    where = resolve_device(device)
    exact, why_not = exact_available()
    _note_kind(exact)
    if exact:
        return ExactSource(JaxHost() if where.is_cpu and _is_of_jax() else where)
    return HostSource(where, why_not) if where.is_cpu else FrameworkSource(where, why_not)


def _is_of_jax() -> bool:
    """Whether the program has JAX, and PyTorch neither was imported by it nor has allocated."""
    if "jax" not in sys.modules or program_has_torch():
        return False
    of_torch = read_counters(CPU.code, 0)
    return of_torch is None or of_torch.alloc_count + of_torch.unknown_free_count == 0


class Watch:
    """The highest a device was since `begin`, whoever allocated. One span that is never long open: it is renewed at
    each look.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._highest = 0
        self._exact = True
        self._span: Span = source.begin()

    def look(self) -> tuple[int, bool]:
        """(highest bytes, whether that is exact or a lower bound). Once a bound, always a bound."""
        # The next span begins before this one ends, so that no moment lies between them.
        old, self._span = self._span, self._source.begin()
        figures = figures_of(self._source, old.end())
        self._highest = max(self._highest, figures.peak_bytes)
        # The true peak of a span of which only a bound is known may have been above all that was seen since.
        self._exact = self._exact and figures.peak_is_exact
        return self._highest, self._exact

    def close(self) -> None:
        self._span.end()

    def __del__(self) -> None:
        try:
            self._span.end()
        except Exception:  # at interpreter exit parts of the module are gone; the scope dies with the process
            pass
