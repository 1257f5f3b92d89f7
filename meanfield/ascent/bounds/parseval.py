"""Harmonics of the sphere and eigenvalues of the labels, degree by degree."""

import numpy as np
from scipy.special import roots_jacobi

from .grid import angles, pad, zonal_harmonics
from .problem import Problem, Profile

DEGREES, NODES, POINTS = 48, 256, 16384


def parseval(problem: Problem) -> float:
    """½ Σ_k Σ_l max(a_kl λ_max(C_k), a_kl λ_min(C_k)) + remainder, φ_k = Σ_l a_kl P_l, C_k = (√w_i c_k,ij √w_j).

    Σ_ij w_i w_j c_ij P_l(⟨y_i, y_j⟩) is a quadratic form of unit vectors (the harmonics of degree l). On a circle of
    labels the eigenvalues are Fourier coefficients; exact for linear kernels there.
    """
    root = np.sqrt(problem.weights)
    total = 0.0
    for c, profile in zip(problem.coefficients, problem.profiles, strict=True):
        matrix = root[:, None] * c * root
        values = np.linalg.eigvalsh(matrix)
        slack = len(root) * np.finfo(float).eps * np.abs(values).max()
        low, high = values[0] - slack, values[-1] + slack
        a, rest = _expand(profile, problem.dim)
        total += np.maximum(a * low, a * high).sum() + rest * (problem.weights @ np.abs(c) @ problem.weights)
    return 0.5 * float(total)


def _expand(profile: Profile, dim: int) -> tuple[np.ndarray, float]:
    """a_l by Gauss–Jacobi quadrature and the largest error of Σ_l a_l P_l, whatever its source."""
    t, weight = roots_jacobi(NODES, (dim - 3) / 2, (dim - 3) / 2)
    p = zonal_harmonics(DEGREES, dim, t)
    a = (p * weight) @ profile.phi(t) / ((p * p) @ weight)
    a[np.abs(a) < 16 * np.finfo(float).eps * np.abs(a).max()] = 0  # rounding of exact zeros would cost Σ_l |a_l|
    theta = angles(POINTS)
    grid = np.cos(theta)
    error = np.abs(profile.phi(grid) - a @ zonal_harmonics(DEGREES, dim, grid)).max()
    # a polynomial φ leaves rounding only; otherwise the remainder bends at most as its Bernstein majorant
    if error < 64 * np.finfo(float).eps * profile.size:
        return a, float(error) * 2
    return a, float(error + pad(profile.bend + np.abs(a) @ np.arange(DEGREES + 1) ** 2, POINTS))
