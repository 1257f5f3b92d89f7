"""Learnable profiles τ ↦ g(τ) for `mf.Toeplitz`: even in τ, so that the kernel stays symmetric."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import AnyArray, Array, Float, Scalar, ScalarLike

Coefficients = Float[Array, " m"]
Given = Float[AnyArray, "..."] | Sequence[float]


class FourierProfile(eqx.Module):
    """g(τ) = a_0 + Σ_{k ≥ 1} a_k cos(k ω τ).

    - `coefficients`: (a_0, …, a_m), fitted; `frequency`: ω, fitted too unless `stop_gradient` is put on it. With ω = 1 and
      labels on the circle the a_k are the Fourier coefficients of theory.md 2.

    Examples:
        >>> g = mf.design.FourierProfile(jnp.asarray([0.25, 1.0]))
        >>> float(g(jnp.asarray(0.0)))
        1.25
    """

    coefficients: Coefficients
    frequency: Scalar

    def __init__(self, coefficients: Given, frequency: ScalarLike = 1.0):
        self.coefficients = jnp.asarray(coefficients)
        self.frequency = jnp.asarray(frequency, self.coefficients.dtype)
        if self.coefficients.ndim != 1 or not jnp.issubdtype(self.coefficients.dtype, jnp.floating):
            raise ValueError(
                f"coefficients is {self.coefficients.dtype}{list(self.coefficients.shape)}: give floats (m+1,)"
            )

    def __call__(self, tau: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """a_0 + Σ a_k cos(k ω τ), elementwise."""
        tau = jnp.asarray(tau)
        k = self.frequency.astype(tau.dtype) * jnp.arange(len(self.coefficients), dtype=tau.dtype)
        return jnp.cos(tau[..., None] * k) @ self.coefficients.astype(tau.dtype)


class MonotoneSpline(eqx.Module):
    """g(τ) = b + Σ_k s_k (1 − I_k(|τ|)), s_k = softplus(c_k) ≥ 0: twice differentiable and non-increasing in |τ|.

    I_k is the integral of the quadratic B-spline on the k-th of m uniform, overlapping supports that cover [0, `reach`], so
    g falls from b + Σ s_k to b, where it stays beyond `reach`. Equal c_k give a straight line in the interior.

    - `slopes`: c (m,), fitted; `floor`: b, fitted; `reach`: where g stops falling, kept.

    Examples:
        >>> g = mf.design.MonotoneSpline(jnp.zeros(6), reach=2.0)
        >>> bool(g(jnp.asarray(0.5)) > g(jnp.asarray(1.5)) > g(jnp.asarray(3.0)))
        True
    """

    slopes: Coefficients
    floor: Scalar
    reach: float = eqx.field(static=True)

    def __init__(self, slopes: Given, reach: float | int, floor: ScalarLike = 0.0):
        self.slopes = jnp.asarray(slopes)
        self.floor = jnp.asarray(floor, self.slopes.dtype)
        self.reach = float(reach)
        if self.slopes.ndim != 1 or len(self.slopes) < 1 or not jnp.issubdtype(self.slopes.dtype, jnp.floating):
            raise ValueError(f"slopes is {self.slopes.dtype}{list(self.slopes.shape)}: give floats (m,)")
        if not self.reach > 0:
            raise ValueError(f"reach={reach}: give the positive |τ| where the profile ends")

    def __call__(self, tau: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """b + Σ softplus(c_k) (1 − I_k(|τ|)), elementwise."""
        tau, m = jnp.asarray(tau), len(self.slopes)
        # supports [k h, (k + 3) h] with h = reach / (m + 2): the last ends at reach
        step = jnp.abs(tau)[..., None] * ((m + 2) / self.reach) - jnp.arange(m, dtype=tau.dtype)
        steps = jax.nn.softplus(self.slopes.astype(tau.dtype))
        return self.floor.astype(tau.dtype) + (1 - _integrated(step)) @ steps


def _integrated(s: Float[Array, "... m"]) -> Float[Array, "... m"]:
    """∫_0^s of the quadratic B-spline with knots 0, 1, 2, 3: 0 before, 1 after."""
    first = s**3 / 6
    middle = 1 / 6 + (-(s**3) / 3 + 3 * s**2 / 2 - 3 * s / 2) - (-1 / 3 + 3 / 2 - 3 / 2)
    last = 1 - (3 - s) ** 3 / 6
    inner = jnp.where(s < 1, first, jnp.where(s < 2, middle, last))
    return jnp.where(s <= 0, 0, jnp.where(s >= 3, 1, inner))
