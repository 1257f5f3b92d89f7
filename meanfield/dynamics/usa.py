"""Unnormalised self-attention: Riemannian gradient ascent of E_h."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from .. import sphere
from .._types import Array, Float
from ..interaction import AbstractMethod, Causal, Plan, Tiling, choose, choose_mapped, mapped_force
from ..interaction.bound import bound_terms, cast_parts, check_prefix, prefix_sides, sides, visibility, zonal_only
from ..kernels import AbstractKernel, Term
from ..marginal import Marginal
from ..prefix import Prefix
from .base import AbstractDriftField, AbstractDynamics, AbstractField, CausalRule


class USA(AbstractDynamics):
    """ẋ_i = P_{x_i} Σ_j w_j ∇_x h(z_i, z_j), plus P Σ_k c_k φ'(⟨x, p_k⟩) p_k of a prefix (USA-AV, arXiv 2605.30229).

    Gradient ascent of E_h (`energy`) for a symmetric kernel, rotated values and no mask: Ė = Σ_i w_i ‖ẋ_i‖².

    Args:
        kernel: any kernel.
        rotate_values: only for gauges. True is the gradient flow; False a standard transformer, queries and keys
            rotated, values not: ẋ_i = P Σ_j w_j φ'(⟨Q_i x_i, Q_j x_j⟩) x_j (not a gradient flow).
        causal: token j acts on i only where ξ_j ≤ ξ_i (the sum is not renormalised); a function chooses the scalar
            position of a composite label.
        prefix: frozen tokens, visible to every token.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> rho = mf.Marginal.circle(4)
        >>> v = mf.velocity(mf.USA(mf.ExpDot(1.0), causal=True), x, rho)
        >>> print(np.round(v[0], 3))  # the first token sees only itself
        [ 0.  0. -0.]
    """

    kernel: AbstractKernel
    rotate_values: bool = eqx.field(static=True, default=True)
    causal: CausalRule = eqx.field(static=True, default=False)
    prefix: Prefix | None = None

    def bind(self, rho: Marginal, d: int, dtype, method: str | Plan) -> AbstractField:
        """The vector field for fixed labels."""
        kernel, rho, prefix = cast_parts(self.kernel, rho, self.prefix, dtype)
        terms = bound_terms(kernel, rho, d, dtype)
        check_prefix(prefix, terms is not None, d)
        visible = visibility(self.causal)
        if terms is None:
            if not self.rotate_values:
                raise ValueError(
                    "rotate_values=False needs a kernel that is zonal up to gauges: this one has no values"
                )
            tiling, why = choose_mapped(method, rho.n)
            return PairField(kernel, rho, visible, tiling, why)
        summing, why = choose(method, terms, rho.n, d, dtype, visible)
        return GradientField(terms, rho, prefix, visible, summing, self.rotate_values, why)


class GradientField(AbstractDriftField):
    """The USA velocity of a structured kernel."""

    terms: tuple[Term, ...]
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
        return self._sum(x, self.summing.tangent)

    def drift(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Σ_terms scale Q_iᵀ Σ_j w_j g φ' Q_j x_j (values unrotated where asked), plus the prefix."""
        return self._sum(x, self.summing.force)

    def _sum(self, x: Float[Array, "n d"], pull: Callable) -> Float[Array, "n d"]:
        total = jnp.zeros_like(x)
        for term in self.terms:
            scale = term.scale.astype(x.dtype)
            targets, sources = sides(term, x, self.rho, self.rotate_values)
            force = pull(term, targets, sources, self.visible)
            total += scale * (term.ungauge(self.rho.labels, force) if self.rotate_values else force)
            if self.prefix is not None:
                targets, sources = prefix_sides(x, self.prefix)
                total += scale * pull(zonal_only(term), targets, sources, None)
        return total


class PairField(AbstractDriftField):
    """The USA velocity of any kernel of one pair, by mapped autodiff."""

    kernel: AbstractKernel
    rho: Marginal
    visible: Causal | None
    tiling: Tiling
    method: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """P_x A(x)."""
        return sphere.project(x, self.drift(x))

    def drift(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Σ_j w_j ∇_x h(z_i, z_j)."""
        return mapped_force(self.kernel, x, self.rho.labels, self.rho.weights, self.visible, self.tiling)
