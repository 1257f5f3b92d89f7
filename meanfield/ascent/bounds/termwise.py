"""Every pair at its own best angle."""

import numpy as np

from .grid import angles, pad
from .problem import Problem

POINTS = 16384


def termwise(problem: Problem) -> float:
    """½ Σ_ij w_i w_j Σ_k max_t c_k,ij φ_k(t), the diagonal at t = 1: exact for c ≥ 0 and increasing φ (a Dirac)."""
    t = np.cos(angles(POINTS))
    w = problem.weights
    total, self_terms = 0.0, 0.0
    for c, profile in zip(problem.coefficients, problem.profiles, strict=True):
        values = profile.phi(t)
        if profile.monotone:
            top, bottom = values[0], values[-1]
        else:
            slack = pad(profile.bend, POINTS)
            top, bottom = values.max() + slack, values.min() - slack
        best = np.where(c > 0, c * top, c * bottom)
        total += w @ best @ w - (w * w) @ np.diag(best)
        self_terms += (w * w) @ np.diag(c) * values[0]
    return 0.5 * float(total + self_terms)
