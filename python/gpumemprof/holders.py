"""Which objects keep tensors alive in this process."""

from ._recorded.holders.ask import why_alive as why_alive
