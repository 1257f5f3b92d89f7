"""ALiBi with diagonal content under any built-in mask: layer by layer, head by head, O(n) memory each."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._recurrence import geometric_sum, strict_suffix_sums, window_sums


def _pull_head(
    p: Float[Array, " n"], slope: Float[Array, ""], diagonal: Float[Array, ""], reach: int, prefix: int
) -> Float[Array, " n"]:
    """pᵀA of one head: keys up to `reach` behind, and those ahead for the first `prefix` tokens."""
    n = p.shape[0]
    place = jnp.arange(n).astype(p.dtype)
    sums = geometric_sum(slope, jnp.minimum(place, reach))
    if prefix > 1:
        sums = sums + geometric_sum(slope, jnp.maximum(prefix - 1 - place, 0))
    top = jax.lax.stop_gradient(jnp.maximum(diagonal, 0))
    off, on = jnp.exp(-top), jnp.exp(diagonal - top)
    u = p / (on + off * sums)
    out = on * u + off * window_sums(u, slope, reach)
    if prefix > 1:
        ahead = jnp.flip(strict_suffix_sums(jnp.flip(u[:prefix]), slope))
        out = out.at[:prefix].add(off * ahead)
    return out


def own_attention(
    slope: Float[Array, "..."], diagonal: Float[Array, "..."], behind: Float[Array, "..."]
) -> Float[Array, "..."]:
    """A_ii of a token with `behind` keys behind it: e^d / (e^d + Σ_{k=1}^{behind} e^{−slope k})."""
    top = jax.lax.stop_gradient(jnp.maximum(diagonal, 0))
    on = jnp.exp(diagonal - top)
    return on / (on + jnp.exp(-top) * geometric_sum(slope, behind))


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
