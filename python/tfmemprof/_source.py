"""Figures of one of TensorFlow's devices, from the best source that turns out to work.

Best first: the probe's events of TensorFlow's allocators; TensorFlow's own counters of a GPU (of the CPU they leave
small blocks out: oneDNN has a second allocator for those, which counts nothing); the process's resident memory. Which
of them works can be known only once TensorFlow has made its devices, and making them is the program's to do. Until then
nothing was allocated, all sources are begun, and the one that is chosen later is read out.
"""

from __future__ import annotations

from typing import Any

from gpumemprof._core.native import native
from gpumemprof._counting import counters, framework_source
from gpumemprof._counting.devices import Device
from gpumemprof._counting.exact_source import ExactSource
from gpumemprof._counting.framework_source import Stats
from gpumemprof._counting.host_source import HostSource
from gpumemprof._counting.spans import Figures, Own, Raw, Reading, Source

from ._tensorflow import is_initialized, loaded_tensorflow

_PROBE_BYTES = 1031  # a size that programs do not have; the self-test's tensor
_REFUSED = (ValueError, RuntimeError, LookupError)  # what get_memory_info raises where it knows nothing of a device
_WHY_NO_COUNTERS = {
    True: "TensorFlow's own counters omit small CPU blocks",
    False: "TensorFlow does not count the memory of this device",
}
_UNCOUNTED = "the probe no longer counts TensorFlow: "
_unfit: Any = None  # the probe's function that says why; False if it has none
_flows: dict[str, bool] = {}  # by device and generation: whether the probe saw the self-test's tensor


class TensorFlowCounters:
    """TensorFlow's own figures of one device: bytes in use and their highest mark. Nothing is ever reset."""

    def __init__(self, device: Device) -> None:
        self._name = str(device).lstrip("/")

    def stats(self) -> Stats:
        """Zeros before TensorFlow has made its devices, and where `why_not` has a reason. What is reserved TensorFlow
        does not say: it is what is in use.
        """
        try:
            info = self._info()
        except _REFUSED:
            info = None
        if info is None:
            return Stats()
        current, peak = int(info["current"]), int(info["peak"])
        return Stats(allocated=current, reserved=current, max_allocated=peak, max_reserved=peak, active=current)

    def read(self) -> Reading:
        return self.stats().reading()

    def why_not(self) -> str:
        """Why TensorFlow does not tell, once it has made its devices; empty if it does."""
        try:
            self._info()
        except _REFUSED as error:
            return str(error).splitlines()[0][:200]
        return ""

    def _info(self) -> Any:
        tensorflow = loaded_tensorflow()
        if tensorflow is None or not is_initialized():
            return None
        return tensorflow.config.experimental.get_memory_info(self._name)


class FrameworkSource(framework_source.FrameworkSource):
    """get_memory_info before and after. The peak is known where the highest mark rose in between; else the higher of
    before and after is a lower bound.
    """

    def __init__(self, device: Device, why: str) -> None:
        self.device = device
        self._counters = TensorFlowCounters(device)
        self.basis_reason = (
            "tf.config.experimental.get_memory_info, which has no sums, so allocated and freed are net and lower "
            f"bounds; since {why}"
        )

    def stats(self) -> Stats:
        return self._counters.stats()

    def between(self, before: Stats, after: Stats) -> tuple[int, int, int]:
        growth = after.allocated - before.allocated
        peak = max(before.allocated, after.allocated)
        if after.max_allocated != before.max_allocated:  # after a reset the new mark was reached since, too
            peak = max(peak, after.max_allocated)
        return max(growth, 0), max(-growth, 0), peak

    def _judge(self, before: Stats, after: Stats) -> tuple[bool, str]:
        if after.max_allocated < before.max_allocated:
            return False, "the program reset TensorFlow's peak, so the peak is a lower bound"
        if after.max_allocated == before.max_allocated:
            exact = max(before.allocated, after.allocated) == after.max_allocated
            return exact, "the peak is exact" if exact else framework_source.LOWER_BOUND
        return True, "the peak is exact unless the program reset TensorFlow's peak"

    def _blocks(self, before: Stats, after: Stats) -> tuple[int | None, int | None]:
        return None, None


