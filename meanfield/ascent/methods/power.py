"""The power step of convex interactions."""

import jax.numpy as jnp

from ..._types import Array, Float, PyTree
from ..landscape import AbstractLandscape
from .method import AbstractAscent, Point


class PowerStep(AbstractAscent):
    """x_i ← normalise(F_i), F_i = Σ_j w_j ∇h: for convex φ and non-negative factors the linearisation bounds E from below.

    Written as a step from x_i: normalise(F_i) = normalise(x_i + P_{x_i}F_i/⟨x_i, F_i⟩). Where ⟨x_i, F_i⟩ is small or
    negative (sign-changing factors) the divisor is ‖F_i‖ instead, and the engine's line search keeps the ascent monotone.

    Examples:
        >>> method = mf.ascent.PowerStep()
        >>> rho, key = mf.Marginal.circle(4), jax.random.key(0)
        >>> best = mf.ascend(mf.Dot(), rho, 2, key, restarts=2, method=method, certify=False)
        >>> print(f"{best.energy:.3f}")
        0.500
    """

    def direction(self, landscape: AbstractLandscape, point: Point, memory: PyTree[Array]) -> Float[Array, "n d"]:
        """P_x F / ⟨x, F⟩ per token."""
        radial = jnp.sum(point.x * point.force, axis=-1, keepdims=True)
        size = jnp.sqrt(jnp.sum(point.force**2, axis=-1, keepdims=True))
        divisor = jnp.where(radial > 0.1 * size, radial, size)
        return jnp.where(size > 0, point.gradient / jnp.where(size > 0, divisor, 1), 0)
