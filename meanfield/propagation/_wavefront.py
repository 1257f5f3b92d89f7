"""Causal ALiBi with diagonal content: pᵀR^(T)…R^(1) without a matrix, all layers of one chunk of positions before the next.

Row i of head h is A_ij = e^{−m_h (i−j−1)} v_i for j < i, so pᵀA is the recurrence c_j = e^{−m_h} c_{j+1} + v_{j+1} p_{j+1}.
What layer t needs at position j it finds at positions ≥ j of the layer before: chunks run from the last to the first, and carry one number
per layer and head. A chunk is a grid of SUB rows of BLOCK positions; rows are handled at once and joined by a SUB × SUB triangle.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._products import einsum, matmul
from ._recurrence import geometric_sum, row_weights

SUB, BLOCK = 16, 32


class Heads(eqx.Module):
    """Per-head constants of the recurrence: powers of q_h = e^{−m_h} over the places of a chunk."""

    within: Float[Array, "H b b"]  # weights_h q^{k−j−1}, k > j
    start: Float[Array, "H b"]  # q^k: from place k to the start of its row
    end: Float[Array, "H b"]  # weights_h q^{b−1−k}: from the start of the next row to place k
    rows: Float[Array, "H s s"]  # [c, c'] q^{b (c'−c−1)}, c' > c: between rows
    after: Float[Array, "H s"]  # q^{b (s−1−c)}: from the next chunk to the start of row c + 1

    def __init__(self, slopes: Float[Array, " H"], weights: Float[Array, " H"], sub: int, block: int):
        k, c = jnp.arange(block), jnp.arange(sub)

        def power(steps: Array) -> Array:
            rate = slopes.reshape((-1,) + (1,) * steps.ndim)
            return jnp.where(steps >= 0, jnp.exp(-rate * jnp.maximum(steps, 0).astype(slopes.dtype)), 0)

        ahead = k[:, None] - k[None, :]
        self.within = weights[:, None, None] * power(ahead - 1)
        self.start = power(k)
        self.end = weights[:, None] * power(block - 1 - k)
        self.rows = power(block * (c[None, :] - c[:, None] - 1))
        self.after = power(block * (sub - 1 - c))


def _apart(heads: Heads, v: Array, on: Array) -> Callable[[Array], tuple[Array, Array]]:
    """p ↦ (diagonal and within-row part, per-head row totals) for one layer's v: one product with the stacked heads."""
    stacked = heads.within.reshape(-1, heads.within.shape[-1])

    def apply(p: Array) -> tuple[Array, Array]:
        u = v * p[:, None]
        return on * p + matmul(u.reshape(u.shape[0], -1), stacked), jnp.sum(u * heads.start, -1)

    return apply


def _summed(heads: Heads, v: Array, on: Array) -> Callable[[Array], tuple[Array, Array]]:
    """The same map where every layer shares v: the heads of the within-row part are summed once."""
    block = heads.within.shape[-1]
    matrix = einsum("chk,hkj->ckj", v, heads.within)
    both = jnp.concatenate([matrix, jnp.swapaxes(v * heads.start, 1, 2)], axis=-1)

    def apply(p: Array) -> tuple[Array, Array]:
        out = einsum("ck,ckj->cj", p, both)
        return on * p + out[:, :block], out[:, block:]

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

        def operator(diag: Array) -> Callable[[Array], tuple[Array, Array]]:
            v, own = row_weights(slopes[:, None], diag[:, None], sums)
            return (_summed if shared else _apart)(heads, v, jnp.sum(weights[:, None] * own, axis=1))

        once = operator(diagonal[0]) if shared else None

        def layer(p: Array, x: tuple) -> tuple[Array, tuple]:
            carry, mix, diag = x
            inside, totals = (operator(diag) if once is None else once)(p)
            entering = einsum("hcd,dh->ch", heads.rows, totals) + heads.after.T * carry
            p = (1 - mix) * p + mix * (inside + matmul(entering, heads.end))
            return p, (totals[0] + across * entering[0], p if every else None)

        diagonals = None if shared else diagonal
        p, (carries, states) = jax.lax.scan(layer, p, (carries, mixing, diagonals), reverse=True, unroll=2)
        return carries, (states[::-1] if every else p[None])

    padded = jnp.pad(start, (0, chunks * size - n)).reshape(chunks, sub, block)
    body = jax.checkpoint(chunk) if chunks > 1 else chunk
    _, states = jax.lax.scan(body, jnp.zeros((depth, num), start.dtype), (jnp.arange(chunks), padded), reverse=True)
    states = jnp.moveaxis(states, 0, 1).reshape(states.shape[1], -1)[:, :n]
    return states if every else states[0]
