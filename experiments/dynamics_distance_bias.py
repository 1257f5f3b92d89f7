"""Non-negative distance biases (ALiBi, Gaussian) do not prevent collapse.

h = g(ξ − ζ)φ with g > 0 on labels in [0, 1], β = 1, USA. A Dirac is the only maximiser, of energy
½φ(1)Σ w_i w_j g_ij (theory.md 2).
"""

import math
import pathlib

import jax.numpy as jnp

import meanfield as mf

from ._claims import Claim
from ._record import clusters, energy_drop, save_panels, save_runs, simulate, sizes, start, worst

BETA = 1.0


def defect(kernel: mf.Toeplitz, rho: mf.Marginal, flow: mf.Trajectory) -> jnp.ndarray:
    """|E(end)/E(Dirac) − 1|."""
    tau = rho.labels[:, None] - rho.labels[None, :]
    dirac = 0.5 * math.exp(BETA) / BETA * (rho.weights @ kernel.profile(tau) @ rho.weights)
    return jnp.abs(flow.energy[-1] / dirac - 1)


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    decay = mf.Toeplitz(mf.ExponentialDecay(1.0), mf.ExpDot(BETA))
    gaussian = mf.Toeplitz(mf.Gaussian(0.5), mf.ExpDot(BETA))
    cases = [("ALiBi", decay, n) for n in sizes(smoke)] + [("Gaussian", gaussian, sizes(smoke)[-1])]
    runs, defects = {}, []
    for name, kernel, n in cases:
        rho = mf.Marginal.interval(n)
        flow = runs[f"{name}, n = {n}"] = simulate(mf.USA(kernel), start(n, seed), rho)
        defects.append(defect(kernel, rho, flow))
    save_runs(out, runs)
    save_panels(out, "tokens", {f"{name}, t = 20": (flow, {}) for name, flow in runs.items()}, columns=4)
    return [
        Claim("1 − order at t = 20", worst(1 - r.order[-1] for r in runs.values()), 1e-6),
        Claim("clusters at 1e-3 rad", worst(clusters(r) for r in runs.values()), 1.0),
        Claim("energy against the Dirac's ½φ(1)Σ w w g (relative)", worst(defects), 1e-6),
        Claim("largest relative decrease of the energy", worst(energy_drop(r) for r in runs.values()), 1e-12),
    ]
