"""The harmonic response of causal flows on the circle: a rollout with gain (arXiv 2605.09213; theory.md 4)."""

import jax.numpy as jnp
import jax.scipy.linalg
import jax.scipy.special as special

from .._callable import as_parameter
from .._types import AnyArray, Array, Float, ScalarLike
from .propagation import alibi_variable

TERMS = 64


def harmonic_response(total: ScalarLike, length: int, slope: ScalarLike) -> Float[Array, " n"]:
    """E cos p(θ_n(t) − θ_k(0)), k = 0 … n − 1: the last row of e^{Λa}, a the ALiBi attention without the weight of a token on itself.

    For θ̇_i = Σ_j a_ij e^{β cos(θ_j − θ_i)} sin(θ_j − θ_i) from independent uniform angles: a_ij ∝ e^{−slope (i − j)}, j ≤ i, rows summing to 1.
    A token exerts no force on itself, so a_ii counts in the row's sum only. Exact to first order in Λ, and up to O(1/n).

    Args:
        total: Λ = t · `growth_rates(beta, 2, [p])`.
        length: n.
        slope: of a_ij.

    Returns:
        (n,); the last entry, 1, is the atom.

    Examples:
        >>> print(np.asarray(mf.theory.harmonic_response(0.5, length=4, slope=0.0)).round(3))
        [0.152 0.135 0.125 1.   ]
    """
    slope = as_parameter(slope)
    i = jnp.arange(length).astype(slope.dtype)
    lag = i[:, None] - i[None, :]
    weights = jnp.where(lag >= 0, jnp.exp(-slope * jnp.maximum(lag, 0)), 0)
    attention = jnp.tril(weights / weights.sum(1, keepdims=True), -1)
    return jax.scipy.linalg.expm(jnp.asarray(total, slope.dtype) * attention)[-1]


def harmonic_density(
    total: ScalarLike, positions: Float[AnyArray, " m"] | list[float], decay: ScalarLike = 0.0
) -> Float[Array, " m"]:
    """√(Λ/L) I_1(2√(ΛL)) dv/ds, L = −log v: the limit of n·`harmonic_response` at s = k/n as n → ∞ with slope·n = decay fixed.

    v(s) = (e^{decay s} − 1)/(e^{decay} − 1) as in `continuum_profile`, of which this is e^Λ times the limit of many layers with Σλ_t = Λ: paths of
    k ≥ 1 steps weigh Λ^k/k!, and the atom is left out.

    Examples:
        >>> print(np.asarray(mf.theory.harmonic_density(0.5, [0.25, 0.5, 1.0])).round(3))
        [0.695 0.592 0.5  ]
    """
    positions = jnp.atleast_1d(jnp.asarray(positions))
    total = jnp.asarray(total, positions.dtype)
    depth, density = alibi_variable(positions, jnp.asarray(decay, positions.dtype))
    k = jnp.arange(TERMS).astype(positions.dtype)
    terms = (
        special.xlogy(k + 1, total) + special.xlogy(k, depth[:, None]) - special.gammaln(k + 1) - special.gammaln(k + 2)
    )
    return jnp.exp(terms).sum(-1) * density
