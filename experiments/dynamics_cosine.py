"""A sign-changing bias (cosine Toeplitz) prevents collapse: tokens end on a great circle.

h = cos(ξ − ζ)φ with labels on the circle, β = 1, USA on S². Below β = 1.7866 the great circle has the largest known
energy, I₁(β)/(2β), twice which is the first Fourier coefficient (theory.md 2).
"""

import pathlib

import jax.numpy as jnp
from scipy.special import iv

import meanfield as mf

from ._claims import Claim
from ._record import (
    clusters,
    energy_defect,
    energy_drop,
    least,
    save_panels,
    save_runs,
    simulate,
    sizes,
    start,
    times,
    worst,
)

BETA = 1.0


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    dynamics = mf.USA(mf.Toeplitz(mf.Cosine(), mf.ExpDot(BETA)))
    runs, later = {}, {}
    for n in sizes(smoke):
        rho = mf.Marginal.circle(n)
        runs[f"n = {n}"] = simulate(dynamics, start(n, seed), rho)
        later[f"n = {n}"] = simulate(dynamics, start(n, seed), rho, times(100.0))
    save_runs(out, later)
    options = {"cyclic": True, "label": "label ξ (angle)"}
    save_panels(out, "tokens", {f"cosine, {name}, t = 20": (r, options) for name, r in runs.items()})
    circle = float(iv(1, BETA) / (2 * BETA))
    flat = [jnp.linalg.svd(r.final, compute_uv=False) for r in later.values()]
    return [
        Claim("order at t = 20", worst(r.order[-1] for r in runs.values()), 0.1),
        Claim(
            "clusters at 1e-3 rad per token, t = 20",
            least(clusters(r) / r.final.shape[0] for r in runs.values()),
            0.95,
            ">=",
        ),
        Claim(
            "energy against the great circle's I₁(β)/(2β), t = 20 (relative)",
            worst(energy_defect(r, circle) for r in runs.values()),
            1e-2,
        ),
        Claim("the same at t = 100", worst(energy_defect(r, circle) for r in later.values()), 1e-6),
        Claim(
            "t = 100: smallest over largest singular value, a great circle has 0",
            worst(s[-1] / s[0] for s in flat),
            1e-3,
        ),
        Claim("largest relative decrease of the energy", worst(energy_drop(r) for r in runs.values()), 1e-12),
    ]
