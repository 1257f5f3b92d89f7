"""Geometric sums and first-order linear recurrences, stable for every rate ≥ 0 and smooth at 0."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._products import matmul

_SERIES = 0.5  # below, (1 − e^{−x})/x by its Taylor series: its derivative loses digits otherwise
_TERMS = 16


def _decay_ratio(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """(1 − e^{−x})/x for x ≥ 0, with accurate derivatives down to x = 0."""
    small = x < _SERIES
    near = jnp.where(small, x, 0)
    series = jnp.zeros_like(x)
    for k in reversed(range(_TERMS)):
        series = 1 / math.factorial(k + 1) - near * series
    far = jnp.where(small, 1, x)
    return jnp.where(small, series, -jnp.expm1(-far) / far)


def geometric_sum(rate: Float[Array, "..."], terms: Float[Array, "..."]) -> Float[Array, "..."]:
    """Σ_{k=0}^{terms−1} e^{−rate k} for rate ≥ 0 and a whole number of terms ≥ 0."""
    return terms * _decay_ratio(rate * terms) / _decay_ratio(rate)


def row_weights(
    slope: Float[Array, "..."], diagonal: Float[Array, "..."], sums: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Softmax of a row with logits `diagonal` on itself and −slope k at distance k: (nearest neighbour's weight, its own).

    sums = Σ e^{−slope (k−1)} over the others, 0 for a row that sees itself only. Neither weight over- or underflows both at once: the
    larger of the two logits is taken out.
    """
    top = jax.lax.stop_gradient(jnp.maximum(diagonal, -slope))
    off, on = jnp.exp(-slope - top), jnp.exp(diagonal - top)
    alone = sums == 0
    total = jnp.where(alone, 1, on + off * sums)
    return off / total, jnp.where(alone, 1, on / total)


def suffix_sums(u: Float[Array, "*batch n"], rate: Float[Array, ""], block: int = 32) -> Float[Array, "*batch n"]:
    """s_j = Σ_{i≥j} e^{−rate (i−j)} u_i, in blocks: products with one block × block triangle, the carries by recursion."""
    n = u.shape[-1]
    if n <= block:
        block = n
    blocks = -(-n // block)
    tail = [(0, 0)] * (u.ndim - 1) + [(0, blocks * block - n)]
    u = jnp.pad(u, tail).reshape(*u.shape[:-1], blocks, block)
    k = jnp.arange(block)
    steps = (k[:, None] - k[None, :]).astype(u.dtype)
    triangle = jnp.where(steps >= 0, jnp.exp(-rate * jnp.maximum(steps, 0)), 0)
    s = matmul(u, triangle)
    if blocks > 1:
        carry = suffix_sums(s[..., 0], rate * block, block)
        carry = jnp.concatenate([carry[..., 1:], jnp.zeros_like(carry[..., :1])], axis=-1)
        s = s + carry[..., None] * jnp.exp(-rate * (block - k).astype(u.dtype))
    return s.reshape(*s.shape[:-2], blocks * block)[..., :n]


def later_sums(u: Float[Array, "*batch n"], rate: Float[Array, ""]) -> Float[Array, "*batch n"]:
    """s_j = Σ_{i>j} e^{−rate (i−j−1)} u_i."""
    s = suffix_sums(u, rate)
    return jnp.concatenate([s[..., 1:], jnp.zeros_like(s[..., :1])], axis=-1)


def window_sums(u: Float[Array, " n"], rate: Float[Array, ""], reach: int) -> Float[Array, " n"]:
    """s_j = Σ_{i=j+1}^{j+reach} e^{−rate (i−j−1)} u_i, by sums of positive terms only (no difference of long sums).

    Blocks of `reach` positions: the window of place k is the rest of its own block and the first k + 1 places of the next one.
    """
    n = u.shape[-1]
    if reach == 0:
        return jnp.zeros_like(u)
    if reach >= n - 1:
        return later_sums(u, rate)
    blocks = -(-n // reach)
    u = jnp.pad(u, (0, blocks * reach - n)).reshape(blocks, reach)
    k = jnp.arange(reach).astype(u.dtype)
    following = jnp.concatenate([u[1:], jnp.zeros_like(u[:1])])
    first = jnp.flip(suffix_sums(jnp.flip(following * jnp.exp(-rate * k), -1), jnp.zeros_like(rate)), -1)
    s = later_sums(u, rate) + jnp.exp(-rate * (reach - 1 - k)) * first
    return s.reshape(-1)[:n]
