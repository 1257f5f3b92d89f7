"""Positive definite functions on labels × sphere: the tightest bound, by convex minimisation."""

import dataclasses

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from .grid import angles, pad, zonal_harmonics
from .problem import Problem

GRID = 96
FINE = 4096
TEMPERATURES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
ROUNDING = 1e-9  # pairs closer than this in every feature form one class


@dataclasses.dataclass(frozen=True)
class Classes:
    """Pairs i ≠ j that no feature distinguishes: Σ w_i w_j (m,), coefficients (m, K) and label features (m, F) of one."""

    mass: np.ndarray
    coefficients: np.ndarray
    features: np.ndarray


def delsarte(problem: Problem, frequencies: int = 12, degrees: int = 12, iterations: int = 300) -> float:
    """½ Σ_ij w_i w_j max_t [Σ_k c_k,ij φ_k(t) + F_ij(t)], the diagonal at t = 1, F = Σ_ml b_ml f_m(ij) P_l(t), b ≥ 0.

    f_m is positive definite on labels (cosines of scalar differences, or eigenvectors of the coefficients), so F is on
    labels × sphere and Σ_ij w_i w_j F_ij ≥ 0. b minimises a smoothed maximum over a grid (L-BFGS-B, decreasing
    temperature); any b is valid, and the final maximum is padded by |d²/dθ²| h²/8 and by rounding (theory.md 2 iv).
    """
    classes, diagonal = _classes(problem, frequencies)
    unit = max(float(np.abs(_pair_values(problem, classes, np.array([1.0, 0.0, -1.0]))).max()), 1e-300)
    b = _minimise(problem, classes, diagonal, degrees, unit, iterations)
    return _rigorous(problem, classes, diagonal, np.maximum(b, 0) * unit)


def _classes(problem: Problem, frequencies: int) -> tuple[Classes, tuple[float, np.ndarray]]:
    """Classes of pairs off the diagonal; for the diagonal its energy ½ Σ w² ψ(1) and Σ w_i² f_m(ii)."""
    w = problem.weights
    n = len(w)
    features = _label_features(problem, frequencies)
    i, j = np.triu_indices(n, 1)
    table = np.concatenate([problem.coefficients[:, i, j], features[:, i, j]]).T
    size = np.maximum(np.abs(table).max(axis=0), 1e-300)
    keys = np.round(table / (ROUNDING * size)).astype(np.int64)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    mass = 2 * np.bincount(inverse.ravel(), weights=w[i] * w[j], minlength=len(first))
    k = len(problem.profiles)
    at_one = problem.pair(np.ones(1))[:, 0]
    own = float((w * w) @ np.einsum("k,kii->i", at_one, problem.coefficients))
    return Classes(mass, table[first, :k], table[first, k:]), (own, np.einsum("i,fii->f", w * w, features))


def _label_features(problem: Problem, count: int) -> np.ndarray:
    """(F, n, n) positive semidefinite matrices: cos(ω_m(ξ_i − ξ_j)), or outer products of leading eigenvectors."""
    if problem.positions is not None:
        tau = problem.positions[:, None] - problem.positions
        omega = _base_frequency(problem) * np.arange(count + 1)
        extra = [f for f in problem.frequencies if not np.isclose(omega, f, rtol=1e-9).any()]
        return np.cos(np.concatenate([omega, extra])[:, None, None] * tau)
    root = np.sqrt(problem.weights)
    _, vectors = np.linalg.eigh(root[:, None] * problem.coefficients.sum(axis=0) * root)
    top = (vectors[:, ::-1][:, :count] / root[:, None]).T
    return np.concatenate([np.ones((1, len(root), len(root))), top[:, :, None] * top[:, None, :]])


def _base_frequency(problem: Problem) -> float:
    """1 on a full circle of labels, else half a period over their range."""
    n = len(problem.weights)
    steps = np.diff(np.sort(problem.positions))
    if n > 1 and np.allclose(steps, 2 * np.pi / n, rtol=1e-5):
        return 1.0
    reach = float(np.ptp(problem.positions))
    return np.pi / reach if reach > 0 else 1.0


def _pair_values(problem: Problem, classes: Classes, t: np.ndarray) -> np.ndarray:
    """Σ_k c_k φ_k(t) of every class, (m, T)."""
    return classes.coefficients @ problem.pair(t)


def _smoothed(b, temperature, mass, values, features, harmonics, diagonal) -> tuple[float, np.ndarray]:
    """Σ mass·temperature·logsumexp_t[(values + features b harmonics)/temperature] + Σ diagonal b, and its gradient."""
    b = b.reshape(features.shape[1], harmonics.shape[0])
    inside = values + features @ (b @ harmonics)
    peaks = inside.max(axis=1, keepdims=True)
    exponential = np.exp((inside - peaks) / temperature)
    sums = exponential.sum(axis=1, keepdims=True)
    value = mass @ (peaks + temperature * np.log(sums))[:, 0] + np.sum(diagonal @ b)
    gradient = features.T @ (mass[:, None] * exponential / sums) @ harmonics.T + diagonal[:, None]
    return value, gradient.ravel()


def _minimise(problem, classes, diagonal, degrees, unit, iterations) -> np.ndarray:
    t = np.cos(angles(GRID))
    harmonics = zonal_harmonics(degrees, problem.dim, t)
    shape = (classes.features.shape[1], degrees + 1)
    arrays = (classes.mass, _pair_values(problem, classes, t) / unit, classes.features, harmonics, diagonal[1])
    b = np.zeros(shape[0] * shape[1])
    options = {"maxiter": iterations, "maxcor": 30, "maxfun": 4 * iterations, "ftol": 1e-9, "gtol": 1e-10}
    # thousands of tiny products: threads would only wait for each other
    with threadpool_limits(1, user_api="blas"):
        for temperature in TEMPERATURES:
            arguments = {"args": (temperature, *arrays), "jac": True, "method": "L-BFGS-B", "options": options}
            b = minimize(_smoothed, b, bounds=[(0, None)] * b.size, **arguments).x
    return b.reshape(shape)


def _rigorous(problem, classes, diagonal, b) -> float:
    """The bound that b proves: maxima on a finer grid, padded for what lies between grid points and for classes."""
    t = np.cos(angles(FINE))
    degrees = np.arange(b.shape[1])
    rows = classes.features @ b  # (m, L)
    harmonics = zonal_harmonics(b.shape[1] - 1, problem.dim, t)
    peaks = np.concatenate(
        [
            (classes.coefficients[s : s + 64] @ problem.pair(t) + rows[s : s + 64] @ harmonics).max(axis=1)
            for s in range(0, len(rows), 64)
        ]
    )
    bends = np.abs(classes.coefficients) @ [p.bend for p in problem.profiles] + np.abs(rows) @ degrees**2
    sizes = np.abs(classes.coefficients) @ [p.size for p in problem.profiles] + classes.features.shape[1] * b.sum()
    slack = pad(bends, FINE) + (ROUNDING + 256 * np.finfo(float).eps) * sizes
    return 0.5 * float(classes.mass @ (peaks + slack) + diagonal[0] + diagonal[1] @ b.sum(axis=1))
