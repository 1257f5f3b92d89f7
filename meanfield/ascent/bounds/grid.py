"""Maxima over t = cos θ ∈ [−1, 1] with the error between grid points accounted for."""

import numpy as np
from scipy.special import eval_chebyt, eval_gegenbauer


def angles(points: int) -> np.ndarray:
    """`points` + 1 equispaced angles from 0 to π."""
    return np.pi * np.arange(points + 1) / points


def pad(bend: np.ndarray | float, points: int) -> np.ndarray | float:
    """max f ≤ max over the grid + bend·h²/8 for |f''(θ)| ≤ bend and h = π/points (error of linear interpolation)."""
    return bend * (np.pi / points) ** 2 / 8


def zonal_harmonics(degrees: int, dim: int, t: np.ndarray) -> np.ndarray:
    """P_l(t), l = 0 … degrees, normalised to P_l(1) = 1: (degrees + 1, …). |d²P_l(cos θ)/dθ²| ≤ l² (Bernstein)."""
    t = np.clip(t, -1, 1)
    if dim == 2:
        return np.stack([eval_chebyt(l, t) for l in range(degrees + 1)])
    a = dim / 2 - 1
    return np.stack([eval_gegenbauer(l, a, t) / eval_gegenbauer(l, a, 1.0) for l in range(degrees + 1)])
