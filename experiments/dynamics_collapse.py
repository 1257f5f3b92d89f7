"""Plain attention collapses: from any start, all tokens end in one point.

USA and softmax attention (SA) at β = 1 on S², n uniform random tokens, no labels in the kernel. The energy of USA rises
to its maximum ½φ(1), which only a Dirac has (arXiv 2605.30229; theory.md 1).
"""

import math
import pathlib

import jax.numpy as jnp

import meanfield as mf

from ._claims import Claim
from ._record import clusters, energy_defect, energy_drop, least, save_panels, save_runs, simulate, sizes, start, worst

BETA = 1.0


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    usa, sa = {}, {}
    for n in sizes(smoke):
        x0, rho = start(n, seed), mf.Marginal.circle(n)
        usa[f"USA, n = {n}"] = simulate(mf.USA(mf.ExpDot(BETA)), x0, rho)
    n = sizes(smoke)[-1]
    sa[f"SA, n = {n}"] = simulate(mf.SA(mf.ExpDot(BETA)), x0, rho)
    both = usa | sa
    save_runs(out, both)
    mf.plot.save(mf.plot.traces(both, gap=True, title="Collapse is exponential"), out / "rate.png")
    last = usa[f"USA, n = {n}"]
    one = {"colour": jnp.zeros(n, int)}
    panels = {
        "start": (last.x[0], one),
        "USA, t = 20": (last, one),
        "SA, t = 20": (sa[f"SA, n = {n}"], one),
    }
    save_panels(out, "tokens", panels)
    maximum = math.exp(BETA) / BETA / 2
    return [
        Claim("USA: 1 − order at t = 20", worst(1 - r.order[-1] for r in usa.values()), 1e-6),
        Claim("SA: 1 − order at t = 20", worst(1 - r.order[-1] for r in sa.values()), 1e-6),
        Claim("clusters at 1e-3 rad", worst(clusters(r) for r in both.values()), 1.0),
        Claim(
            "USA: energy against the maximum φ(1)/2 (relative)",
            worst(energy_defect(r, maximum) for r in usa.values()),
            1e-6,
        ),
        Claim("USA: largest relative decrease of the energy", worst(energy_drop(r) for r in usa.values()), 1e-12),
        Claim(
            "start: effective dimension of the random tokens",
            least(mf.observables.effective_dimension(r.x[0]) for r in usa.values()),
            2.5,
            ">=",
        ),
    ]
