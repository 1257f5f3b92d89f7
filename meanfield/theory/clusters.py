"""Metastable clusters: how long they last, how fast they break (theory.md 1.4, 1.5, 1.7)."""

import jax.numpy as jnp
import numpy as np
from scipy.integrate import quad

from .._callable import as_parameter
from .._types import AnyArray, Array, Float, Scalar, ScalarLike


def two_cluster_time(beta: float, start: float, stop: float) -> float:
    """∫_stop^start (1 + e^{β(1−cos φ)})/(2 sin φ) dφ: the time two equal clusters take from angle `start` to `stop` (SA).

    0 < stop ≤ start < π. From 2 to 0.5 at β = 2, 4, 8: 5.5, 40, 5801. Exponential in β. Source: arXiv 2410.06833.

    Examples:
        >>> print(f"{mf.theory.two_cluster_time(4.0, 2.0, 0.5):.1f}")
        40.4
    """
    if not 0 < stop <= start < np.pi:
        raise ValueError(f"start={start}, stop={stop}: pass angles with 0 < stop ≤ start < π")

    def integrand(phi):
        return (1 + np.exp(beta * (1 - np.cos(phi)))) / (2 * np.sin(phi))

    return float(quad(integrand, stop, start, epsabs=0, epsrel=1e-12, limit=400)[0])


def cluster_rates(k: int, beta: ScalarLike) -> Float[Array, " k"]:
    """(1/k)Σ_m q(2πm/k)(1−cos(2πpm/k)), q(t) = (β sin²t − cos t)e^{β cos t}, p = 0 … k−1: growth rates of k equispaced
    equal clusters on the circle under USA (p = 0 is the rotation).

    Source: theory.md 1.5.

    Examples:
        >>> print(np.round(mf.theory.cluster_rates(3, 4.0), 3))
        [0.         0.47400004 0.47400004]
    """
    beta = as_parameter(beta)
    angle = jnp.asarray(2 * np.pi * np.arange(k) / k, beta.dtype)
    q = (beta * jnp.sin(angle) ** 2 - jnp.cos(angle)) * jnp.exp(beta * jnp.cos(angle))
    return jnp.mean(q * (1 - jnp.cos(jnp.arange(k, dtype=beta.dtype)[:, None] * angle)), axis=1)


def plateau_energy(weights: Float[AnyArray, " c"], beta: ScalarLike) -> Scalar:
    """E ≈ e^β Σ_c W_c²/(2β) at a plateau of separated clusters with weights W_c (the staircase; arXiv 2410.06833).

    Examples:
        >>> print(f"{mf.theory.plateau_energy(np.float32([0.5, 0.5]), 2.0):.4f}")
        0.9236
    """
    beta = as_parameter(beta)
    return jnp.exp(beta) * jnp.sum(jnp.asarray(weights, beta.dtype) ** 2) / (2 * beta)
