"""Memory outside the allocator during collectives, such as NCCL's buffers."""

from ._analysis.collectives import CollectiveAttributionConfig as CollectiveAttributionConfig
from ._analysis.collectives import CollectiveAttributionEvidence as CollectiveAttributionEvidence
from ._analysis.collectives import CollectiveAttributionResult as CollectiveAttributionResult
from ._analysis.collectives import attribute_collective_memory as attribute_collective_memory
from ._analysis.collectives import resolve_collective_attribution_config as resolve_collective_attribution_config
