"""Limited-memory quasi-Newton ascent on the product of spheres."""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import Array, Float
from ..landscape import AbstractLandscape
from .method import AbstractAscent, Point


class History(eqx.Module):
    """The last m moves s and gradient changes y, oldest first, transported to the current point; 1/⟨s, y⟩, 0 if empty."""

    s: Float[Array, "m n d"]
    y: Float[Array, "m n d"]
    inverse: Float[Array, " m"]


class LBFGS(AbstractAscent):
    """Two-loop recursion in ⟨·, ·⟩_w; vectors are transported by projection to the new tangent spaces.

    **Arguments**: `memory` m, the number of moves remembered. A pair with ⟨s, y⟩ ≤ 0 (the energy is not concave along
    the move) is left out. Reference: Huang, Gallivan, Absil, SIAM J. Optim. 25 (2015).

    Examples:
        >>> method = mf.ascent.LBFGS()
        >>> rho, key = mf.Marginal.circle(4), jax.random.key(0)
        >>> best = mf.ascend(mf.Dot(), rho, 2, key, restarts=2, method=method, certify=False)
        >>> print(f"{best.energy:.3f}")
        0.500
    """

    memory: int = eqx.field(static=True, default=8)

    def init(self, point: Point) -> History:
        """No moves."""
        empty = jnp.zeros((self.memory, *point.x.shape), point.x.dtype)
        return History(empty, empty, jnp.zeros(self.memory, point.x.dtype))

    def direction(self, landscape: AbstractLandscape, point: Point, memory: History) -> Float[Array, "n d"]:
        """H grad, H the inverse Hessian approximation; grad/‖F‖ without history."""

        def newest_first(q, move):
            s, y, inverse = move
            alpha = inverse * landscape.inner(s, q)
            return q - alpha * y, alpha

        def oldest_first(r, move):
            s, y, inverse, alpha = move
            return r + s * (alpha - inverse * landscape.inner(y, r)), None

        moves = (memory.s, memory.y, memory.inverse)
        q, alphas = jax.lax.scan(newest_first, point.gradient, moves, reverse=True)
        known = memory.inverse[-1] > 0
        curvature = memory.inverse[-1] * landscape.inner(memory.y[-1], memory.y[-1])
        size = landscape.norm(point.force)
        scale = 1 / jnp.where(known, curvature, jnp.where(size > 0, size, 1))
        r, _ = jax.lax.scan(oldest_first, scale * q, (*moves, alphas))
        return landscape.gradient(point.x, r)

    def update(
        self, landscape: AbstractLandscape, old: Point, new: Point, move: Float[Array, "n d"], memory: History
    ) -> History:
        """Transport all pairs and append the newest."""
        transport = jax.vmap(lambda v: landscape.gradient(new.x, v))
        s = landscape.gradient(new.x, move)
        y = landscape.gradient(new.x, old.gradient) - new.gradient
        sy = landscape.inner(s, y)
        concave = sy > 1e-10 * landscape.norm(s) * landscape.norm(y)
        inverse = 1 / jnp.where(concave, sy, 1)
        kept = History(transport(memory.s), transport(memory.y), memory.inverse)

        def push(old, new):
            return jnp.concatenate([old[1:], new[None]])

        longer = History(push(kept.s, s), push(kept.y, y), push(kept.inverse, inverse))
        return jax.tree.map(lambda a, b: jnp.where(concave, a, b), longer, kept)
