"""Self-attention with softmax weights."""

from collections.abc import Callable

import equinox as eqx

from .. import sphere
from .._types import Array, Float
from ..interaction import AbstractMethod, Average, Causal, Plan, choose, mean, merge
from ..interaction.bound import (
    bound_terms,
    cast_parts,
    check_prefix,
    prefix_sides,
    sides,
    visibility,
    zonal_only,
)
from ..kernels import AbstractKernel, Term
from ..marginal import Marginal
from ..prefix import Prefix
from .base import AbstractDriftField, AbstractDynamics, AbstractField, CausalRule


class SA(AbstractDynamics):
    """ẋ_i = P_{x_i} Q_iᵀ Σ_j a_ij Q_j x_j, a_ij ∝ w_j g_ij φ'(t_ij), rows of a summing to 1 (theory.md 1).

    For `ExpDot` this is softmax attention; for `Dot` a is uniform. Prefix tokens join numerator and denominator with
    weights c_k. The row maximum is subtracted, so that no β overflows.

    Arguments as for `USA`; with `causal` the softmax runs over visible tokens.

    Raises:
        ValueError: when the kernel is a sum, a `Pair` or has a sign-changing position factor, which have no softmax
            form.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> v = mf.velocity(mf.SA(mf.ExpDot(1.0)), x, mf.Marginal.circle(2))
        >>> print(f"{v[0, 1]:.4f}, 1/(1 + e) = {1 / (1 + np.e):.4f}")
        0.2689, 1/(1 + e) = 0.2689
    """

    kernel: AbstractKernel
    rotate_values: bool = eqx.field(static=True, default=True)
    causal: CausalRule = eqx.field(static=True, default=False)
    prefix: Prefix | None = None

    def bind(self, rho: Marginal, d: int, dtype, method: str | Plan) -> AbstractField:
        """The vector field for fixed labels."""
        kernel, rho, prefix = cast_parts(self.kernel, rho, self.prefix, dtype)
        terms = bound_terms(kernel, rho, d, dtype)
        if terms is None or len(terms) != 1:
            raise ValueError(f"SA needs one zonal kernel up to gauges and position factors, got {kernel}: use mf.USA")
        term = terms[0]
        check_prefix(prefix, True, d)
        visible = visibility(self.causal)
        summing, why = choose(method, terms, rho.n, d, dtype, visible)
        return SoftmaxField(term, rho, prefix, visible, summing, self.rotate_values, why)


class SoftmaxField(AbstractDriftField):
    """The SA velocity."""

    term: Term
    rho: Marginal
    prefix: Prefix | None
    visible: Causal | None
    summing: AbstractMethod
    rotate_values: bool = eqx.field(static=True)
    method: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """P_x A(x)."""
        if not self.rotate_values:
            return sphere.project(x, self.drift(x))
        return self._mean(x, self.summing.tangent_average)

    def drift(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Q_iᵀ Σ_j a_ij Q_j x_j + Σ_k a_ik p_k."""
        return self._mean(x, self.summing.average)

    def _mean(self, x: Float[Array, "n d"], pull: Callable) -> Float[Array, "n d"]:
        targets, sources = sides(self.term, x, self.rho, self.rotate_values)
        average = pull(self.term, targets, sources, self.visible)
        if self.rotate_values:
            turned = self.term.ungauge(self.rho.labels, average.numerator)
            average = Average(average.top, turned, average.denominator)
        if self.prefix is not None:
            targets, sources = prefix_sides(x, self.prefix)
            average = merge(average, pull(zonal_only(self.term), targets, sources, None))
        return mean(average)
