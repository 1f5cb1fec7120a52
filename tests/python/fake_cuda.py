"""The part of torch.cuda that is asked about memory, with counters of our own making: no GPU is needed."""

import types

NAMES = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes", "allocation")


class FakeCuda:
    """Devices of which the allocator's counters behave as PyTorch's; what would bring CUDA up fails the test."""

    def __init__(self, count=2, initialized=True, current=0, contexts=()):
        self.initialized, self.current, self.contexts = initialized, current, set(contexts)
        fields = ("current", "peak", "allocated", "freed")
        self.devices = [{name: dict.fromkeys(fields, 0) for name in NAMES} for _ in range(count)]

    # What the program does.
    def change(self, device, size_bytes):
        for name, stat in self.devices[device].items():
            by = size_bytes if name != "allocation" else (1 if size_bytes > 0 else -1)
            stat["current"] += by
            stat["peak"] = max(stat["peak"], stat["current"])
            stat["allocated" if by > 0 else "freed"] += abs(by)

    def reset_peaks(self, device):
        for stat in self.devices[device].values():
            stat["peak"] = stat["current"]

    def reset_sums(self, device):
        for stat in self.devices[device].values():
            stat["allocated"] = stat["freed"] = 0

    # What gpumemprof asks.
    def is_available(self):
        return True

    def is_initialized(self):
        return self.initialized

    def device_count(self):
        return len(self.devices)

    def current_device(self):
        assert self.initialized, "this brings CUDA up"
        return self.current

    def memory_reserved(self, device):
        return self.devices[device]["reserved_bytes"]["current"]

    def memory_stats_as_nested_dict(self, device):
        assert device >= 0
        pools = ("all", "small_pool", "large_pool")  # of which ours are the same
        stats = self.devices[device].items()
        return {name: {pool: dict(s) for pool in pools} for name, s in stats} if self.initialized else {}

    def memory_stats(self, device):
        nested = self.memory_stats_as_nested_dict(device)
        return {f"{name}.all.{key}": value for name, s in nested.items() for key, value in s["all"].items()}

    def mem_get_info(self, device):
        assert self.initialized
        self.contexts.add(device)
        return 600, 1000


def torch_of(cuda, asks_for_contexts=True):
    """A module torch around it."""
    torch = types.ModuleType("torch")
    torch.cuda, torch.version = cuda, types.SimpleNamespace(hip=None, cuda="12")
    torch._C = types.SimpleNamespace()
    if asks_for_contexts:
        torch._C._cuda_hasPrimaryContext = lambda device: device in cuda.contexts
    torch.device = str
    return torch
