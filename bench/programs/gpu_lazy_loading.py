"""The memory that a GPU has in use after each of PyTorch's first calls: CUDA loads the code of a library's kernels when the
first of them runs. CUDA_MODULE_LOADING=EAGER shows what it would be with all of it. Alone on the GPU."""

import pynvml
import torch
from torch import nn

MIB = 1 << 20


class Steps:
    def __init__(self):
        pynvml.nvmlInit()
        self._device = pynvml.nvmlDeviceGetHandleByIndex(0)
        self._last = 0

    def __call__(self, what):
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        used = pynvml.nvmlDeviceGetMemoryInfo(self._device).used / MIB
        reserved = torch.cuda.memory_reserved() / MIB if torch.cuda.is_initialized() else 0
        print(f"{what:20} used {used:8.1f} MiB ({used - self._last:+.1f}), reserved by PyTorch {reserved:.1f}", flush=True)
        self._last = used


def main():
    step = Steps()
    step("before")
    torch.cuda.init()
    torch.cuda.current_stream()
    step("context")
    x = torch.empty(MIB, device="cuda")
    step("first tensor")
    x.fill_(1)
    step("first kernel")
    layer = nn.Linear(2048, 2048).cuda()
    loss = layer(torch.randn(256, 2048, device="cuda")).square().mean()
    step("first product")
    loss.backward()
    step("backward")
    torch.optim.Adam(layer.parameters()).step()
    step("Adam")
    nn.functional.conv2d(torch.randn(8, 64, 32, 32, device="cuda"), torch.randn(64, 64, 3, 3, device="cuda"))
    step("convolution")


main()
