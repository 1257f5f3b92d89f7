"""Causal ALiBi with diagonal content: pᵀR^(T)…R^(1) without a matrix, all layers of one chunk of positions before the next.

Row i of head h is A_ij = e^{−m_h (i−j)} v_i for j < i and A_ii = e^{d} v_i, so pᵀA is the recurrence c_j = e^{−m_h}(c_{j+1} + v_{j+1} p_{j+1}).
What layer t needs at position j it finds at positions ≥ j of the layer before: chunks run from the last to the first, and carry one number
per layer and head. A chunk is a grid of SUB rows of BLOCK positions; rows are handled at once and joined by a SUB × SUB triangle.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._recurrence import geometric_sum

SUB, BLOCK = 16, 16


class Heads(eqx.Module):
    """Per-head constants of the recurrence: powers of q_h = e^{−m_h} over the places of a chunk."""

    slopes: Float[Array, " H"]
    weights: Float[Array, " H"]
    within: Float[Array, "H b b"]  # weights_h q^{k−j}, k > j
    start: Float[Array, "H b"]  # q^k: from place k to the start of its row
    end: Float[Array, "H b"]  # weights_h q^{b−k}: from the start of the next row to place k
    rows: Float[Array, "H s s"]  # [c, c'] q^{b (c'−c−1)}, c' > c: between rows
    after: Float[Array, "H s"]  # q^{b (s−1−c)}: from the next chunk to the start of row c + 1

    def __init__(self, slopes: Float[Array, " H"], weights: Float[Array, " H"], sub: int, block: int):
        k, c = jnp.arange(block), jnp.arange(sub)

        def power(steps: Array) -> Array:
            rate = slopes.reshape((-1,) + (1,) * steps.ndim)
            return jnp.where(steps >= 0, jnp.exp(-rate * jnp.maximum(steps, 0).astype(slopes.dtype)), 0)

        ahead = k[:, None] - k[None, :]
        self.slopes, self.weights = slopes, weights
        self.within = weights[:, None, None] * power(jnp.where(ahead > 0, ahead, -1))
        self.start = power(k)
        self.end = weights[:, None] * power(block - k)
        self.rows = power(block * (c[None, :] - c[:, None] - 1))
        self.after = power(block * (sub - 1 - c))


def row_weights(
    heads: Heads, sums: Float[Array, "s H b"], diagonal: Float[Array, " h"]
) -> tuple[Float[Array, "s H b"], Float[Array, "s b"]]:
    """v (what row i gives off its diagonal, per head) and Σ_h w_h A_ii."""
    top = jax.lax.stop_gradient(jnp.maximum(diagonal, 0))
    off, on = jnp.exp(-top)[:, None], jnp.exp(diagonal - top)[:, None]
    inverse = 1 / (on + off * sums)
    return off * inverse, jnp.sum(heads.weights[:, None] * on * inverse, axis=1)


def _local_shared(heads: Heads, v: Array):
    """The map p ↦ (Σ_h w_h within-row part, per-head row totals) when every layer shares v: heads are summed once."""
    matrix = jnp.einsum("chk,hkj->ckj", v, heads.within)
    totals = v * heads.start
    return lambda p: (jnp.einsum("ck,ckj->cj", p, matrix), jnp.einsum("chk,ck->ch", totals, p))


def _local(heads: Heads, v: Array):
    """The same map for one layer's v: one product with the stacked heads."""
    stacked = heads.within.reshape(-1, heads.within.shape[-1])

    def apply(p: Array) -> tuple[Array, Array]:
        u = v * p[:, None]
        return u.reshape(u.shape[0], -1) @ stacked, jnp.sum(u * heads.start, -1)

    return apply


def pull(
    start: Float[Array, " n"],
    mixing: Float[Array, " T"],
    slopes: Float[Array, " H"],
    diagonal: Float[Array, "t h"],
    weights: Float[Array, " H"],
    every: bool = False,
) -> Float[Array, "*T n"]:
    """startᵀR^(T)…R^(1), (n,), mixing[0] belonging to R^(1); every=True: (T, n), startᵀR^(T), startᵀR^(T)R^(T−1), … on the way."""
    n, depth, num = start.shape[0], mixing.shape[0], slopes.shape[0]
    block = min(BLOCK, n)
    sub = min(SUB, -(-n // block))
    size = sub * block
    chunks = -(-n // size)
    heads = Heads(slopes, weights, sub, block)
    across = jnp.exp(-slopes * block)
    diagonal = jnp.broadcast_to(diagonal, (diagonal.shape[0], num))
    shared = diagonal.shape[0] == 1

    def chunk(carries: Array, x: tuple) -> tuple[Array, Array]:
        index, p = x
        places = (index * size + jnp.arange(size)).astype(p.dtype).reshape(sub, 1, block)
        sums = geometric_sum(slopes[:, None], places)
        if shared:
            v, own = row_weights(heads, sums, diagonal[0])
            local = _local_shared(heads, v)

        def layer(p: Array, x: tuple) -> tuple[Array, tuple]:
            carry, mix, diag = x
            if shared:
                on, (inside, totals) = own, local(p)
            else:
                v, on = row_weights(heads, sums, diag)
                inside, totals = _local(heads, v)(p)
            entering = jnp.einsum("hcd,dh->ch", heads.rows, totals) + heads.after.T * carry
            out = on * p + inside + entering @ heads.end
            p = (1 - mix) * p + mix * out
            return p, (totals[0] + across * entering[0], p if every else None)

        diagonals = None if shared else diagonal
        p, (carries, states) = jax.lax.scan(layer, p, (carries, mixing, diagonals), reverse=True)
        return carries, (states[::-1] if every else p[None])

    padded = jnp.pad(start, (0, chunks * size - n)).reshape(chunks, sub, block)
    body = jax.checkpoint(chunk) if chunks > 1 else chunk
    _, states = jax.lax.scan(body, jnp.zeros((depth, num), start.dtype), (jnp.arange(chunks), padded), reverse=True)
    states = jnp.moveaxis(states, 0, 1).reshape(states.shape[1], -1)[:, :n]
    return states if every else states[0]
