"""Generalised RoPE: with several generators tokens end on another curve, not on a circle.

Q_ξ = exp(ξ G₃) exp(2ξ G₁) ∈ SO(3) with the generators of turns about x₃ and x₁, labels on the circle, β = 1, USA. The
limit is the orbit Q_ξᵀu, a closed curve that lies in no plane (arXiv 2605.30229).
"""

import math
import pathlib

import jax
import jax.numpy as jnp

import meanfield as mf

from ._claims import Claim
from ._record import clusters, energy_defect, least, orbit_error, save_panels, save_runs, simulate, sizes, start, worst

BETA = 1.0


def two_generators(xi: jax.Array) -> jax.Array:
    """exp(ξ G₃) exp(2ξ G₁)."""
    c, s, c2, s2 = jnp.cos(xi), jnp.sin(xi), jnp.cos(2 * xi), jnp.sin(2 * xi)
    zero, one = jnp.zeros_like(xi), jnp.ones_like(xi)
    about_3 = jnp.array([[c, -s, zero], [s, c, zero], [zero, zero, one]])
    about_1 = jnp.array([[one, zero, zero], [zero, c2, -s2], [zero, s2, c2]])
    return about_3 @ about_1


def plane_misfit(x: jax.Array) -> jax.Array:
    """Root of the smallest over the largest eigenvalue of the covariance: 0 for tokens in one plane (any circle)."""
    centred = x - jnp.mean(x, axis=0)
    values = jnp.linalg.svd(centred, compute_uv=False)
    return values[-1] / values[0]


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    kernel = mf.Gauge(mf.ExpDot(BETA), two_generators)
    marginals = {f"n = {n}": mf.Marginal.circle(n) for n in sizes(smoke)}
    runs = {name: simulate(mf.USA(kernel), start(rho.n, seed), rho) for name, rho in marginals.items()}
    save_runs(out, runs)
    options = {"cyclic": True, "label": "label ξ (angle)", "trails": False}
    save_panels(out, "tokens", {f"two generators, {name}": (r, options) for name, r in runs.items()})
    return [
        Claim("distance to an orbit Q_ξᵀu", worst(orbit_error(kernel, r, marginals[k]) for k, r in runs.items()), 1e-3),
        Claim(
            "energy against the maximum φ(1)/2 (relative)",
            worst(energy_defect(r, math.exp(BETA) / BETA / 2) for r in runs.values()),
            1e-6,
        ),
        Claim("misfit to any plane (a circle has 0)", least(plane_misfit(r.final) for r in runs.values()), 0.1, ">="),
        Claim(
            "clusters at 1e-3 rad per token", least(clusters(r) / r.final.shape[0] for r in runs.values()), 0.95, ">="
        ),
    ]
