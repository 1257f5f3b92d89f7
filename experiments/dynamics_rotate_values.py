"""Standard RoPE leaves values unrotated, and collapses; the gradient flow, which rotates them, does not.

The same kernel, RoPE with two planes on S³, β = 1, labels equispaced on the circle, same start: with `rotate_values`
the flow is gradient ascent and ends on an orbit, without it (a standard transformer) in one point (theory.md 1).
"""

import pathlib

import jax.numpy as jnp

import meanfield as mf

from ._claims import Claim
from ._record import clusters, orbit_error, save_panels, save_runs, simulate, sizes, start, worst

BETA = 1.0
FREQUENCIES = jnp.array([1.0, 2.0])


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    kernel = mf.RoPE(mf.ExpDot(BETA), FREQUENCIES)
    gradient, standard, orbits = {}, {}, []
    for n in sizes(smoke):
        rho, x0 = mf.Marginal.circle(n), start(n, seed, d=4)
        flow = gradient[f"values rotated, n = {n}"] = simulate(mf.USA(kernel), x0, rho)
        standard[f"values not rotated, n = {n}"] = simulate(mf.USA(kernel, rotate_values=False), x0, rho)
        orbits.append(orbit_error(kernel, flow, rho))
    both = gradient | standard
    save_runs(out, both)
    options = {"cyclic": True, "label": "label ξ (angle)"}
    save_panels(out, "tokens", {name: (r, options) for name, r in both.items()}, columns=len(gradient))
    return [
        Claim("values not rotated: 1 − order at t = 20", worst(1 - r.order[-1] for r in standard.values()), 1e-3),
        Claim("values not rotated: clusters at 0.1 rad", worst(clusters(r, 0.1) for r in standard.values()), 1.0),
        Claim("values rotated: order at t = 20", worst(r.order[-1] for r in gradient.values()), 0.1),
        Claim("values rotated: distance to an orbit R_ξᵀu", worst(orbits), 1e-3),
    ]
