"""Reverse mode of a sum of tokens over themselves: both directions of every pair in one sweep over the tiles.

Autodiff of T = Q Qᵀ and A U asks for Aᵀ G, a product with a transposed n×n array, on a CPU ten times the cost of A U. Where
queries and keys are the same tokens T is symmetric, and the pairs (i, j) and (j, i) share a tile. With A_ij = a(T_ij, ξ_i, ξ_j),
U_j = w_j (v_j, 1) and G the cotangents of Σ_j A_ij U_j,

    M_ij = ⟨G_i, U_j⟩,   q̄_i = Σ_j (M_ij ∂a_ij + M_ji ∂a_ji) q_j,   Ū_i = Σ_j A_ji G_j,

products in the fast direction only. Nothing is stored: memory is O(n). There is no forward mode: `flow` asks for this rule where
its adjoint has none either.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._products import matmul
from .._types import Array, Float, PyTree
from ..kernels import Term
from .fold import Tiling, add, split
from .pairs import Causal, Sources, Targets

# tokens whose n×n arrays stay in the cache of a core: more are swept in tiles, also where the sum itself is dense
CACHED = 512


class Rule(NamedTuple):
    """How one kind of sum, Σ_j A_ij U_j, is taken apart.

    - `weigh(term, t, ours, theirs, visible, transposed)` (B, C): A_ij of a tile T, rows ours; A_ji where `transposed`.
    - `lift(values, weights)` (n, e): U.
    - `lower(cotangent)` (n, e): G, from the cotangent of the result.
    - `top(result)`: the row maxima of a softmax, held fixed, or None.
    """

    weigh: Callable
    lift: Callable
    lower: Callable
    top: Callable


class Side(eqx.Module):
    """One block of tokens in the backward sweep: as sources, their U and G, and row maxima."""

    tokens: Sources
    u: Float[Array, "n e"]
    g: Float[Array, "n e"]
    top: Float[Array, " n"] | None


def swept(
    plain: Callable, rule: Rule, term: Term, tokens: Sources, visible: Causal | None, tiling: Tiling
) -> PyTree[Array]:
    """`plain(term, targets, sources, visible)` of `tokens` over themselves, differentiated by this module's rule."""
    bare = Term(term.scale, term.zonal, (), term.factors)
    moving, rest = eqx.partition((bare, tokens), eqx.is_inexact_array)
    fixed, static = eqx.partition((rest, visible), eqx.is_array)

    def unpack(moving, fixed):
        rest, visible = eqx.combine(fixed, static)
        return *eqx.combine(moving, rest), visible

    @jax.custom_vjp
    def total(moving, fixed):
        term, tokens, visible = unpack(moving, fixed)
        return plain(term, Targets(tokens.k, tokens.labels), tokens, visible)

    def forward(moving, fixed):
        result = total(moving, fixed)
        return result, (moving, fixed, rule.top(result))

    def backward(kept, cotangent):
        moving, fixed, top = kept
        term, tokens, visible = unpack(moving, fixed)
        return _pull(rule, term, tokens, visible, tiling, rule.lower(cotangent), top), None

    total.defvjp(forward, backward)
    return total(moving, fixed)


def _pull(rule, term, tokens, visible, tiling, g, top):
    """Cotangents of the inexact leaves of (term, tokens)."""
    u, unlift = jax.vjp(rule.lift, tokens.values, tokens.weights)
    parameters, fixed = eqx.partition(term, eqx.is_inexact_array)
    symmetric = not term.factors and visible is None and top is None

    def tile(ours: Side, theirs: Side):
        labels, rest = eqx.partition(ours.tokens.labels, eqx.is_inexact_array)

        def weigh(t, parameters, labels, transposed):
            relabelled = Sources(ours.tokens.k, ours.tokens.values, eqx.combine(labels, rest), ours.tokens.weights)
            mine = Side(relabelled, ours.u, ours.g, ours.top)
            return rule.weigh(eqx.combine(parameters, fixed), t, mine, theirs, visible, transposed)

        t = matmul(ours.tokens.k, theirs.tokens.k.T)
        if symmetric:
            # a_ij = a_ji: one product for M + Mᵀ, which counts every parameter twice
            both = matmul(_beside(ours.g, ours.u), _beside(theirs.u, theirs.g).T)
            a, along = jax.vjp(lambda t, parameters: weigh(t, parameters, labels, False), t, parameters)
            t_bar, twice = along(both)
            half = jax.tree.map(lambda bar: bar / 2, twice)
            return (matmul(t_bar, theirs.tokens.k), matmul(a, theirs.g), jax.tree.map(jnp.zeros_like, labels)), half
        _, along = jax.vjp(lambda *moving: weigh(*moving, False), t, parameters, labels)
        against, back = jax.vjp(lambda t, labels: weigh(t, parameters, labels, True), t, labels)
        t_bar, parameters_bar, labels_bar = along(matmul(ours.g, theirs.u.T))
        t_back, labels_back = back(matmul(ours.u, theirs.g.T))
        rows = matmul(t_bar + t_back, theirs.tokens.k), matmul(against, theirs.g), add(labels_bar, labels_back)
        return rows, parameters_bar

    (k_bar, u_bar, labels_bar), parameters_bar = _sweep(tile, Side(tokens, u, g, top), tiling)
    values_bar, weights_bar = unlift(u_bar)
    moving = eqx.filter(tokens, eqx.is_inexact_array)
    fields = (lambda s: (s.k, s.values, s.labels, s.weights)), (k_bar, values_bar, labels_bar, weights_bar)
    return parameters_bar, eqx.tree_at(fields[0], moving, fields[1], is_leaf=lambda leaf: leaf is None)


def _sweep(tile: Callable, side: Side, tiling: Tiling) -> tuple[PyTree[Array], PyTree[Array]]:
    """Sums of `tile(ours, theirs)` → (per row of ours, in total) over all pairs of blocks."""
    n = side.u.shape[0]
    if tiling.rows is None or tiling.columns is None:
        if n <= CACHED:
            return tile(side, side)
        tiling = Tiling(128, 1024)
    blocks, columns = (_muted(side, min(size, n)) for size in (tiling.rows, tiling.columns))

    def row(ours):
        shapes = jax.eval_shape(tile, ours, jax.tree.map(lambda a: a[0], columns))
        start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        return jax.lax.scan(lambda sums, theirs: (add(sums, tile(ours, theirs)), None), start, columns)[0]

    rows, totals = jax.lax.map(row, blocks)
    rows = jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:n], rows)
    return rows, jax.tree.map(lambda a: a.sum(0), totals)


def _muted(side: Side, size: int) -> Side:
    """Blocks of `size` tokens; those that only fill up neither act nor feel."""
    blocks = split(side, size)
    real = (jnp.arange(blocks.u.shape[0] * size) < side.u.shape[0]).reshape(-1, size)

    def where(a):
        return jnp.where(real if a.ndim == 2 else real[..., None], a, 0)

    silent = (where(blocks.tokens.weights), where(blocks.u), where(blocks.g))
    return eqx.tree_at(lambda s: (s.tokens.weights, s.u, s.g), blocks, silent)


def _beside(a, b):
    return jnp.concatenate([a, b], axis=1)
