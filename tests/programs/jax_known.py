"""Arrays of known sizes, made and dropped by known lines; a jitted function whose needs the compiler has told."""
import json

import jax
import jax.numpy as jnp

SIDE = 512


def make(count):
    kept = []
    for i in range(count):
        kept.append(jnp.zeros((100 + i, 64), jnp.float32))  # line 13
    return kept


@jax.jit
def step(a, b):
    c = a @ b
    d = jnp.tanh(c)
    return (d @ a).sum(), jnp.sort(c, axis=0)


arrays = make(50)
addresses = [array.unsafe_buffer_pointer() for array in arrays]
del arrays[10:20]
x, y = jnp.ones((SIDE, SIDE)), jnp.ones((SIDE, SIDE))
compiled = step.lower(x, y).compile()
needs = compiled.memory_analysis()
jax.block_until_ready((x, y))
results = jax.block_until_ready(compiled(x, y))
print(json.dumps({
    "sizes": [(100 + i) * 64 * 4 for i in range(50)], "addresses": addresses, "dropped": list(range(10, 20)),
    "temp_bytes": needs.temp_size_in_bytes, "outputs": [r.nbytes for r in results], "sum": float(results[0]),
}))
