"""CPU, shared and profiled memory in one program, each tensor with a size of its own."""
import torch

plain = torch.empty(1_000_001, dtype=torch.uint8)
shared = torch.empty(1_000_003, dtype=torch.uint8).share_memory_()
by_storage = torch.UntypedStorage._new_shared(1_000_005)
with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]):
    profiled = torch.empty(1_000_007, dtype=torch.uint8)
    shared_and_profiled = torch.empty(1_000_009, dtype=torch.uint8).share_memory_()
    del profiled
with torch.autograd.profiler.profile(profile_memory=True):
    old_style = torch.empty(1_000_011, dtype=torch.uint8)
del shared, by_storage
resized = torch.empty(0, dtype=torch.uint8)
resized.resize_(1_000_013)
cloned = plain[:1_000_000].clone().resize_(1_000_015)
numpy = torch.from_numpy(torch.empty(1_000_017, dtype=torch.uint8).numpy())
try:
    torch.empty(1 << 50, dtype=torch.uint8)  # refused: an error in the program, and no event of this size is live
except RuntimeError as error:
    print(type(error).__name__)
