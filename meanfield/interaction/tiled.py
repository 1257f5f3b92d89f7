"""Structured sums by matrix products: one tile (dense) or many (blocked)."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float
from ..kernels import Term, log_slope, slope
from .fold import Tiling, fold
from .method import AbstractMethod, Average, empty, merge
from .pairs import Causal, Sources, Targets, factors, hide, over_pairs


class Tiled(AbstractMethod):
    """T = Q Kᵀ, φ'(T) ∘ g, times values: per tile two matrix products around one elementwise function."""

    tiling: Tiling

    def force(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Float[Array, "n d"]:
        """Σ_j w_j g_ij φ'(⟨q_i, k_j⟩) v_j over visible j."""

        def tile(t: Targets, s: Sources):
            a = slope(term.zonal, _products(t, s))
            g = factors(term, t, s)
            a = hide(a if g is None else a * g, visible, t, s, 0.0)
            return _matmul(a, s.weights[:, None] * s.values)

        return fold(tile, targets, sources, _mute, self.tiling)

    def average(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Average:
        """Σ_j a_ij v_j and Σ_j a_ij, a_ij = w_j g_ij φ'(⟨q_i, k_j⟩), scaled row by row so that nothing overflows."""

        def tile(t: Targets, s: Sources) -> Average:
            logits = log_slope(term.zonal, _products(t, s))
            if term.factors:
                dtype = t.q.dtype
                logits = logits + over_pairs(lambda xi, zeta: term.log_factor(xi, zeta, dtype), t.labels, s.labels)
            logits = hide(logits, visible, t, s, -jnp.inf)
            logits = jnp.where(s.weights[None, :] > 0, logits, -jnp.inf)
            top = jax.lax.stop_gradient(jnp.max(logits, axis=1))
            a = jnp.exp(logits - jnp.where(top == -jnp.inf, 0, top)[:, None])
            return Average(top, _matmul(a, s.weights[:, None] * s.values), a @ s.weights)

        return fold(tile, targets, sources, _mute, self.tiling, merge, empty)

    def potential(self, term: Term, targets: Targets, sources: Sources) -> Float[Array, " n"]:
        """Σ_j w_j g_ij φ(⟨q_i, k_j⟩)."""

        def tile(t: Targets, s: Sources):
            a = term.zonal.phi(_products(t, s))
            g = factors(term, t, s)
            return (a if g is None else a * g) @ s.weights

        return fold(tile, targets, sources, _mute, self.tiling)


def _products(t: Targets, s: Sources) -> Float[Array, "B C"]:
    return _matmul(t.q, s.k.T)


def _matmul(a, b):
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)


def _mute(sources: Sources, real: Array) -> Sources:
    return eqx.tree_at(lambda s: s.weights, sources, jnp.where(real, sources.weights, 0))
