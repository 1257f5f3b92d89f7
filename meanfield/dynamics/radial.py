"""Where the norm stands in a layer: tokens v = rθ with a free radius r (pre-norm, peri-norm)."""

import equinox as eqx
import jax.numpy as jnp

from .. import sphere
from .._types import Array, Float
from ..interaction import Plan
from ..marginal import Marginal
from .around import AbstractAround
from .base import AbstractDriftField, AbstractDynamics, AbstractField, drift_field, retract, rows_to_sphere


class PreNorm(AbstractAround):
    """v̇ = A(θ), v = rθ: θ̇ = P_θ A/r, ṙ = ⟨θ, A⟩ (theory.md 4), A the drift of `dynamics` at the directions θ.

    Radii grow and slow the directions down: in the equiangular case 1 − ⟨θ_i, θ_j⟩ decays like t^{−2}, not e^{−2t}.
    Post-norm, θ̇ = P_θ A, is `dynamics` itself.

    In `flow` the row norms of `x0` are the radii at the start; `traj.x` holds directions, `traj.radius` (T, n) radii,
    `traj.final` the tokens v.

    Args:
        dynamics: any with a drift in R^d (`USA`, `SA`, `MultiHead`).

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> traj = mf.flow(mf.PreNorm(mf.SA(mf.ExpDot(1.0))), x, mf.Marginal.circle(4), jnp.asarray([0.0, 2.0]))
        >>> traj.radius.shape, bool(traj.radius[-1].min() > 1)
        ((2, 4), True)
    """

    dynamics: AbstractDynamics

    def bind(self, rho: Marginal, d: int, dtype, method: str | Plan) -> "RadialField":
        """The vector field of v for fixed labels."""
        inner = drift_field(self.dynamics, rho, d, dtype, method)
        return RadialField(inner, False, inner.method)


class PeriNorm(AbstractAround):
    """v̇ = A(θ)/‖A(θ)‖, v = rθ: θ̇ = P_θ A/(r‖A‖), ṙ = ⟨θ, A⟩/‖A‖ (theory.md 4): the branch is normalised as well.

    A token with A = 0 rests. Arguments as for `PreNorm`.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> traj = mf.flow(mf.PeriNorm(mf.SA(mf.ExpDot(1.0))), x, mf.Marginal.circle(4), jnp.asarray([0.0, 2.0]))
        >>> bool(traj.radius[-1].max() <= 3)  # r grows by at most 1 in a unit of time
        True
    """

    dynamics: AbstractDynamics

    def bind(self, rho: Marginal, d: int, dtype, method: str | Plan) -> "RadialField":
        """The vector field of v for fixed labels."""
        inner = drift_field(self.dynamics, rho, d, dtype, method)
        return RadialField(inner, True, inner.method)


class RadialField(AbstractField):
    """v̇ (n, d) in R^d; `normalize_branch` divides the drift by its norm."""

    inner: AbstractDriftField
    normalize_branch: bool = eqx.field(static=True)
    method: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """A(θ), or A(θ)/‖A(θ)‖, at the tokens x = rθ."""
        drift = self.inner.drift(rows_to_sphere(x))
        if not self.normalize_branch:
            return drift
        norm = sphere.safe_norm(drift)
        return jnp.where(norm > 0, drift / jnp.where(norm > 0, norm, 1), 0)


@retract.register
def _(field: RadialField, x):
    return x
