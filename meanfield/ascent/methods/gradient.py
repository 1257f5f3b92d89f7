"""Riemannian gradient ascent."""

import jax.numpy as jnp

from ..._types import Array, Float, Scalar
from ..landscape import AbstractLandscape
from .method import AbstractAscent, Point, Trial


class GradientAscent(AbstractAscent):
    """Direction τ·grad with the Barzilai–Borwein step length τ = ⟨s, s⟩/⟨s, y⟩ of the last accepted move.

    Examples:
        >>> method = mf.ascent.GradientAscent()
        >>> rho, key = mf.Marginal.circle(4), jax.random.key(0)
        >>> best = mf.ascend(mf.Dot(), rho, 2, key, restarts=2, method=method, certify=False)
        >>> print(f"{best.energy:.3f}")
        0.500
    """

    def init(self, point: Point) -> Scalar:
        """τ = 1/max‖F‖."""
        size = jnp.sqrt(jnp.max(jnp.sum(point.force**2, axis=-1)))
        return 1 / jnp.where(size > 0, size, 1)

    def direction(self, landscape: AbstractLandscape, point: Point, memory: Scalar) -> Float[Array, "n d"]:
        """τ P_x F."""
        return memory * point.gradient

    def update(self, landscape: AbstractLandscape, trial: Trial, memory: Scalar) -> Scalar:
        """The next τ; kept where the energy is not concave along the move."""
        s, y = trial.secant(landscape)
        sy = landscape.inner(s, y)
        return jnp.where(trial.accepted & (sy > 0), landscape.inner(s, s) / jnp.where(sy > 0, sy, 1), memory)
