"""A device that says what a test tells it to, and trackers over it whose clock is in the test's hands."""

from gpumemprof import MemoryTracker
from gpumemprof.device_collectors import DeviceMemoryCollector, DeviceMemorySample


class Scripted(DeviceMemoryCollector):
    """A device that says what it is told to: the last of `samples` for ever."""

    device_id = 0
    basis_reason = "a script"

    def __init__(self, *samples, total=1000):
        self.samples = [s if isinstance(s, DeviceMemorySample) else one(s, total=total) for s in samples]
        self.taken = 0

    def name(self):
        return "cuda"

    def is_available(self):
        return True

    def _read(self, missing):
        sample = self.samples[min(self.taken, len(self.samples) - 1)]
        self.taken += 1
        if isinstance(sample, DeviceMemorySample) and sample.allocated_bytes is None:
            raise RuntimeError("device lost")
        return sample


def one(allocated, reserved=None, used=None, total=1000, inactive=None):
    return DeviceMemorySample(allocated, reserved, used, None, total, None, inactive, 0)


def tracker_of(*values, total=1000, **options):
    """A tracker over a script, its clock in our hands: `tick` takes the next sample."""
    options = {"sampling_interval": 3600, **options}
    tracker = MemoryTracker(collector=Scripted(*values, total=total), **options)
    tracker.collector.taken = 0
    return tracker


def run_through(tracker, count):
    tracker.collector.taken = -1  # starting looks twice: once for the start event, once for the baseline
    tracker.start_tracking()
    for _ in range(count - 1):
        tracker._tick()
