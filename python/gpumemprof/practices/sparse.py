"""Matrices that are mostly zero."""

from __future__ import annotations

from typing import Any

from .._core.torch import require_torch

torch: Any = require_torch("sparse matrices")


class SparseEmbedding(torch.nn.Module):  # type: ignore[misc]
    """An embedding whose gradient has only the rows that were looked up.

    Only optimizers for sparse gradients can train it: SGD, Adagrad and SparseAdam, which `optimizer()` creates.
    """

    def __init__(self, vocab_size: int, embed_dim: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, embed_dim, sparse=True)

    def forward(self, indices: Any) -> Any:
        return self.embedding(indices)

    def optimizer(self, lr: float = 1e-3) -> Any:
        """SparseAdam for this table; Adam would reject its gradients."""
        return torch.optim.SparseAdam(list(self.parameters()), lr=lr)


def sparse_matrix_operations(indices: Any, values: Any, shape: tuple[int, int], vector: Any) -> Any:
    """The product of a matrix, given by its entries, and a vector.

    Entries at the same position are added first (`coalesce`). The matrix is never dense.
    """
    matrix = torch.sparse_coo_tensor(indices, values, shape, check_invariants=True).coalesce()
    column = vector if vector.dim() == 2 else vector.unsqueeze(1)
    product = torch.sparse.mm(matrix, column)
    return product if vector.dim() == 2 else product.squeeze(1)
