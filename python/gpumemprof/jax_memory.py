"""The memory of a compiled JAX function, as XLA reports it: `gpumemprof.jax_memory_analysis(compiled)`."""

from ._analysis.jax import CompiledMemory as CompiledMemory
from ._analysis.jax import jax_memory_analysis as jax_memory_analysis
