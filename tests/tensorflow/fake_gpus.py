"""A stand-in for TensorFlow with GPUs, for machines without: its configuration and the counters of its allocator.

Only what the package asks of a GPU; what can be real is tested on TensorFlow itself.
"""

import contextlib
import sys
import types


class FakeTensorflow(types.ModuleType):
    """`in_use[i]` and `peaks[i]` are GPU i's bytes; `initialized` is whether its devices are made."""

    def __init__(self, gpus=1):
        super().__init__("tensorflow")
        self.in_use, self.peaks, self.growth = [0] * gpus, [0] * gpus, [False] * gpus
        self.context = types.SimpleNamespace(_context=types.SimpleNamespace(_initialized=False))
        self.eager_functions = False
        devices = [types.SimpleNamespace(name=f"/physical_device:GPU:{i}", index=i) for i in range(gpus)]
        experimental = types.SimpleNamespace(
            get_memory_info=self.get_memory_info, set_memory_growth=self.set_memory_growth,
            get_memory_growth=lambda gpu: self.growth[gpu.index],
            get_device_details=lambda gpu: {"device_name": "Fake", "compute_capability": (9, 0)},
        )  # fmt: skip
        self.config = types.SimpleNamespace(
            experimental=experimental, get_visible_devices=lambda kind=None: devices,
            list_physical_devices=lambda kind=None: devices, functions_run_eagerly=lambda: self.eager_functions,
        )  # fmt: skip
        self.function, self.uint8 = (lambda f: f), "uint8"
        self.test = types.SimpleNamespace(is_built_with_cuda=lambda: True)
        self.init_scope, self.device = contextlib.nullcontext, lambda name: contextlib.nullcontext()
        self.held = []

    @staticmethod
    def executing_eagerly():
        return True

    def get_memory_info(self, name):
        self.context._context._initialized = True  # as the real one, which makes the devices to answer
        index = int(name.split(":")[1])
        return {"current": self.in_use[index], "peak": self.peaks[index]}

    def set_memory_growth(self, gpu, on):
        if self.context._context._initialized:
            raise RuntimeError("Physical devices cannot be modified after being initialized")
        self.growth[gpu.index] = on

    def zeros(self, shape, dtype):
        return Tensor(self, 0, 1280)  # as the pool rounds 1,031

    def initialize(self):
        self.context._context._initialized = True


class Tensor:
    """Holds bytes of a GPU for as long as it lives."""

    def __init__(self, tensorflow, index, size_bytes):
        self._of, self._index, self._size = tensorflow, index, size_bytes
        tensorflow.in_use[index] += size_bytes
        tensorflow.peaks[index] = max(tensorflow.peaks[index], tensorflow.in_use[index])

    def __del__(self):
        self._of.in_use[self._index] -= self._size


def install(monkeypatch, gpus=1):
    fake = FakeTensorflow(gpus)
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", fake.context)
    from tfmemprof import _source, devices

    monkeypatch.setattr(_source, "_flows", {})
    monkeypatch.setattr(devices, "_told", set())
    return fake
