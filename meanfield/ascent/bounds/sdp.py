"""The semidefinite dual of a linear majorant."""

import numpy as np

from .problem import Problem


def sdp_dual(problem: Problem) -> float:
    """Weak duality for max ½ tr(B YYᵀ) over unit rows: ½(Σ_i η_i + σ) with Diag(η) − B + σ Diag(w) ⪰ 0; inf without convex φ.

    Off the diagonal c φ(t) ≤ a + b t: the chord over [−1, 1] where c > 0, the tangent at ⟨y_i, y_j⟩ of the state known
    where c < 0; B = (w_i w_j b_ij). η_i = Σ_j B_ij⟨y_i, y_j⟩, exact where the state maximises the majorant and S ⪰ 0
    (linear kernels).
    """
    if not all(profile.convex for profile in problem.profiles):
        return float("inf")
    w, y = problem.weights, problem.y
    n = len(w)
    t = np.clip(y @ y.T, -1, 1)
    constant, slope = np.zeros((n, n)), np.zeros((n, n))
    for c, profile in zip(problem.coefficients, problem.profiles, strict=True):
        top, bottom = profile.phi(np.array([1.0, -1.0]))
        chord = 0.5 * (top - bottom)
        tangent = profile.rate(t)
        line = profile.phi(t) - tangent * t
        slope += np.where(c > 0, c * chord, c * tangent)
        constant += np.where(c > 0, c * 0.5 * (top + bottom), c * line)
    np.fill_diagonal(constant, 0)
    np.fill_diagonal(slope, 0)
    b = w[:, None] * slope * w
    eta = np.sum(b * t, axis=1)
    root = 1 / np.sqrt(w)
    scaled = root[:, None] * (np.diag(eta) - b) * root
    values = np.linalg.eigvalsh(scaled)
    sigma = max(0.0, -(values[0] - n * np.finfo(float).eps * np.abs(values).max()))
    diagonal = (w * w) @ sum(
        np.diag(c) * p.phi(np.ones(1)) for c, p in zip(problem.coefficients, problem.profiles, strict=True)
    )
    return 0.5 * float(w @ constant @ w + diagonal + eta.sum() + sigma)
