"""ALiBi with diagonal content under any built-in mask: layer by layer, head by head, O(n) memory each."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._recurrence import geometric_sum, later_sums, row_weights, window_sums


def _pull_head(
    p: Float[Array, " n"], slope: Float[Array, ""], diagonal: Float[Array, ""], reach: int, prefix: int
) -> Float[Array, " n"]:
    """pᵀA of one head: keys up to `reach` behind, and those ahead for the first `prefix` tokens."""
    n = p.shape[0]
    place = jnp.arange(n).astype(p.dtype)
    sums = geometric_sum(slope, jnp.minimum(place, reach))
    if prefix > 1:
        sums = sums + geometric_sum(slope, jnp.maximum(prefix - 1 - place, 0))
    off, on = row_weights(slope, diagonal, sums)
    u = off * p
    out = on * p + window_sums(u, slope, reach)
    if prefix > 1:
        out = out.at[:prefix].add(jnp.flip(later_sums(jnp.flip(u[:prefix]), slope)))
    return out


def pull(
    start: Float[Array, " n"],
    mixing: Float[Array, " T"],
    slopes: Float[Array, " H"],
    diagonal: Float[Array, "t h"],
    weights: Float[Array, " H"],
    reach: int,
    prefix: int,
    every: bool = False,
) -> Float[Array, "*T n"]:
    """As `_wavefront.pull`, for tokens that see `reach` tokens behind and, among the first `prefix`, all of these."""
    diagonal = jnp.broadcast_to(diagonal, (mixing.shape[0], slopes.shape[0]))
    reach, prefix = min(reach, start.shape[0] - 1), min(prefix, start.shape[0])

    @jax.checkpoint
    def layer(p: Array, x: tuple) -> tuple[Array, Array | None]:
        mix, diag = x

        def head(total: Array, y: tuple) -> tuple[Array, None]:
            slope, d, weight = y
            return total + weight * _pull_head(p, slope, d, reach, prefix), None

        out, _ = jax.lax.scan(head, jnp.zeros_like(p), (slopes, diag, weights))
        p = (1 - mix) * p + mix * out
        return p, (p if every else None)

    last, states = jax.lax.scan(layer, start, (mixing, diagonal), reverse=True)
    return states[::-1] if every else last
