"""The answer of `ascend`."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .. import sphere
from .._check import is_concrete
from .._types import Array, Float, Int
from .bounds import Bound
from .engine import STATUSES


class Maximiser(eqx.Module):
    """The best state found, with its certificates.

    - `x` (n, d), `energy`; `energies` (R,) and `states` (R, n, d) of all restarts, best first.
    - `gradient_norm` = √Σ w_i‖P_{x_i} Σ_j w_j ∇h‖²; `curvature`, the largest eigenvalue of the Riemannian Hessian in the
      w-weighted inner product, and `ascent_direction` (n, d), its eigenvector.
    - `upper_bound` ≥ the global maximum, proved by `bound.method` ("" and inf where nothing is proved: `bound.reason`).
    - `status`: "converged" (gradient within tolerance, no direction of ascent), "saddle" (curvature > 0 there),
      "stalled" (moves neither gain energy nor shrink the gradient), "budget"; `iterations` spent on the best state.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> best = mf.ascend(mf.ExpDot(1.0), mf.Marginal.circle(4), 2, jax.random.key(0), restarts=2)
        >>> best.x.shape, best.energies.shape, float(best.gradient_norm) < 1e-3
        ((4, 2), (2,), True)
    """

    x: Float[Array, "*batch n d"]
    energy: Float[Array, "*batch"]
    energies: Float[Array, "*batch R"]
    states: Float[Array, "*batch R n d"]
    gradient_norm: Float[Array, "*batch"]
    curvature: Float[Array, "*batch"]
    ascent_direction: Float[Array, "*batch n d"]
    iterations: Int[Array, "*batch"]
    code: Int[Array, "*batch"]
    bound: Bound

    @property
    def upper_bound(self) -> float:
        """A number that the energy of no configuration exceeds; inf where nothing is proved."""
        return self.bound.value

    @property
    def gap(self) -> float:
        """upper_bound − energy, 0 (to rounding) for a proved global maximum."""
        return self.bound.value - float(self.energy)

    @property
    def status(self) -> str | np.ndarray:
        """Why the ascent stopped; an array of names for a batch. Not available while traced: use `code`."""
        if not is_concrete(self.code):
            raise ValueError("status is text, which cannot be traced: read best.code (an index of engine.STATUSES)")
        names = np.asarray(STATUSES)[np.asarray(self.code)]
        return str(names) if names.ndim == 0 else names

    def escape(self, angle: float = 0.1) -> Float[Array, "2 n d"]:
        """Two starts beside a saddle, ± `angle` along its direction of ascent: hand them back as `x0`."""
        step = angle * self.ascent_direction
        return sphere.normalize(jnp.stack([self.x + step, self.x - step]))
