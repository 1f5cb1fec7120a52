"""The steps themselves: a context, the first products of matrices, the first convolution, as a training loop has them."""

from __future__ import annotations

from typing import Any

_SIZE = 1024  # of the matrices: small, for the libraries' memory is what is wanted


class TorchSteps:
    def __init__(self, torch: Any, index: int) -> None:
        self._torch, self._device = torch, torch.device("cuda", index)
        self.product_workspace_bytes = 0
        self.convolution: dict[str, int] = {}

    def held_bytes(self) -> int:
        self._torch.cuda.synchronize(self._device)
        return int(self._torch.cuda.memory_reserved(self._device))

    def context(self) -> None:
        """With one kernel of PyTorch's own, whose code is loaded at the first launch."""
        torch = self._torch
        torch.zeros(1, device=self._device).add_(1)
        torch.cuda.empty_cache()

    def products(self) -> None:
        """cuBLAS has a workspace a handle from PyTorch's allocator; the backward pass has a handle of its own."""
        torch = self._torch
        left = torch.ones(_SIZE, _SIZE, device=self._device, requires_grad=True)
        before = torch.cuda.memory_allocated(self._device)
        out = left @ left.detach()
        own = out.untyped_storage().nbytes()
        self.product_workspace_bytes = max(0, int(torch.cuda.memory_allocated(self._device)) - before - own)
        out.sum().backward()
        for dtype in (torch.bfloat16, torch.float16):
            low = torch.ones(_SIZE, _SIZE, device=self._device, dtype=dtype)
            low @ low

    def convolutions(self) -> None:
        torch = self._torch
        data = torch.ones(8, 64, 56, 56, device=self._device)
        weight = torch.ones(64, 64, 3, 3, device=self._device)
        convolve = torch.ops.aten.convolution
        arguments = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        out = convolve(data, weight, None, *arguments)
        self._workspace("forward", lambda: convolve(data, weight, None, *arguments))
        undo = torch.ops.aten.convolution_backward
        for part, mask in (("input_gradient", [True, False, False]), ("weight_gradient", [False, True, False])):
            self._workspace(part, lambda mask=mask: undo(out, data, weight, None, *arguments, mask))
        self.convolution["input_bytes"] = data.nbytes
        self.convolution["output_bytes"] = out.nbytes

    def _workspace(self, part: str, call: Any) -> None:
        """What the call's peak has beside its results."""
        cuda = self._torch.cuda
        cuda.synchronize(self._device)
        before = cuda.memory_allocated(self._device)
        cuda.reset_peak_memory_stats(self._device)
        results = call()
        peak = cuda.max_memory_allocated(self._device)
        tensors = results if isinstance(results, (list, tuple)) else [results]
        own = sum(one.untyped_storage().nbytes() for one in tensors if one is not None)
        self.convolution[f"{part}_workspace_bytes"] = max(0, int(peak) - int(before) - own)
