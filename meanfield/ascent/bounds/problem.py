"""A pair energy as plain float64 arrays: what every bound works on."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._callable import cast
from ...interaction.bound import bound_terms
from ...kernels import AbstractKernel, Cosine, Dot, ExpDot, Term, slope, terms
from ...kernels.zonal import AbstractZonal
from ...marginal import Marginal
from ..landscape import label_factor

Zonal = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Profile:
    """φ and rate = φ' on [−1, 1] with majorants: |φ(t)| ≤ size and |d²φ(cos θ)/dθ²| ≤ bend; `monotone`: φ' ≥ 0, `convex`: φ'' ≥ 0."""

    phi: Zonal
    rate: Zonal
    size: float
    bend: float
    monotone: bool
    convex: bool


@dataclasses.dataclass(frozen=True)
class Problem:
    """E(y) = ½ Σ_ij w_i w_j Σ_k c_k,ij φ_k(⟨y_i, y_j⟩) over unit y_i ∈ R^dim; all w_i > 0.

    `coefficients` (K, n, n); `positions` (n,) where labels are scalar, else None; `frequencies`: those of cosine factors.
    `y` (n, dim): a good state, in the frame in which the problem is zonal. `slack`: the most that E differs from the
    energy asked for, whose labels are not exactly equispaced.
    """

    weights: np.ndarray
    coefficients: np.ndarray
    profiles: tuple[Profile, ...]
    dim: int
    y: np.ndarray
    positions: np.ndarray | None
    frequencies: tuple[float, ...]
    slack: float = 0.0

    @property
    def scale(self) -> float:
        """Σ w w |c| max|φ| / 2: the size of sums over pairs, for rounding errors."""
        sizes = np.array([p.size for p in self.profiles])
        return 0.5 * float(self.weights @ np.einsum("k,kij->ij", sizes, np.abs(self.coefficients)) @ self.weights)

    def pair(self, t: np.ndarray) -> np.ndarray:
        """φ_k(t), (K, …)."""
        return np.stack([profile.phi(t) for profile in self.profiles])


def problems(kernel: AbstractKernel, rho: Marginal, dim: int, x: np.ndarray) -> tuple[Problem, ...] | None:
    """One problem for each gauge that occurs in `kernel` (their bounds add up), or None without zonal structure."""
    if terms(kernel) is None:
        return None
    eps = max((float(jnp.finfo(a.dtype).eps) for a in jax.tree.leaves(rho.labels) if _floating(a)), default=0.0)
    with jax.enable_x64(True):
        kernel, rho = cast(kernel, jnp.float64), cast(rho, jnp.float64)
        keep = np.asarray(rho.weights) > 0
        rho = Marginal(jax.tree.map(lambda a: a[keep], rho.labels), rho.weights[keep])
        x = jnp.asarray(np.asarray(x, np.float64)[keep])
        even = _equispaced(rho, eps)
        bound, coefficients, frames, y = _evaluate(kernel, even, x)
        given = coefficients if even is rho else _evaluate(kernel, rho, x)[1]
        groups: list[list[int]] = []
        for k, frame in enumerate(frames):
            same = [group for group in groups if _same(frames[group[0]], frame)]
            same[0].append(k) if same else groups.append([k])
        parts = [[(bound[k], coefficients[k], given[k]) for k in group] for group in groups]
        return tuple(_problem(part, y[group[0]], even, dim) for part, group in zip(parts, groups, strict=True))


def _floating(labels) -> bool:
    return jnp.issubdtype(labels.dtype, jnp.floating)


def _equispaced(rho: Marginal, eps: float) -> Marginal:
    """`rho` with scalar labels that are equispaced to the precision `eps` in which they came made so in float64.

    Pairs of one difference then stay one class: in float32, n labels would have n²/2 differences instead of n.
    """
    leaves, tree = jax.tree.flatten(rho.labels)
    if len(leaves) != 1 or leaves[0].ndim != 1 or rho.n < 3 or eps <= np.finfo(float).eps:
        return rho
    labels = np.asarray(leaves[0], np.float64)
    order = np.argsort(labels)
    low, high = labels[order[0]], labels[order[-1]]
    tolerance = 4 * eps * np.abs(labels).max()
    step = (high - low) / (rho.n - 1)
    if abs(rho.n * step - 2 * np.pi) <= 2 * rho.n * tolerance:
        step = 2 * np.pi / rho.n
    grid = low + step * np.arange(rho.n)
    if np.abs(labels[order] - grid).max() > tolerance:
        return rho
    even = np.empty_like(labels)
    even[order] = grid
    return Marginal(jax.tree.unflatten(tree, [jnp.asarray(even)]), rho.weights)


@eqx.filter_jit
def _evaluate(kernel: AbstractKernel, rho: Marginal, x):
    """The bound terms with, for each: coefficients (n, n), frames Q_i (n, d, d) or None, tokens in that frame."""
    n, dim = x.shape
    bound = bound_terms(kernel, rho, dim, x.dtype)

    def factor(term):
        return label_factor(term, rho, x.dtype) if term.factors else jnp.ones((n, n), x.dtype)

    axes = jnp.broadcast_to(jnp.eye(dim, dtype=x.dtype)[:, None, :], (dim, n, dim))
    frames = [jax.vmap(lambda e, t=t: t.gauge(rho.labels, e))(axes) if t.gauges else None for t in bound]
    return bound, [t.scale * factor(t) for t in bound], frames, [t.gauge(rho.labels, x) for t in bound]


def _same(a, b) -> bool:
    return a is None and b is None or (a is not None and b is not None and np.allclose(a, b, atol=1e-13))


def _problem(group: list[tuple[Term, jax.Array, jax.Array]], y, rho: Marginal, dim: int) -> Problem:
    found = [term for term, _, _ in group]
    profiles = tuple(profile(term.zonal) for term in found)
    coefficients, given = (np.stack([np.asarray(part[k]) for part in group]) for k in (1, 2))
    coefficients = 0.5 * (coefficients + coefficients.transpose(0, 2, 1))
    sizes = np.array([shape.size for shape in profiles])
    weights = np.asarray(rho.weights)
    leaves = jax.tree.leaves(rho.labels)
    scalar = len(leaves) == 1 and leaves[0].ndim == 1
    return Problem(
        weights=weights,
        coefficients=coefficients,
        profiles=profiles,
        dim=dim,
        y=np.asarray(y),
        positions=np.asarray(leaves[0], np.float64) if scalar else None,
        frequencies=tuple(
            float(f.profile.frequency) for term in found for f in term.factors if isinstance(f.profile, Cosine)
        ),
        slack=0.5 * float(weights @ np.einsum("k,kij->ij", sizes, np.abs(given - coefficients)) @ weights),
    )


def profile(zonal: AbstractZonal) -> Profile:
    """Values and majorants of φ: by formula for `Dot` and `ExpDot`, from a fine grid for others."""
    with jax.enable_x64(True):
        if isinstance(zonal, Dot):
            return Profile(lambda t: t, np.ones_like, 1.0, 1.0, True, True)
        if isinstance(zonal, ExpDot):
            beta, shift = float(zonal.beta), float(zonal.shift)

            def phi(t):
                return np.exp(beta * (t - shift)) / beta

            top = float(np.exp(beta * (1 - shift)))
            return Profile(phi, lambda t: np.exp(beta * (t - shift)), top / beta, (beta + 1) * top, True, True)
        return _sampled_profile(cast(zonal, jnp.float64))


def _sampled_profile(zonal: AbstractZonal, points: int = 8193) -> Profile:
    """Majorants of an arbitrary smooth φ: largest values on a fine grid, doubled where they bound an error."""

    def phi(t):
        with jax.enable_x64(True):
            return np.asarray(zonal.phi(jnp.asarray(t)))

    def rate(t):
        with jax.enable_x64(True):
            return np.asarray(slope(zonal, jnp.asarray(t)))

    theta = jnp.linspace(0, jnp.pi, points)

    def turned(a):
        return zonal.phi(jnp.cos(a))

    second = jax.vmap(jax.grad(jax.grad(turned)))(theta)
    t = jnp.linspace(-1, 1, points)
    rates = slope(zonal, t)
    convexity = jax.vmap(jax.grad(jax.grad(zonal.phi)))(t)
    bend, size = float(jnp.max(jnp.abs(second))), float(jnp.max(jnp.abs(turned(theta))))
    spacing = 2 / (points - 1)
    monotone = float(jnp.min(rates)) > spacing * float(jnp.max(jnp.abs(convexity)))
    return Profile(phi, rate, size, 2 * bend, monotone, bool(jnp.min(convexity) > 0))
