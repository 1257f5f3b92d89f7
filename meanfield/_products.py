"""Matrix products in the precision of their operands: accelerators round float32 operands of plain products to fewer bits."""

import functools

import jax
import jax.numpy as jnp

matmul = functools.partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)
einsum = functools.partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
