"""Limited-memory quasi-Newton ascent on the product of spheres."""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._products import matmul
from ..._types import Array, Bool, Float, Int
from ..landscape import AbstractLandscape
from .method import AbstractAscent, Point, Trial


class History(eqx.Module):
    """The last m moves s and gradient changes y in a ring, as rows; what the compact form needs of their products in ⟨·, ·⟩_w.

    pairs: all s, then all y, flattened. inverse: R⁻¹, R_ij = ⟨s_i, y_j⟩ where i is not younger than j, else 0; its empty slots are 0.
    sy: ⟨s_i, y_i⟩. yy: ⟨y_i, y_j⟩. scale γ = ⟨s, y⟩/⟨y, y⟩ of the newest pair, 0 without any. slot: where the next pair goes.
    """

    inverse: Float[Array, "m m"]
    pairs: Float[Array, "2*m nd"]
    sy: Float[Array, " m"]
    yy: Float[Array, "m m"]
    scale: Float[Array, ""]
    slot: Int[Array, ""]


class LBFGS(AbstractAscent):
    """H grad with the compact form of the inverse Hessian approximation; pairs stay where they were measured.

    H = γ + (S, γY) ((R⁻ᵀ(D + γYᵀY)R⁻¹, −R⁻ᵀ), (−R⁻¹, 0)) (S, γY)ᵀ, D = diag⟨s_i, y_i⟩: two products with all pairs instead of a
    recursion over them. R⁻¹ is carried along: dropping the oldest pair deletes its row and column, a new pair adds a column. The direction is
    projected to the tangent spaces of the current point. A pair with ⟨s, y⟩ ≤ 0 (the energy is not concave along the
    move) is left out.

    Args:
        memory: m, the number of pairs.

    Reference: Byrd, Nocedal, Schnabel, Math. Programming 63 (1994).

    Examples:
        >>> method = mf.ascent.LBFGS()
        >>> rho, key = mf.Marginal.circle(4), jax.random.key(0)
        >>> best = mf.ascend(mf.Dot(), rho, 2, key, restarts=2, method=method, certify=False)
        >>> print(f"{best.energy:.3f}")
        0.500
    """

    memory: int = eqx.field(static=True, default=8)

    def init(self, point: Point) -> History:
        """No pairs."""
        m, dtype = self.memory, point.x.dtype
        square = jnp.zeros((m, m), dtype)
        pairs = jnp.zeros((2 * m, point.x.size), dtype)
        return History(square, pairs, square[0], square, jnp.zeros((), dtype), jnp.zeros((), jnp.int32))

    def direction(self, landscape: AbstractLandscape, point: Point, memory: History) -> Float[Array, "n d"]:
        """H grad; grad/‖F‖ without history."""
        size = landscape.norm(point.force)
        scale = jnp.where(memory.scale > 0, memory.scale, 1 / jnp.where(size > 0, size, 1))
        products = matmul(memory.pairs, landscape.weighted(point.gradient))
        along, change = products[: self.memory], products[self.memory :]
        u = matmul(memory.inverse, along)
        c = matmul(memory.sy * u + scale * (matmul(memory.yy, u) - change), memory.inverse)
        flat = scale * point.gradient.reshape(-1) + matmul(jnp.concatenate([c, -scale * u]), memory.pairs)
        return landscape.gradient(point.x, flat.reshape(point.x.shape))

    def update(self, landscape: AbstractLandscape, trial: Trial, memory: History) -> History:
        """The newest pair in place of the oldest; nothing where the move was not accepted, or the energy not concave along it."""
        s, y = trial.secant(landscape)
        sy, yy = landscape.inner(s, y), landscape.inner(y, y)
        takes = trial.accepted & (sy > 1e-10 * landscape.norm(s) * jnp.sqrt(yy))
        m, k = self.memory, memory.slot

        def put(array, value, row, axis=0):
            old = jax.lax.dynamic_index_in_dim(array, row, axis, keepdims=False)
            return jax.lax.dynamic_update_index_in_dim(array, jnp.where(takes, value, old), row, axis)

        products = matmul(memory.pairs, landscape.weighted(y))
        others = jnp.arange(m, dtype=k.dtype) != k
        kept = jnp.where(others & others[:, None], memory.inverse, 0)
        rho = jnp.where(takes, sy, 1)
        column = jnp.where(others, -matmul(kept, products[:m]), 1) / rho
        inverse = put(jnp.where(takes, kept, memory.inverse), column, k, 1)
        row = jnp.where(others, products[m:], yy)
        return History(
            pairs=put(put(memory.pairs, s.reshape(-1), k), y.reshape(-1), m + k),
            inverse=inverse,
            sy=put(memory.sy, sy, k),
            yy=put(put(memory.yy, row, k), row, k, 1),
            scale=jnp.where(takes, sy / jnp.where(takes, yy, 1), memory.scale),
            slot=jnp.where(takes, (k + 1) % m, k),
        )

    def restart(self, point: Point, memory: History, when: Bool[Array, ""]) -> History:
        """Without pairs `when` true: their coefficients are taken away, the pairs themselves do not matter."""
        kept = (jnp.where(when, 0, array) for array in (memory.inverse, memory.scale))
        return eqx.tree_at(lambda h: (h.inverse, h.scale), memory, tuple(kept))
