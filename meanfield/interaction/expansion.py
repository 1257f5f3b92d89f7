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
from .separable import features, split_factors, waves
from .series import Series, phi_series, positive_slope, slope_series
from .stream import stream
from .tiled import Tiled

# few, large operations: XLA hands each to its threads, which costs more than a small one computes
CHUNK = {2: 16384, 3: 8192}
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

    def tangent(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Float[Array, "n d"]:
        """The torque of φ about the origin, turned to the tangent space: one value per source, and no radial part to cancel."""

        def torque(term, targets, sources, visible):
            near = lambda t, s: Tiled(Tiling()).tangent(term, t, s, visible)  # noqa: E731
            far, near = self._torque(term, targets, sources, visible, near)
            return far if near is None else far + near

        return _derived_from(super().tangent, torque)(term, targets, sources, visible)

    def average(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Average:
        """Numerator and denominator by the same sums, scaled by the largest φ'."""
        d, dtype = targets.q.shape[1], targets.q.dtype
        series = self._positive(term, d, dtype)
        far, near = self._sums(
            term, series, targets, sources, visible, _with_ones(sources.values),
            lambda t, s: Tiled(Tiling()).average(term, t, s, visible),
        )  # fmt: skip
        average = Average(jnp.full(far.shape[0], series.top), far[:, :-1], far[:, -1])
        return average if near is None else merge(average, near)

    def tangent_average(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Average:
        """The torque of φ and the sum of φ', scaled by the largest φ'."""
        return _derived_from(super().tangent_average, self._torque_average)(term, targets, sources, visible)

    def _torque_average(self, term, targets, sources, visible) -> Average:
        d, dtype = targets.q.shape[1], targets.q.dtype
        series = self._positive(term, d, dtype)
        far, near = self._sums(
            term, series, targets, sources, visible, jnp.ones((sources.weights.shape[0], 1), dtype),
            lambda t, s: Tiled(Tiling()).tangent_average(term, t, s, visible),
        )  # fmt: skip
        torque, _ = self._torque(term, targets, sources, visible, None, series.top)
        average = Average(jnp.full(far.shape[0], series.top), torque, far[:, 0])
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

    def _positive(self, term: Term, d: int, dtype) -> Series:
        """φ' as a series; NaN where a softmax would need the logarithm of a negative number."""
        series = slope_series(term.zonal, d, self.degree, dtype)
        good = positive_slope(term.zonal, d, self.degree, dtype)
        for factor in term.factors:
            g = waves(factor.profile)
            good = good if g is None else good & (jnp.sum(jnp.abs(g.amplitudes)) < g.constant)
        return Series(jnp.where(good, series.coefficients, jnp.nan), series.top)

    def _torque(self, term, targets, sources, visible, near, top=0.0):
        """(Σ_j w_j g φ' (q_i × k_j)) × q_i / e^top of far pairs, and `near` of each block."""
        d, dtype = targets.q.shape[1], targets.q.dtype
        series = phi_series(term.zonal, d, self.degree, dtype)
        ones = jnp.ones((sources.weights.shape[0], 1), dtype)
        far, near = self._sums(term, series, targets, sources, visible, ones, near, turning=True)
        return jnp.exp(series.top - top) * _across(far, targets.q), near

    def _sums(
        self,
        term: Term,
        series: Series,
        targets: Targets,
        sources: Sources,
        visible: Causal | None,
        values: Float[Array, "m c"],
        near: Callable | None,
        turning: bool = False,
    ):
        """Σ_j w_j g ψ values_j / e^top through moments, and `near(targets, sources)` of each block (None if unordered).

        `turning`: the torques Σ_j w_j g ψ' (q_i × k_j) values_j / e^top instead.
        """
        d, dtype = targets.q.shape[1], targets.q.dtype
        parts = split_factors(term, visible)
        if isinstance(parts, str):
            raise ValueError(f"method='expansion' does not apply: {parts}; use method='blocked'")
        left, right = features(parts.trigonometric, targets.labels, sources.labels, dtype)
        basis = harmonics(d, self.degree)
        wide = (sources.weights[:, None] * right)[:, :, None] * values[:, None, :]
        wide = wide.reshape(wide.shape[0], -1)
        if not parts.ordered:
            axes = 3 if turning and d == 3 else 1
            out = stream(basis, CHUNK[d], self.mesh, series.coefficients, None, targets.q, sources.k, wide, turning)
            return _contract(left, out, axes), None
        line = order(parts, targets.labels, visible is not None, dtype, BLOCK[d])
        return self._along(line, basis, series, targets, sources, wide, left, near, turning)

    def _along(self, line: Order, basis, series: Series, targets: Targets, sources: Sources, wide, left, near, turning):
        muted = jnp.arange(line.into.shape[0] + -line.into.shape[0] % line.size) < line.into.shape[0]
        wide = jnp.where(muted[:, None], _rows(line.sort(wide)), 0)
        t, s = line.sort(targets), line.sort(sources)
        s = eqx.tree_at(lambda s: s.weights, s, jnp.where(muted.reshape(s.weights.shape), s.weights, 0))
        out = stream(
            basis, line.size, self.mesh, series.coefficients, line.chain, _rows(t.q), _rows(s.k), wide, turning
        )
        far = _contract(left, line.restore(out.reshape(*t.q.shape[:2], -1)), 3 if turning and basis.d == 3 else 1)
        return far, None if near is None else line.restore(self._blocks(near, t, s))

    def _blocks(self, near: Callable, t: Targets, s: Sources):
        """`near` of every block."""

        def each(blocks, _):
            return jax.lax.map(jax.checkpoint(lambda block: near(*block)), blocks)

        return each((t, s), ()) if self.mesh is None else shared_out(each, self.mesh, (t, s))


def _derived_from(plain: Callable, fast: Callable) -> Callable:
    """`fast`, with the derivatives of `plain`, the same function on the sphere and the dense sum's beside it."""
    run = eqx.filter_custom_jvp(fast)

    @run.def_jvp
    def _(primals, tangents):
        moved = jax.tree.map(lambda t: t is not None, tangents, is_leaf=lambda t: t is None)
        some, rest = eqx.partition(primals, moved)
        return run(*primals), jax.jvp(lambda some: plain(*eqx.combine(some, rest)), (some,), (tangents,))[1]

    return run


def _rows(blocks: Float[Array, "blocks size ..."]) -> Float[Array, "n ..."]:
    return blocks.reshape(-1, *blocks.shape[2:])


def _contract(left: Float[Array, "n r"], out: Float[Array, "n wide"], axes: int) -> Float[Array, "n columns"]:
    """Σ_r left_ir out_iarc."""
    n, r = left.shape
    return jnp.sum(left[:, None, :, None] * out.reshape(n, axes, r, -1), axis=2).reshape(n, -1)


def _across(torque: Float[Array, "n axes"], q: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """torque × q."""
    if q.shape[1] == 3:
        return jnp.cross(torque, q)
    return torque * jnp.stack([-q[:, 1], q[:, 0]], axis=1)


def _with_ones(values: Float[Array, "m d"]) -> Float[Array, "m d1"]:
    return jnp.concatenate([values, jnp.ones((values.shape[0], 1), values.dtype)], axis=1)


def refusal(terms: tuple[Term, ...], d: int, visible: Causal | None) -> str | None:
    """Why no expansion is known for these terms, or None."""
    if d not in CHUNK:
        return f"tokens have d = {d}; expansions are for d = 2 and 3"
    found = (split_factors(term, visible) for term in terms)
    return next((f for f in found if isinstance(f, str)), None)
