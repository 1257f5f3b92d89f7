"""RoPE prevents collapse: tokens end on a latitude circle, at the same maximal energy.

USA with RoPE on S², one plane of frequency 1, labels equispaced on the circle, β = 1. In the rotating frame the flow is
the plain one, so the limit is the orbit x_i = R_ξᵀu with the maximal energy ½φ(1) (theory.md 1.1).
"""

import math
import pathlib

import jax.numpy as jnp

import meanfield as mf

from ._claims import Claim
from ._record import (
    clusters,
    energy_defect,
    energy_drop,
    least,
    orbit_error,
    save_panels,
    save_runs,
    simulate,
    sizes,
    start,
    worst,
)

BETA = 1.0


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    kernel = mf.RoPE(mf.ExpDot(BETA), jnp.ones(1))
    marginals = {f"n = {n}": mf.Marginal.circle(n) for n in sizes(smoke)}
    runs = {name: simulate(mf.USA(kernel), start(rho.n, seed), rho) for name, rho in marginals.items()}
    save_runs(out, runs)
    options = {"cyclic": True, "label": "label ξ (angle)"}
    save_panels(out, "tokens", {f"RoPE, {name}, t = 20": (r, options) for name, r in runs.items()})
    smallest = runs[next(iter(runs))]
    mf.plot.animate(smallest, out / "film.gif", title="RoPE", dpi=80, **options)
    return [
        Claim("distance to an orbit R_ξᵀu", worst(orbit_error(kernel, r, marginals[k]) for k, r in runs.items()), 1e-3),
        Claim("latitude: standard deviation of x₃", worst(jnp.std(r.final[:, 2]) for r in runs.values()), 1e-6),
        Claim(
            "energy against the maximum φ(1)/2 (relative)",
            worst(energy_defect(r, math.exp(BETA) / BETA / 2) for r in runs.values()),
            1e-6,
        ),
        Claim("largest relative decrease of the energy", worst(energy_drop(r) for r in runs.values()), 1e-12),
        Claim(
            "clusters at 1e-3 rad per token", least(clusters(r) / r.final.shape[0] for r in runs.values()), 1.0, ">="
        ),
        Claim(
            "effective dimension of the end state, a circle has 2",
            worst(abs(mf.observables.effective_dimension(r.final) - 2) for r in runs.values()),
            1e-6,
        ),
    ]
