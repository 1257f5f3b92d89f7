"""Near-linear sums: φ' or φ as a short series in harmonics, position factors by their separable or ordered structure."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from .._types import Array, Float
from ..kernels import Term
from .devices import shared_out
from .fold import Tiling
from .harmonics import harmonics
from .method import AbstractMethod, Average, merge
from .ordered import Order, order
from .pairs import Causal, Sources, Targets
from .separable import Split, features, split_factors, waves
from .series import Series, phi_series, positive_slope, slope_series
from .stream import stream
from .tiled import Tiled

CHUNK = {2: 1024, 3: 1024}  # the basis of one chunk stays in a 512 KB cache
BLOCK = {2: 256, 3: 256}


class Expansion(AbstractMethod):
    """Σ_j w_j g_ij ψ(⟨q_i, k_j⟩) v_j with ψ = Σ_{l ≤ degree} c_l P_l: O(n·terms) time, O(n + terms·chunk) memory.

    Trigonometric factors multiply the values (cos ω(ξ−ζ) = cos ωξ cos ωζ + sin ωξ sin ωζ). Decays and causal masks sort the
    tokens by label: pairs within a block are summed directly, blocks act on each other through decaying moments.
    The result has the dense sum's derivatives; its error is below rounding, NaN where `degree` does not suffice.
    """

    degree: int = eqx.field(static=True)
    mesh: Mesh | None = eqx.field(static=True, default=None)

    def force(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Float[Array, "n d"]:
        """Σ_j w_j g_ij φ'(⟨q_i, k_j⟩) v_j over visible j."""
        series = slope_series(term.zonal, targets.q.shape[1], self.degree, targets.q.dtype)
        far, near = self._sums(
            term, series, targets, sources, visible, sources.values,
            lambda t, s: Tiled(Tiling()).force(term, t, s, visible),
        )  # fmt: skip
        far = jnp.exp(series.top) * far
        return far if near is None else far + near

    def average(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Average:
        """Numerator and denominator by the same sums, scaled by the largest φ'."""
        d, dtype = targets.q.shape[1], targets.q.dtype
        series = slope_series(term.zonal, d, self.degree, dtype)
        good = positive_slope(term.zonal, d, self.degree, dtype)
        for factor in term.factors:
            g = waves(factor.profile)
            good = good if g is None else good & (jnp.sum(jnp.abs(g.amplitudes)) < g.constant)
        series = Series(jnp.where(good, series.coefficients, jnp.nan), series.top)
        far, near = self._sums(
            term, series, targets, sources, visible, _with_ones(sources.values),
            lambda t, s: Tiled(Tiling()).average(term, t, s, visible),
        )  # fmt: skip
        average = Average(jnp.full(far.shape[0], series.top), far[:, :-1], far[:, -1])
        return average if near is None else merge(average, near)

    def potential(self, term: Term, targets: Targets, sources: Sources) -> Float[Array, " n"]:
        """Σ_j w_j g_ij φ(⟨q_i, k_j⟩)."""
        series = phi_series(term.zonal, targets.q.shape[1], self.degree, targets.q.dtype)
        far, near = self._sums(
            term, series, targets, sources, None, jnp.ones((sources.weights.shape[0], 1), targets.q.dtype),
            lambda t, s: Tiled(Tiling()).potential(term, t, s),
        )  # fmt: skip
        far = jnp.exp(series.top) * far[:, 0]
        return far if near is None else far + near

    def _sums(
        self,
        term: Term,
        series: Series,
        targets: Targets,
        sources: Sources,
        visible: Causal | None,
        values: Float[Array, "m c"],
        near: Callable,
    ):
        """Σ_j w_j g ψ values_j / e^top through moments, and `near(targets, sources)` of each block (None if unordered)."""
        d, dtype = targets.q.shape[1], targets.q.dtype
        parts = split_factors(term, visible)
        if isinstance(parts, str):
            raise ValueError(f"method='expansion' does not apply: {parts}; use method='blocked'")
        left, right = features(parts.trigonometric, targets.labels, sources.labels, dtype)
        basis = harmonics(d, self.degree)
        wide = (sources.weights[:, None] * right)[:, :, None] * values[:, None, :]
        wide = wide.reshape(wide.shape[0], -1)
        if not parts.ordered:
            out = stream(basis, CHUNK[d], self.mesh, series.coefficients, None, targets.q, sources.k, wide)
            return _contract(left, out), None
        line = order(parts, targets.labels, visible is not None, dtype, BLOCK[d])
        return self._along(line, basis, series, targets, sources, wide, left, near)

    def _along(self, line: Order, basis, series: Series, targets: Targets, sources: Sources, wide, left, near):
        muted = jnp.arange(line.into.shape[0] + -line.into.shape[0] % line.size) < line.into.shape[0]
        wide = jnp.where(muted[:, None], _rows(line.sort(wide)), 0)
        t, s = line.sort(targets), line.sort(sources)
        s = eqx.tree_at(lambda s: s.weights, s, jnp.where(muted.reshape(s.weights.shape), s.weights, 0))
        out = stream(basis, line.size, self.mesh, series.coefficients, line.chain, _rows(t.q), _rows(s.k), wide)
        far = _contract(left, line.restore(out.reshape(*t.q.shape[:2], -1)))
        return far, line.restore(self._blocks(near, t, s))

    def _blocks(self, near: Callable, t: Targets, s: Sources):
        """`near` of every block."""

        def each(blocks, _):
            return jax.lax.map(jax.checkpoint(lambda block: near(*block)), blocks)

        return each((t, s), ()) if self.mesh is None else shared_out(each, self.mesh, (t, s))


def _rows(blocks: Float[Array, "blocks size ..."]) -> Float[Array, "n ..."]:
    return blocks.reshape(-1, *blocks.shape[2:])


def _contract(left: Float[Array, "n r"], out: Float[Array, "n rc"]) -> Float[Array, "n c"]:
    """Σ_r left_ir out_irc."""
    return jnp.sum(left[:, :, None] * out.reshape(*left.shape, -1), axis=1)


def _with_ones(values: Float[Array, "m d"]) -> Float[Array, "m d1"]:
    return jnp.concatenate([values, jnp.ones((values.shape[0], 1), values.dtype)], axis=1)


def refusal(terms: tuple[Term, ...], d: int, visible: Causal | None) -> str | None:
    """Why no expansion is known for these terms, or None."""
    if d not in CHUNK:
        return f"tokens have d = {d}; expansions are for d = 2 and 3"
    found = (split_factors(term, visible) for term in terms)
    return next((f for f in found if isinstance(f, str)), None)


__all__ = ["Expansion", "Split", "refusal"]
