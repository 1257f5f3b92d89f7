"""Newton steps by truncated conjugate gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, Float, PyTree
from ..landscape import AbstractLandscape
from .method import AbstractAscent, Point


class Newton(AbstractAscent):
    """Direction d with −Hess d ≈ grad by conjugate gradients in ⟨·, ·⟩_w (Steihaug: stopped at non-negative curvature).

    Rotations are null directions of the Hessian that are orthogonal to the gradient, so the solve never sees them.

    Args:
        solves: the most Hessian products per step.

    Examples:
        >>> method = mf.ascent.Newton()
        >>> rho, key = mf.Marginal.circle(4), jax.random.key(0)
        >>> best = mf.ascend(mf.Dot(), rho, 2, key, restarts=2, method=method, certify=False)
        >>> print(f"{best.energy:.3f}")
        0.500
    """

    solves: int = eqx.field(static=True, default=200)

    def direction(self, landscape: AbstractLandscape, point: Point, memory: PyTree[Array]) -> Float[Array, "n d"]:
        """The truncated solve, to the relative residual min(0.1, ‖grad‖/‖F‖), which makes convergence quadratic."""
        g = point.gradient
        size = landscape.norm(g)
        eps = jnp.finfo(g.dtype).eps
        forcing = jnp.clip(size / jnp.maximum(landscape.norm(point.force), eps), 4 * eps, 0.1)

        def running(state):
            _, r, _, k, stop = state
            return ~stop & (k < self.solves) & (landscape.norm(r) > forcing * size)

        def step(state):
            d, r, p, k, _ = state
            hp = -landscape.hessian(point.x, p)
            curvature = landscape.inner(p, hp)
            rr = landscape.inner(r, r)
            flat = curvature <= 16 * eps * landscape.inner(p, p) * landscape.norm(point.force)
            alpha = rr / jnp.where(flat, 1, curvature)
            r_new = r - alpha * hp
            p_new = r_new + (landscape.inner(r_new, r_new) / rr) * p
            first = jnp.where(k == 0, p, d)
            return (jnp.where(flat, first, d + alpha * p), jnp.where(flat, r, r_new), p_new, k + 1, flat)

        start = (jnp.zeros_like(g), g, g, jnp.zeros((), jnp.int32), size <= 0)
        return jax.lax.while_loop(running, step, start)[0]
