"""Mixing schedules λ_1 … λ_T: how much of each layer's output its attention makes up."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ._inputs import Numbers, check_range, floating


def constant_mixing(depth: int, value: Numbers) -> Float[Array, " T"]:
    """λ_t = value, (depth,).

    Source: theory.md 3.6; arXiv 2602.16837.

    Examples:
        >>> print(mf.propagation.constant_mixing(3, 0.25))
        [0.25 0.25 0.25]
    """
    return _checked(jnp.broadcast_to(floating(value), (_depth(depth),)))


def power_mixing(depth: int, scale: Numbers, exponent: Numbers) -> Float[Array, " T"]:
    """λ_t = scale / t^exponent for t = 1 … depth, (depth,).

    Source: theory.md 3.6; arXiv 2602.16837.

    Examples:
        >>> print(mf.propagation.power_mixing(4, scale=0.5, exponent=1.0))
        [0.5        0.25       0.16666667 0.125     ]
    """
    scale = floating(scale)
    t = jnp.arange(1, _depth(depth) + 1).astype(scale.dtype)
    return _checked(scale / t ** floating(exponent, scale.dtype))


def measured_mixing(attention_norm: Numbers, residual_norm: Numbers) -> Float[Array, " T"]:
    """λ_t = mean of ‖a‖/(‖x‖ + ‖a‖) over positions, then over sequences (arXiv 2602.16837).

    Args:
        attention_norm: ‖a‖ of what attention adds, (…, T, n).
        residual_norm: ‖x‖ of the residual stream entering, (…, T, n).

    Examples:
        >>> print(mf.propagation.measured_mixing(np.ones((2, 3), np.float32), 3 * np.ones((2, 3), np.float32)))
        [0.25 0.25]
    """
    a = floating(attention_norm)
    x = floating(residual_norm, a.dtype)
    if a.shape != x.shape or a.ndim < 2:
        raise ValueError(f"attention_norm {a.shape} and residual_norm {x.shape} must both be (…, T, n)")
    total = a + x
    ratio = jnp.where(total > 0, a / jnp.where(total > 0, total, 1), 0)
    mean = ratio.mean(-1)
    return _checked(mean.reshape(-1, mean.shape[-1]).mean(0))


def _depth(depth: int) -> int:
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ValueError(f"depth = {depth!r} must be an integer ≥ 1: the number of layers")
    return depth


def _checked(mixing: Float[Array, " T"]) -> Float[Array, " T"]:
    check_range("mixing", mixing, 0.0, 1.0, "a mixing coefficient is a share of the layer's output")
    return mixing
