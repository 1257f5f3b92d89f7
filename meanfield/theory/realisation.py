"""Kernels and marginals whose maximiser has a given law, exactly (theory.md 2; arXiv 2605.30229)."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check, sphere
from .._callable import as_callable
from .._types import AnyArray, Array, Float, Function, Label, Labels
from ..kernels import AbstractKernel, ExpDot, Gauge, RoPE
from ..marginal import Marginal
from .orbits import align, rope_orbit

GRID = 8192


class Realisation(eqx.Module):
    """`x` (n, d) maximises `kernel` under `rho`, and its law is the target's up to `distance`."""

    kernel: AbstractKernel
    rho: Marginal
    x: Float[Array, "n d"]
    distance: float


class TargetGauge(eqx.Module):
    """ξ ↦ Q_ξ with Q_ξ f(ξ) = u: the gauge under which f(ξ) is the maximiser. f (`target`) stays a differentiable pytree."""

    target: Function = eqx.field(converter=as_callable)
    u: Float[Array, " d"] = eqx.field(converter=jnp.asarray)

    def __call__(self, xi: Label) -> Float[Array, "d d"]:
        """Q_ξ, orthogonal."""
        f = jnp.asarray(self.target(xi))
        return align(f / jnp.sqrt(jnp.sum(f * f)), self.u.astype(f.dtype))


def realize_law(
    target: Float[AnyArray, "n d"] | Callable,
    prompts: Labels | None = None,
    inner: AbstractKernel | None = None,
    u: Float[AnyArray, " d"] | None = None,
) -> Realisation:
    """A gauge kernel whose maximiser has a given law on S^{d-1}.

    `target`: samples (n, d) of the law (they are then their own labels), or a map prompt ↦ R^d ∖ 0 with `prompts`: labels
    with leading axis n. The kernel is Gauge(inner, TargetGauge), the marginal uniform on the labels, and x*(ξ) = f(ξ)/‖f(ξ)‖
    is a maximiser of energy ½φ(1), unique up to a rotation of the gauged frame; `distance` is 0. `inner` defaults to
    ExpDot(1), `u` to the last axis. A finite sample realises itself exactly, not the law that it was drawn from.
    """
    if prompts is None:
        if callable(target):
            raise ValueError("target is a map but prompts is None: pass the labels that it is applied to")
        samples = _check.tokens(target, "target", unit=True)
        f, prompts = _itself, samples
    else:
        f = as_callable(target)
    points = sphere.normalize(jax.vmap(f)(prompts))
    u = jnp.zeros(points.shape[1], points.dtype).at[-1].set(1) if u is None else jnp.asarray(u, points.dtype)
    kernel = Gauge(ExpDot(1.0) if inner is None else inner, TargetGauge(f, u))
    return Realisation(kernel, Marginal(prompts), points, 0.0)


def realize_orbit(
    target: Callable | Float[AnyArray, " n"],
    u: Float[AnyArray, " d"],
    n: int = 256,
    frequency: float = 1.0,
    inner: AbstractKernel | None = None,
) -> Realisation:
    """ρ such that the RoPE maximiser R_{ωξ}ᵀu has a given law of the orbit angle θ = ωξ.

    `target`: a density on [0, 2π) (any positive scale; realised by n equally likely quantiles), or samples of the angle
    (realised exactly). `distance`: W₁ on the circle, in radians, between target and realised law. Labels are θ/ω.
    """
    if callable(target):
        angles, distance = _quantiles(target, n)
    else:
        angles, distance = np.asarray(target, np.float64), 0.0
        if angles.ndim != 1 or not np.isfinite(angles).all():
            raise ValueError(f"target has shape {angles.shape}: pass finite angles (n,), or a density")
    u = _check.as_array(u, "u")
    rho = Marginal(jnp.asarray(angles / frequency, u.dtype))
    frequencies = jnp.asarray([frequency], u.dtype)
    kernel = RoPE(ExpDot(1.0) if inner is None else inner, frequencies)
    return Realisation(kernel, rho, rope_orbit(u, rho, frequencies), distance)


def circle_distance(
    a: Float[AnyArray, " n"],
    b: Float[AnyArray, " m"],
    weights_a: AnyArray | None = None,
    weights_b: AnyArray | None = None,
) -> float:
    """W₁ on the circle between two weighted sets of angles: min_c ∫|F_a − F_b − c| dθ, the median c. In radians."""
    grid = np.sort(np.concatenate([np.mod(np.asarray(v, np.float64), 2 * np.pi) for v in (a, b)]))
    edges = np.append(grid, grid[0] + 2 * np.pi)
    difference = _cdf(a, weights_a, grid) - _cdf(b, weights_b, grid)
    length = np.diff(edges)
    order = np.argsort(difference)
    middle = difference[order][np.searchsorted(np.cumsum(length[order]), np.pi)]
    return float(np.sum(np.abs(difference - middle) * length))


def _itself(xi):
    return xi


def _cdf(angles, weights, grid: np.ndarray) -> np.ndarray:
    angles = np.mod(np.asarray(angles, np.float64), 2 * np.pi)
    w = np.full(len(angles), 1 / len(angles)) if weights is None else np.asarray(weights, np.float64)
    order = np.argsort(angles)
    below = np.concatenate([[0.0], np.cumsum(w[order])])
    return below[np.searchsorted(angles[order], grid, side="right")]


def _quantiles(density: Callable, n: int) -> tuple[np.ndarray, float]:
    """Angles F⁻¹((i + ½)/n) of a density, and W₁ between it (as masses on a fine grid) and them."""
    theta = 2 * np.pi * (np.arange(GRID) + 0.5) / GRID
    values = np.asarray(jax.vmap(density)(jnp.asarray(theta)), np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or values.sum() <= 0:
        raise ValueError("target is not a density: it must be finite and non-negative on [0, 2π), and not zero")
    mass = values / values.sum()
    edges = np.concatenate([[0.0], np.cumsum(mass)])
    angles = np.interp((np.arange(n) + 0.5) / n, edges, 2 * np.pi * np.arange(GRID + 1) / GRID)
    return angles, circle_distance(theta, angles, mass)
