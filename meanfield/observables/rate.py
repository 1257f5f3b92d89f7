"""The rate of the energy along a dynamics."""

import jax

from .. import _check
from .._types import Scalar, Tokens
from ..dynamics import AbstractDynamics, velocity
from ..energy import bind_energy
from ..marginal import Marginal


def energy_rate(dynamics: AbstractDynamics, x: Tokens, rho: Marginal, method: str = "auto") -> Scalar:
    """Ė = Σ_i ⟨∂E/∂x_i, ẋ_i⟩ with ẋ = velocity(dynamics, x, rho), for any mask, softmax or prefix.

    Equals Σ_i w_i‖ẋ_i‖² for `USA` with a symmetric kernel, rotated values and no mask, and Σ_i w_i Z_i‖ẋ_i‖² for plain
    `SA` (theory.md 1). `x` (n, d) unit rows. Raises `ValueError` as `velocity` does.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> print(f"{mf.observables.energy_rate(mf.USA(mf.Dot()), x, mf.Marginal.circle(2)):.4f}")
        0.2500
    """
    x = _check.tokens(x)
    _check.same_length(x, rho)
    v = velocity(dynamics, x, rho, method)
    functional = bind_energy(dynamics.kernel, rho, dynamics.prefix, x.shape[1], x.dtype, method)
    return jax.jvp(functional, (x,), (v,))[1]
