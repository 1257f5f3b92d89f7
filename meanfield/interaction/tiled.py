"""Structured sums by matrix products: one tile (dense) or many (blocked)."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._products import matmul
from .._types import Array, Float
from ..kernels import Term, log_slope, slope
from .fold import Tiling, fold
from .method import AbstractMethod, Average, empty, merge
from .pairs import Causal, Sources, Targets, factors, hide, over_pairs
from .reverse import Rule, Side, swept


class Tiled(AbstractMethod):
    """T = Q Kᵀ, φ'(T) ∘ g, times values: per tile two matrix products around one elementwise function.

    `reverse` differentiates sums of tokens over themselves by the rule of reverse.py, which has no forward mode.
    """

    tiling: Tiling
    reverse: bool = eqx.field(static=True, default=False)

    def force(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Float[Array, "n d"]:
        """Σ_j w_j g_ij φ'(⟨q_i, k_j⟩) v_j over visible j."""

        def plain(term, targets, sources, visible):
            def tile(t: Targets, s: Sources):
                return matmul(_slopes(term, _products(t, s), t, s, visible), s.weights[:, None] * s.values)

            return fold(tile, targets, sources, _mute, self.tiling)

        return self._sum(plain, FORCE, term, targets, sources, visible)

    def average(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Average:
        """Σ_j a_ij v_j and Σ_j a_ij, a_ij = w_j g_ij φ'(⟨q_i, k_j⟩), scaled row by row so that nothing overflows."""

        def plain(term, targets, sources, visible):
            def tile(t: Targets, s: Sources) -> Average:
                logits = _logits(term, _products(t, s), t, s, visible)
                logits = jnp.where(s.weights[None, :] > 0, logits, -jnp.inf)
                top = jax.lax.stop_gradient(jnp.max(logits, axis=1))
                a = jnp.exp(logits - jnp.where(top == -jnp.inf, 0, top)[:, None])
                return Average(top, matmul(a, s.weights[:, None] * s.values), a @ s.weights)

            return fold(tile, targets, sources, _mute, self.tiling, merge, empty)

        return self._sum(plain, AVERAGE, term, targets, sources, visible)

    def _sum(self, plain, rule: Rule, term, targets, sources, visible):
        themselves = sources.k is targets.q and sources.labels is targets.labels
        if self.reverse and themselves and self.tiling.mesh is None:
            return swept(plain, rule, term, sources, visible, self.tiling)
        return plain(term, targets, sources, visible)

    def potential(self, term: Term, targets: Targets, sources: Sources) -> Float[Array, " n"]:
        """Σ_j w_j g_ij φ(⟨q_i, k_j⟩)."""

        def tile(t: Targets, s: Sources):
            a = term.zonal.phi(_products(t, s))
            g = factors(term, t, s)
            return (a if g is None else a * g) @ s.weights

        return fold(tile, targets, sources, _mute, self.tiling)


def _slopes(term, t, targets, sources, visible, transposed=False):
    """φ'(T) ∘ g, zero where a source is hidden; (targets, sources), or the other way round where `transposed`."""
    a, g = slope(term.zonal, t), factors(term, targets, sources, transposed)
    return hide(a if g is None else a * g, visible, targets, sources, 0.0, transposed)


def _logits(term, t, targets, sources, visible, transposed=False):
    """log φ'(T) + log g, −∞ where a source is hidden; laid out as `_slopes`."""
    logits = log_slope(term.zonal, t)
    if term.factors:
        dtype = targets.q.dtype
        factor = over_pairs(
            lambda xi, zeta: term.log_factor(xi, zeta, dtype), targets.labels, sources.labels, transposed
        )
        logits = logits + factor
    return hide(logits, visible, targets, sources, -jnp.inf, transposed)


def _slopes_between(term, t, ours: Side, theirs: Side, visible, transposed):
    to, by = (theirs, ours) if transposed else (ours, theirs)
    return _slopes(term, t, Targets(to.tokens.k, to.tokens.labels), by.tokens, visible, transposed)


def _softmax_between(term, t, ours: Side, theirs: Side, visible, transposed):
    to, by = (theirs, ours) if transposed else (ours, theirs)
    logits = _logits(term, t, Targets(to.tokens.k, to.tokens.labels), by.tokens, visible, transposed)
    top, weights = (to.top[None, :], by.tokens.weights[:, None]) if transposed else (to.top[:, None], by.tokens.weights)
    seen = (logits > -jnp.inf) & (weights > 0)
    return jnp.where(seen, jnp.exp(jnp.where(seen, logits - top, 0)), 0)


def _with_total(values, weights):
    return weights[:, None] * jnp.concatenate([values, jnp.ones_like(values[:, :1])], axis=1)


FORCE = Rule(_slopes_between, lambda values, weights: weights[:, None] * values, lambda g: g, lambda result: None)
AVERAGE = Rule(
    _softmax_between,
    _with_total,
    lambda g: jnp.concatenate([g.numerator, g.denominator[:, None]], axis=1),
    lambda result: result.top,
)


def _products(t: Targets, s: Sources) -> Float[Array, "B C"]:
    return matmul(t.q, s.k.T)


def _mute(sources: Sources, real: Array) -> Sources:
    return eqx.tree_at(lambda s: s.weights, sources, jnp.where(real, sources.weights, 0))
