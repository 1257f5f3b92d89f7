"""Zonal harmonics of e^{βt} and the linear stability of the uniform law (theory.md 1.6, 1.8, 1.9)."""

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, iv, roots_jacobi

from .._callable import as_parameter
from .._types import AnyArray, Array, Float, Int, Scalar, ScalarLike

NODES = 128


def funk_hecke(beta: ScalarLike, dim: int, degree: int) -> Scalar:
    """λ_l(β) = Γ(d/2)(2/β)^{d/2−1} I_{l+d/2−1}(β), the eigenvalue of e^{β⟨x,y⟩} on harmonics of degree l of S^{d-1}.

    Computed as Γ(d/2)(β/2)^l/(√π Γ(l+(d−1)/2)) ∫ e^{βt}(1−t²)^{l+(d−3)/2} dt by Gauss–Jacobi quadrature: every summand is
    positive, so λ is accurate to rounding for every l, and differentiable in β.

    Source: theory.md 1.6.

    Examples:
        >>> print(f"{mf.theory.funk_hecke(1.0, dim=3, degree=0):.4f}, sinh(1) = {np.sinh(1.0):.4f}")
        1.1752, sinh(1) = 1.1752
    """
    if dim < 2 or degree < 0:
        raise ValueError(f"dim={dim}, degree={degree}: pass dim ≥ 2 and degree ≥ 0")
    beta = as_parameter(beta)
    alpha = degree + (dim - 3) / 2
    nodes, weights = roots_jacobi(NODES, alpha, alpha)
    constant = np.exp(gammaln(dim / 2) - gammaln(degree + (dim - 1) / 2)) / np.sqrt(np.pi)
    integral = jnp.exp(beta * jnp.asarray(nodes, beta.dtype)) @ jnp.asarray(constant * weights, beta.dtype)
    return (beta / 2) ** degree * integral


def growth_rates(
    beta: ScalarLike, dim: int, degrees: Int[AnyArray, " L"] | list[int], softmax: bool = False
) -> Float[Array, " L"]:
    """Growth rate l(l+d−2)λ_l/β of a harmonic of degree l on the uniform law (USA), divided by λ_0 for SA.

    `degrees` (L,) concrete integers. On the circle the fastest l is about √(2β). Source: theory.md 1.6.

    Examples:
        >>> print(np.round(mf.theory.growth_rates(2.0, dim=2, degrees=[1, 2, 3], softmax=True), 3))
        [0.349      0.60400003 0.42000002]
    """
    beta = as_parameter(beta)
    norm = funk_hecke(beta, dim, 0) if softmax else 1
    rates = [l * (l + dim - 2) * funk_hecke(beta, dim, l) / (beta * norm) for l in map(int, np.asarray(degrees))]
    return jnp.stack(rates)


def label_growth_rates(
    coefficients: Float[AnyArray, " K"], beta: ScalarLike, dim: int, degrees: Int[AnyArray, " L"] | list[int]
) -> Float[Array, "K L"]:
    """Growth rates ĝ_k l(l+d−2)λ_l/β of label mode k and degree l on the uniform law with a position factor g (USA).

    Source: theory.md 1.6.

    Examples:
        >>> mf.theory.label_growth_rates(np.float32([0.5, 0.25]), 1.0, dim=3, degrees=[1, 2, 3]).shape
        (2, 3)
    """
    rates = growth_rates(beta, dim, degrees)
    return jnp.asarray(coefficients, rates.dtype)[:, None] * rates


def initial_modes(beta: ScalarLike) -> float:
    """√(Σ l⁴I_l²/Σ l²I_l²) ≈ √(3β/2): expected modes of the initial kernel density on the circle, n → ∞ (theory.md 1.8).

    Examples:
        >>> print(f"{mf.theory.initial_modes(50.0):.2f}, √(3β/2) = {np.sqrt(75):.2f}")
        8.65, √(3β/2) = 8.66
    """
    l = np.arange(1, int(20 * np.sqrt(float(beta)) + 40))
    scaled = iv(l, float(beta)) / iv(0, float(beta))
    return float(np.sqrt(np.sum(l**4 * scaled**2) / np.sum(l**2 * scaled**2)))


def noise_threshold(beta: ScalarLike, dim: int) -> Scalar:
    """σ^{-2} = β/(2λ_1): with generator ½σ²Δ the uniform law is unstable above (arXiv 2606.05140; theory.md 1.9).

    Examples:
        >>> print(f"{mf.theory.noise_threshold(2.0, dim=2):.4f}")
        0.6287
    """
    beta = as_parameter(beta)
    return beta / (2 * funk_hecke(beta, dim, 1))


def tricritical_beta(dim: int) -> float:
    """β_* with I_{d/2+1}(β_*)/I_{d/2}(β_*) = 1/d: the noise transition is continuous iff β ≤ β_* (2.4469 for d = 2).

    Source: theory.md 1.9; arXiv 2606.05140.

    Examples:
        >>> print(f"{mf.theory.tricritical_beta(2):.4f}")
        2.4469
    """

    def ratio(b):
        return iv(dim / 2 + 1, b) / iv(dim / 2, b) - 1 / dim

    return float(brentq(ratio, 1e-3, 20.0, xtol=1e-13))
