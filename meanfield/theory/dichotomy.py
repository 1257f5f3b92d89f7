"""Spectral dichotomy: which Fourier mode of a position factor wins (theory.md 2; arXiv 2605.30229)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, Scalar
from ..kernels import PositionFactor
from ..marginal import Marginal


def fourier_coefficients(profile: Callable, modes: int, points: int = 512) -> Float[Array, " K"]:
    """ĝ_k = mean over the circle of g(τ)cos(kτ), k = 0 … modes, for an even 2π-periodic factor g.

    ½ max_k ĝ_k is the maximal energy of h = g(ξ−ζ)⟨x, y⟩ with uniform labels on the circle: k = 0 gives a Dirac, k ≥ 1 a
    great circle. Differentiable in the parameters of `profile`.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(np.round(mf.theory.fourier_coefficients(mf.Cosine(offset=0.3), modes=2), 3))
        [0.3 0.5 0. ]
    """
    tau = jnp.asarray(2 * np.pi * np.arange(points) / points, jnp.result_type(float))
    values = jax.vmap(profile)(tau)
    degrees = jnp.arange(modes + 1, dtype=tau.dtype)
    return jnp.mean(values * jnp.cos(degrees[:, None] * tau), axis=1)


def label_spectrum(profile: Callable, rho: Marginal) -> Float[Array, " n"]:
    """Eigenvalues of (√w_i g(ξ_i−ξ_j) √w_j), descending: the Fourier coefficients of any labels and weights.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(np.round(mf.theory.label_spectrum(mf.Cosine(), mf.Marginal.circle(4)), 3))
        [ 0.5  0.5  0.  -0. ]
    """
    factor = PositionFactor(profile, lambda xi: xi)
    dtype = rho.weights.dtype
    g = jax.vmap(lambda a: jax.vmap(lambda b: factor(a, b, dtype))(rho.labels))(rho.labels)
    root = jnp.sqrt(rho.weights)
    return jnp.linalg.eigvalsh(root[:, None] * g * root)[::-1]


def dirac_rates(coefficients: Float[Array | np.ndarray, " K"], slope: float | Scalar = 1.0) -> Float[Array, " K"]:
    """φ'(1)(ĝ_k − ĝ_0): growth of a displacement cos(kξ) of the Dirac under USA, `slope` = φ'(1).

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(mf.theory.dirac_rates(np.float32([0.25, 0.5]), slope=2.0))
        [0.  0.5]
    """
    g = jnp.asarray(coefficients)
    return jnp.asarray(slope, g.dtype) * (g - g[0])


def dirac_is_stable(coefficients: Float[Array | np.ndarray, " K"]) -> bool:
    """Whether ĝ_0 is the largest coefficient: the Dirac is then linearly stable, for every increasing φ.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> mf.theory.dirac_is_stable(np.float32([0.25, 0.5]))
        False
    """
    g = np.asarray(coefficients)
    return bool(g[0] >= g.max() - 64 * np.finfo(g.dtype).eps * np.abs(g).max())


def linear_maximum(coefficients: Float[Array | np.ndarray, " K"]) -> Scalar:
    """½ max_k ĝ_k, the maximal energy of the linear kernel in any d ≥ 2.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> float(mf.theory.linear_maximum(np.float32([0.25, 0.5])))
        0.25
    """
    return 0.5 * jnp.max(jnp.asarray(coefficients))
