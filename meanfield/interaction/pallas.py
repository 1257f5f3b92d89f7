"""method="pallas": the zonal sum as Pallas kernels for GPUs; interpreted, slowly, on a CPU."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from .._callable import cast
from .._products import matmul
from .._types import Array, Float
from ..kernels import Term, log_slope, slope
from ..kernels.position import log_profile
from .devices import shared_out
from .gridded import Grid, over_sources, summed
from .method import AbstractMethod, Average
from .pairs import Causal, Sources, Targets
from .separable import positions


class Rows(eqx.Module):
    """Targets in the zonal frame, rows a power of two long; scalar positions for every factor and for the mask."""

    q: Float[Array, "n wide"]
    factors: list[Array]
    mask: list[Array]
    top: Float[Array, " n"] | None = None


class Columns(eqx.Module):
    """Sources likewise; the weights are the first leaf, 0 where a block is filled up."""

    weights: Float[Array, " m"]
    k: Float[Array, "m wide"]
    values: Float[Array, "m wide"]
    factors: list[Array]
    mask: list[Array]


class Pallas(AbstractMethod):
    """Σ_j w_j g_ij φ'(⟨q_i, k_j⟩) v_j tile by tile in fast memory; products accumulate in float32 (float64 for float64).

    Positions must be scalar. Reverse mode once: forward mode and second derivatives need another method.
    """

    grid: Grid = Grid()
    mesh: Mesh | None = eqx.field(static=True, default=None)

    def force(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Float[Array, "n d"]:
        """Σ_j w_j g_ij φ'(⟨q_i, k_j⟩) v_j over visible j."""

        def tile(t, s, p):
            a = slope(p[0], _products(t, s)) * _factors(p[1], t, s)
            return matmul(_hide(a, t, s, 0.0), s.weights[:, None] * s.values)

        return self._over(summed, tile, term, targets, sources, visible)[:, : targets.q.shape[1]]

    def average(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Average:
        """Numerator and denominator of the softmax, scaled by the largest logit of each row, which a first pass finds."""

        def logits(t, s, p):
            value = log_slope(p[0], _products(t, s))
            for profile, tau in zip(p[1], _differences(t, s), strict=True):
                value = value + _elementwise(lambda u, g=profile: log_profile(g, u), tau)
            value = _hide(value, t, s, -jnp.inf)
            return jnp.where(s.weights[None, :] > 0, value, -jnp.inf)

        def tile(t, s, p):
            a = jnp.exp(logits(t, s, p) - t.top[:, None]) * s.weights[None, :]
            return matmul(a, s.values), jnp.sum(a, axis=1)

        def largest(grid, t, s, p):
            return over_sources(lambda t, s, p: jnp.max(logits(t, s, p), axis=1), grid, t, s, p, jnp.maximum, -jnp.inf)

        def both(tile, grid, t, s, p):
            top = largest(grid, *jax.lax.stop_gradient((t, s, p)))
            t = eqx.tree_at(lambda t: t.top, t, jnp.where(top == -jnp.inf, 0, top), is_leaf=lambda leaf: leaf is None)
            return top, *summed(tile, grid, t, s, p)

        top, numerator, denominator = self._over(both, tile, term, targets, sources, visible)
        return Average(top, numerator[:, : targets.q.shape[1]], denominator)

    def potential(self, term: Term, targets: Targets, sources: Sources) -> Float[Array, " n"]:
        """Σ_j w_j g_ij φ(⟨q_i, k_j⟩)."""

        def tile(t, s, p):
            a = p[0].phi(_products(t, s)) * _factors(p[1], t, s)
            return jnp.sum(a * s.weights[None, :], axis=1)

        return self._over(summed, tile, term, targets, sources, None)

    def _over(self, run, tile, term: Term, targets: Targets, sources: Sources, visible: Causal | None):
        """run(tile, …) on plain arrays: labels as scalar positions, numbers at least float32, targets over the mesh."""
        dtype = targets.q.dtype
        wide = dtype if dtype == jnp.float64 else jnp.dtype(jnp.float32)
        choices = [f.label for f in term.factors] + ([] if visible is None else [visible.position])
        (own, hidden), (other, hiding) = (
            (found[: len(term.factors)], found[len(term.factors) :])
            for found in ([positions(choice, side.labels) for choice in choices] for side in (targets, sources))
        )
        t = Rows(_widen(targets.q), own, hidden)
        s = Columns(sources.weights, _widen(sources.k), _widen(sources.values), other, hiding)
        parameters, static = eqx.partition((term.zonal, [f.profile for f in term.factors]), eqx.is_array)
        t, s, parameters = cast((t, s, parameters), wide)

        def whole(t, s, p):
            return tile(t, s, eqx.combine(p, static))

        if self.mesh is None:
            out = run(whole, self.grid, t, s, parameters)
        else:
            out = shared_out(lambda t, rest: run(whole, self.grid, t, *rest), self.mesh, t, (s, parameters))
        return cast(out, dtype)


def _products(t: Rows, s: Columns) -> Float[Array, "B C"]:
    return matmul(t.q, s.k.T)


def _differences(t: Rows, s: Columns) -> list[Float[Array, "B C"]]:
    """τ of every factor over all pairs of the tile; integers are subtracted exactly."""
    return [(a[:, None] - b[None, :]).astype(t.q.dtype) for a, b in zip(t.factors, s.factors, strict=True)]


def _factors(profiles, t: Rows, s: Columns) -> Array | float:
    value = 1.0
    for profile, tau in zip(profiles, _differences(t, s), strict=True):
        value = value * _elementwise(profile, tau)
    return value


def _elementwise(profile: Callable, tau: Float[Array, "B C"]) -> Float[Array, "B C"]:
    return jax.vmap(jax.vmap(profile))(tau)


def _hide(value: Float[Array, "B C"], t: Rows, s: Columns, fill: float) -> Float[Array, "B C"]:
    for a, b in zip(t.mask, s.mask, strict=True):
        value = jnp.where(b[None, :] <= a[:, None], value, fill)
    return value


def _widen(x: Float[Array, "n d"]) -> Float[Array, "n wide"]:
    """Zero columns up to a power of two, at least 16: what a GPU's matrix unit takes."""
    width = max(16, 1 << (x.shape[1] - 1).bit_length())
    return jnp.pad(x, ((0, 0), (0, width - x.shape[1])))
