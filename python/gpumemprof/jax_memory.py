"""What XLA says that a compiled function of JAX needs: `gpumemprof.jax_memory_analysis(compiled)`."""

from ._analysis.jax import CompiledMemory as CompiledMemory
from ._analysis.jax import jax_memory_analysis as jax_memory_analysis
