"""Kernels and marginals whose maximiser has a given law, exactly (theory.md 2; arXiv 2605.30229)."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check, sphere
from .._callable import as_callable, as_parameter
from .._types import AnyArray, Array, Float, Function, Label, Labels, Scalar, ScalarLike, Vector
from ..kernels import AbstractKernel, ExpDot, Gauge, Pair, RoPE
from ..marginal import Marginal
from .orbits import align, rope_orbit

GRID = 8192


class Realisation(eqx.Module):
    """`x` (n, d) maximises `kernel` under `rho`, and its law is the target's up to `distance`.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> law = mf.theory.realize_law(np.float32([[1, 0], [0, 1], [-1, 0]]))
        >>> law.x.shape, law.rho.n, law.distance
        ((3, 2), 3, 0.0)
    """

    kernel: AbstractKernel
    rho: Marginal
    x: Float[Array, "n d"]
    distance: float


class TargetGauge(eqx.Module):
    """ξ ↦ Q_ξ with Q_ξ f(ξ) = u: the gauge under which f(ξ) is the maximiser. f (`target`) stays a differentiable pytree.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> gauge = mf.theory.TargetGauge(lambda xi: jnp.stack([jnp.cos(xi), jnp.sin(xi)]), jnp.asarray([0.0, 1.0]))
        >>> print(np.round(gauge(0.0) @ jnp.asarray([1.0, 0.0]), 3))
        [0. 1.]
    """

    target: Function = eqx.field(converter=as_callable)
    u: Float[Array, " d"] = eqx.field(converter=jnp.asarray)

    def __call__(self, xi: Label) -> Float[Array, "d d"]:
        """Q_ξ, orthogonal."""
        f = jnp.asarray(self.target(xi))
        return align(f / jnp.sqrt(jnp.sum(f * f)), self.u.astype(f.dtype))


class AnchorPair(eqx.Module):
    """strength (1 + ⟨x, f(ξ)⟩)(1 + ⟨y, f(ζ)⟩) for unit f: largest where every token is at its target.

    Source: theory.md 2 (gauge realisation); the anchor is an addition of this library.

    Examples:
        >>> pair = mf.theory.AnchorPair(lambda xi: jnp.asarray([1.0, 0.0]), 0.5)
        >>> x = jnp.asarray([1.0, 0.0])
        >>> float(pair(x, 0.0, x, 1.0))
        2.0
    """

    target: Function = eqx.field(converter=as_callable)
    strength: Float[Array, ""] = eqx.field(converter=as_parameter)

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """One pair."""
        return self.strength.astype(x.dtype) * self._reach(x, xi) * self._reach(y, zeta)

    def _reach(self, x: Vector, xi: Label) -> Scalar:
        f = jnp.asarray(self.target(xi), x.dtype)
        return 1 + jnp.dot(x, f) / jnp.sqrt(jnp.dot(f, f))


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

    The maximisers are x_v(ξ) = Q_ξᵀv, v ∈ S^{d-1}. In the plane x_v is x* turned as a whole. For d = 3 and a law of
    non-zero mean without symmetry no gauge has that property: the turn would be a continuous section of SO(3) → S².
    `anchored` removes the freedom.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> law = mf.theory.realize_law(np.float32([[1, 0], [0, 1], [-1, 0]]))
        >>> print(f"{mf.energy(law.kernel, law.x, law.rho):.4f}, φ(1)/2 = {np.e / 2:.4f}")
        1.3591, φ(1)/2 = 1.3591
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


def anchored(law: Realisation, strength: ScalarLike = 0.1) -> Realisation:
    """`law` of `realize_law` with the kernel's freedom removed: x* is the only maximiser, of energy ½φ(1) + 2·strength.

    Adds `AnchorPair`, which attracts the token of label ξ to f(ξ); in the gauged frame both terms are largest where all
    tokens are at u, and only there. The flow from almost every start ends at x* itself. Costs mapped sums over all pairs.

    Source: theory.md 2 (gauge realisation); the anchor is an addition of this library.

    Examples:
        >>> law = mf.theory.anchored(mf.theory.realize_law(np.float32([[1, 0], [0, 1]])), strength=0.1)
        >>> print(f"{mf.energy(law.kernel, law.x, law.rho):.4f}, φ(1)/2 + 0.2 = {np.e / 2 + 0.2:.4f}")
        1.5591, φ(1)/2 + 0.2 = 1.5591
    """
    if not isinstance(law.kernel, Gauge) or not isinstance(law.kernel.map, TargetGauge):
        raise ValueError("law.kernel has no TargetGauge: pass what realize_law returned")
    anchor = Pair(AnchorPair(law.kernel.map.target, strength))
    return Realisation(law.kernel + anchor, law.rho, law.x, law.distance)


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

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> law = mf.theory.realize_orbit(lambda theta: 1 + jnp.cos(theta), np.float32([1, 0]), n=8)
        >>> law.x.shape, law.distance < 0.5
        ((8, 2), True)
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
    """W₁ on the circle between two weighted sets of angles: min_c ∫|F_a − F_b − c| dθ, the median c. In radians.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(f"{mf.theory.circle_distance(np.zeros(1), np.full(1, 0.5)):.3f}")
        0.500
    """
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
