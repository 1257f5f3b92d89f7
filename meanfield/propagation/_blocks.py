"""Any mask, bias and content: pᵀA with rows of A built in blocks, so that memory stays O(H · block · n)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._products import matmul
from .architecture import Architecture
from .attention import attention_rows

_ENTRIES = 1 << 20  # of one block of logits, over all heads
_DENSE = 1 << 22  # entries of a head-averaged matrix worth keeping when every layer shares it


def pull(arch: Architecture, start: Float[Array, " n"], every: bool = False) -> Float[Array, "*T n"]:
    """As `_wavefront.pull`, for every architecture."""
    n = start.shape[0]
    shared = arch.content.depth is None
    if shared and n * n <= _DENSE:
        matrix = _rows(arch, jnp.asarray(0), n)
    else:
        matrix = None

    @jax.checkpoint
    def layer(p: Array, x: tuple) -> tuple[Array, Array | None]:
        t, mix = x
        p = (1 - mix) * p + mix * (_row_product(arch, p, t) if matrix is None else matmul(p, matrix))
        return p, (p if every else None)

    last, states = jax.lax.scan(layer, start, (jnp.arange(arch.depth), arch.mixing), reverse=True)
    return states[::-1] if every else last


def _blocks(arch: Architecture, n: int) -> tuple[int, Array]:
    """Rows per block, and the first row of each block; the last block repeats rows rather than running over the end."""
    size = max(1, min(n, _ENTRIES // (n * arch.num_heads)))
    return size, jnp.minimum(jnp.arange(-(-n // size)) * size, n - size)


def _rows(arch: Architecture, layer: Array, n: int) -> Float[Array, "n n"]:
    size, firsts = _blocks(arch, n)

    def block(matrix: Array, first: Array) -> tuple[Array, None]:
        rows = attention_rows(arch, layer, first + jnp.arange(size), n)
        return jax.lax.dynamic_update_slice(matrix, rows, (first, jnp.zeros_like(first))), None

    return jax.lax.scan(block, jnp.zeros((n, n), arch.mixing.dtype), firsts)[0]


def _row_product(arch: Architecture, p: Float[Array, " n"], layer: Array) -> Float[Array, " n"]:
    n = p.shape[0]
    size, firsts = _blocks(arch, n)

    @jax.checkpoint
    def block(total: Array, x: tuple) -> tuple[Array, None]:
        k, first = x
        rows = first + jnp.arange(size)
        mass = jnp.where(rows >= k * size, p[rows], 0)  # a repeated row counts once
        return total + matmul(mass, attention_rows(arch, layer, rows, n)), None

    return jax.lax.scan(block, jnp.zeros_like(p), (jnp.arange(firsts.shape[0]), firsts))[0]
