"""Front door: the velocity of a dynamics at given tokens."""

from .. import _check
from .._callable import evaluate
from .._types import Array, Devices, Float, Tokens
from ..interaction import place, plan
from ..marginal import Marginal
from .base import AbstractDynamics, require_dynamics
from .refuse import refuse_values


def velocity(
    dynamics: AbstractDynamics, x: Tokens, rho: Marginal, method: str = "auto", devices: Devices = None
) -> Float[Array, "n d"]:
    """ẋ (n, d), tangent at x (theory.md 1).

    Args:
        dynamics: `USA`, `SA`, or any `AbstractDynamics`.
        x: tokens (n, d), unit rows; the dtype of everything.
        rho: labels and weights of the n tokens.
        method: "auto", "dense", "blocked", "expansion" or, on GPUs, "pallas" (docs/choosing.md).
        devices: devices, or a one-dimensional mesh, over which tokens are shared out.

    Raises:
        ValueError: when rows are NaN or zero, shapes are wrong, lengths differ, or a method is unknown.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> print(mf.velocity(mf.USA(mf.Dot()), x, mf.Marginal.circle(2)))  # each is drawn to the other
        [[0.  0.5]
         [0.5 0. ]]
    """
    require_dynamics(dynamics)
    x = _check.tokens(x)
    _check.same_length(x, rho)
    refuse_values(dynamics, x.dtype)
    chosen = plan(method, devices)
    x, rho = place((x, rho), chosen)
    return evaluate(dynamics.bind(rho, x.shape[1], x.dtype, chosen), x)