class TensorFlowSource:
    """The sources of one device behind one face. `probe` False: no probe counts, `why_not` says why."""

    def __init__(self, device: Device, probe: bool, why_not: str) -> None:
        self.device = device
        self._kinds: dict[str, Source] = {}
        if probe:
            self._kinds["exact"] = ExactSource(device, None if device.is_cpu else TensorFlowCounters(device))
        self._not_exact(why_not or "the probe sees no event of TensorFlow")
        self._in_question = tuple(self._kinds)
        self._decided: str | None = None if len(self._kinds) > 1 else "host"

    @property
    def kind(self) -> str:
        """"exact", "framework" or "host": what is read out now. Final once TensorFlow has made its devices."""
        if self._decided is not None:
            if self._decided == "exact" and (why := why_uncounted()):  # the next best is read out from now on
                self._not_exact(_UNCOUNTED + why)
                self._decide(self._next_best())
            return self._decided
        first = next(iter(self._kinds))
        if not is_initialized() or loaded_tensorflow() is None:
            return first
        return self._decide("exact" if first == "exact" and events_flow(self.device) else self._next_best())

    def _next_best(self) -> str:
        tells = "framework" in self._kinds and not TensorFlowCounters(self.device).why_not()
        return "framework" if tells else "host"

    def _decide(self, kind: str) -> str:
        self._decided, self._in_question = kind, (kind,)
        return kind

    def _not_exact(self, why_not: str) -> None:
        if not self.device.is_cpu:
            self._kinds["framework"] = FrameworkSource(self.device, why_not)
        self._kinds["host"] = HostSource(self.device, f"{why_not}, and {_WHY_NO_COUNTERS[self.device.is_cpu]}")

    @property
    def basis(self) -> str:
        return self.kind

    @property
    def basis_reason(self) -> str:
        why_cpu = getattr(self.device, "why_cpu", "")
        return self._kinds[self.kind].basis_reason + (f"; {why_cpu}" if why_cpu else "")

    def read(self) -> Reading:
        return self._kinds[self.kind].read()

    def begin(self, in_context: bool = False) -> _Span:
        return _Span(self, in_context)

    def start_bytes(self, raw: Raw) -> int:
        return self._kinds[raw[4]].start_bytes(raw[5])

    def figures(self, raw: Raw) -> Figures:
        figures = self._kinds[raw[4]].figures(raw[5])
        if raw[3]:
            figures.peak_is_exact = False
            figures.basis_reason += f"; {_UNCOUNTED}{raw[3]}, so only a part of this time was counted"
        why_cpu = getattr(self.device, "why_cpu", "")
        if why_cpu:
            figures.basis_reason += f"; {why_cpu}"
        return figures

    def own_begin(self) -> int:
        return self._kinds[self.kind].own_begin()

    def own_switch(self, scope: int, running: bool) -> None:
        self._kinds[self.kind].own_switch(scope, running)

    def own_end(self, scope: int) -> Own | None:
        return self._kinds[self.kind].own_end(scope)


class _Span:
    """Of every source that may yet be the one."""

    __slots__ = ("_source", "_spans")

    def __init__(self, source: TensorFlowSource, in_context: bool) -> None:
        self._source = source
        source.kind  # noqa: B018  # decides, where it can be decided
        self._spans = {kind: source._kinds[kind].begin(in_context) for kind in source._in_question}

    def end(self) -> Raw:
        ended = {name: span.end() for name, span in self._spans.items()}
        kind, why = self._source.kind, ""
        if kind not in ended:  # it was exact, and ended being so in between
            kind, why = "exact", why_uncounted()
        raw = ended[kind]
        return (*raw[:3], why, kind, raw)


def why_uncounted() -> str:
    """Why the probe counts nothing of TensorFlow any more; empty if it does, or where there is no probe."""
    global _unfit
    if _unfit is None:
        import ctypes  # here, as it is needed only where the probe counts

        _unfit = getattr(ctypes.PyDLL(None), "gpumemprof_tensorflow_unfit", False)
        if _unfit:
            _unfit.restype = ctypes.c_char_p
    why = _unfit() if _unfit else None
    return why.decode() if why else ""


def events_flow(device: Device) -> bool:
    """Whether the probe sees what TensorFlow allocates on a device that it has made: a small tensor is made to see.

    Asked once a device and process, and again after something was attached. False where TensorFlow is built so that
    its calls cannot be seen.
    """
    name = f"{device} {counters.generation}"
    if name not in _flows:
        _flows[name] = _self_test(device)
    return _flows[name]


def _self_test(device: Device) -> bool:
    tensorflow = loaded_tensorflow()
    if tensorflow is None:
        return False
    before = _alloc_count(device)
    try:
        with tensorflow.init_scope(), tensorflow.device(str(device)):
            tensor = tensorflow.zeros([_PROBE_BYTES], tensorflow.uint8)
    except Exception:  # a device that refuses: nothing is known of its events
        return False
    del tensor
    return _alloc_count(device) > before


def _alloc_count(device: Device) -> int:
    counted = native().counters(device.code, max(device.index, 0))
    return int(counted[1]) if counted else 0
