"""States of h = (offset + cos(kτ)) e^{β(t−shift)}/β with uniform labels on the circle, n → ∞ (theory.md 2)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e, i1e
from scipy.optimize import brentq
from scipy.special import ive

from .._callable import as_parameter
from .._types import Array, Float, Parameter, Scalar, ScalarLike

QUADRATURE = 512


def dirac_energy(beta: Parameter, offset: Parameter = 0.0, shift: Parameter = 0.0) -> Float[Array, "..."]:
    """offset·e^{β(1−shift)}/(2β): all tokens at one point.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(f"{mf.theory.dirac_energy(1.0, offset=1.0):.4f}")
        1.3591
    """
    beta, offset, shift = as_parameter(beta), as_parameter(offset), as_parameter(shift)
    return offset * jnp.exp(beta * (1 - shift)) / (2 * beta)


def great_circle_energy(beta: Parameter, offset: Parameter = 0.0, shift: Parameter = 0.0) -> Float[Array, "..."]:
    """(offset·I_0(β) + I_1(β)) e^{−β shift}/(2β): x = (cos kξ, sin kξ, 0, …).

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(f"{mf.theory.great_circle_energy(1.0, offset=0.5):.4f}")
        0.5991
    """
    beta, offset, shift = as_parameter(beta), as_parameter(offset), as_parameter(shift)
    return jnp.exp(beta * (1 - shift)) * (offset * i0e(beta) + i1e(beta)) / (2 * beta)


def latitude_energy(
    sine_squared: Parameter, beta: Parameter, offset: Parameter = 0.0, shift: Parameter = 0.0
) -> Float[Array, "..."]:
    """e^{β(1−shift)−u}(offset·I_0(u) + I_1(u))/(2β), u = β sin²θ: the circle at polar angle θ (d ≥ 3).

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(f"{mf.theory.latitude_energy(0.5, 1.0, offset=0.45):.4f}")
        0.6071
    """
    beta, offset, shift = as_parameter(beta), as_parameter(offset), as_parameter(shift)
    u = beta * as_parameter(sine_squared)
    return jnp.exp(beta * (1 - shift)) * (offset * i0e(u) + i1e(u)) / (2 * beta)


class Latitude(eqx.Module):
    """A critical latitude circle: sin²θ in (0, 1) and its energy; (0, that of the Dirac) where it does not exist.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> mf.theory.latitude_circle(2.0, 0.6).sine_squared  # no latitude circle above offset ½
        0.0
    """

    sine_squared: float
    energy: float


def latitude_circle(beta: float, offset: float, shift: float = 0.0) -> Latitude:
    """The root u = β sin²θ of (1−offset)(I_0(u) − I_1(u)) = I_1(u)/u; it leaves the Dirac at offset = ½.

    A critical point of E, not always a maximum. Where sin²θ would exceed 1 the great circle takes its place (sin²θ = 1).
    Both branches bound the existence: none for offset ≥ ½. Source: theory.md 2.

    Examples:
        >>> circle = mf.theory.latitude_circle(2.0, 0.45)
        >>> print(f"{circle.sine_squared:.4f}, {circle.energy:.4f}")
        0.0955, 0.8394
    """
    beta, offset = float(beta), float(offset)

    def balance(u):
        return (1 - offset) * (ive(0, u) - ive(1, u)) - ive(1, u) / u

    if offset >= 0.5:
        s = 0.0
    elif balance(beta) > 0:
        s = 1.0
    else:
        s = brentq(balance, 1e-9, beta, xtol=1e-14) / beta
    return Latitude(s, float(latitude_energy(s, beta, offset, shift)))


def arcs_energy(k: int, beta: ScalarLike, shift: ScalarLike = 0.0) -> Scalar:
    """E_k = sinc²(1/k)/(2βk) Σ_j cos θ_j e^{β(cos θ_j − shift)}, θ_j = 2πj/k, for g = cos τ: k equal arcs, k directions.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(f"{mf.theory.arcs_energy(2, 4.0, shift=1.0):.5f}")
        0.02532
    """
    if k < 2:
        raise ValueError(f"k={k}: pass at least 2 arcs (one arc is the Dirac, dirac_energy)")
    beta, shift = as_parameter(beta), as_parameter(shift)
    cosine = jnp.asarray(np.cos(2 * np.pi * np.arange(k) / k), beta.dtype)
    return float(np.sinc(1 / k) ** 2) / (2 * beta * k) * jnp.sum(cosine * jnp.exp(beta * (cosine - shift)))


def in_plane_rate(mode: int, beta: ScalarLike, offset: ScalarLike = 0.0) -> Scalar:
    """mean_s[(1−cos ms)(offset + cos s)(β sin²s − cos s)e^{β cos s}]: growth of δθ = cos(mξ) on the great circle (USA).

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> bool(mf.theory.in_plane_rate(2, 1.5) < 0 < mf.theory.in_plane_rate(2, 2.0))  # unstable above β = 1.7866
        True
    """
    beta, offset, s, weight = _quadrature(beta, offset)
    return jnp.mean((1 - jnp.cos(mode * s)) * (offset + jnp.cos(s)) * (beta * jnp.sin(s) ** 2 - jnp.cos(s)) * weight)


def out_of_plane_rate(mode: int, beta: ScalarLike, offset: ScalarLike = 0.0) -> Scalar:
    """mean_s[(offset + cos s)(cos ms − cos s)e^{β cos s}]: growth of a normal displacement cos(mξ), d ≥ 3 (USA).

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> bool(mf.theory.out_of_plane_rate(0, 1.0) < 0)
        True
    """
    beta, offset, s, weight = _quadrature(beta, offset)
    return jnp.mean((offset + jnp.cos(s)) * (jnp.cos(mode * s) - jnp.cos(s)) * weight)


def great_circle_threshold(mode: int, offset: float = 0.0, upper: float = 50.0) -> float:
    """β_m: the least β at which the great circle loses stability to the mode-m deformation in its plane (inf if none).

    For offset 0: 1.7866 (m = 2), 1.8102 (3), 2.4469 (1), 2.4839 (4), 3.3811 (5). Source: theory.md 2.

    Examples:
        >>> print(f"{mf.theory.great_circle_threshold(2):.4f}")
        1.7866
    """

    def rate(beta):
        return float(in_plane_rate(mode, beta, offset))

    return _first_crossing(rate, upper)


def lift_threshold(mode: int = 0, offset: float = 0.0, upper: float = 50.0) -> float:
    """The least β at which the great circle loses stability to a displacement out of its plane (inf if none).

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> mf.theory.lift_threshold(0, offset=0.0)
        1.5451272130014726
    """
    return _first_crossing(lambda beta: float(out_of_plane_rate(mode, beta, offset)), upper)


def _quadrature(beta: ScalarLike, offset: ScalarLike):
    beta, offset = as_parameter(beta), as_parameter(offset)
    s = jnp.asarray(2 * np.pi * np.arange(QUADRATURE) / QUADRATURE, beta.dtype)
    return beta, offset, s, jnp.exp(beta * jnp.cos(s))


def _first_crossing(rate, upper: float) -> float:
    """The least β in (0, upper] at which `rate` turns positive; the scan is finer than any two roots seen."""
    grid = np.concatenate([np.linspace(1e-3, 5, 101), np.linspace(5, upper, 91)[1:]])
    values = np.array([rate(b) for b in grid])
    up = np.flatnonzero((values[:-1] <= 0) & (values[1:] > 0))
    if values[0] > 0:
        return 0.0
    return float("inf") if up.size == 0 else float(brentq(rate, grid[up[0]], grid[up[0] + 1], xtol=1e-12))
