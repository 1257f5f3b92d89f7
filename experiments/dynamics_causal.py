"""Causal masks: every token ends where the first one is, or on its orbit under RoPE.

Softmax attention in which token i sees tokens j ≤ i only, β = 1, S². The first token never moves and the others follow
it (arXiv 2411.04990), slowly: at t = 20 they are together but not yet at the first. With RoPE they end on its orbit
x_i = R_ξᵀ R_0 x_0.
"""

import pathlib

import jax.numpy as jnp

import meanfield as mf

from ._claims import Claim
from ._record import clusters, in_gauge, least, save_panels, save_runs, simulate, sizes, start, times, worst

BETA, LATE = 1.0, 2000.0


def to_first(y: jnp.ndarray) -> jnp.ndarray:
    """max_i of the angle between token i and the first."""
    return jnp.max(mf.sphere.distance(y, jnp.broadcast_to(y[:1], y.shape)))


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    plain, late, moved = {}, [], []
    causal = mf.SA(mf.ExpDot(BETA), causal=True)
    for n in sizes(smoke):
        rho, x0 = mf.Marginal.positions(n), start(n, seed)
        flow = plain[f"causal SA, n = {n}"] = simulate(causal, x0, rho)
        moved.append(jnp.max(jnp.abs(flow.x[:, 0] - x0[0])))
        late.append(to_first(simulate(causal, x0, rho, times(LATE)).final))
    gauge = mf.RoPE(mf.ExpDot(BETA), jnp.array([2 * jnp.pi / n]))
    rotated = simulate(mf.SA(gauge, causal=True), x0, rho)
    rotated_late = simulate(mf.SA(gauge, causal=True), x0, rho, times(LATE))
    runs = plain | {f"causal SA, RoPE, n = {n}": rotated, f"causal SA, RoPE, n = {n}, to t = {LATE:g}": rotated_late}
    save_runs(out, plain | {f"causal SA, RoPE, n = {n}": rotated})
    save_panels(
        out,
        "tokens",
        {name: (r, {"label": "position", "trails": "to t" not in name}) for name, r in runs.items()},
        columns=3,
    )
    return [
        Claim("the first token: largest movement", worst(moved), 1e-9),
        Claim("order at t = 20", least(r.order[-1] for r in plain.values()), 0.95, ">="),
        Claim(f"angle to the first token at t = {LATE:g}", worst(late), 1e-2),
        Claim(f"RoPE: clusters at 1e-3 rad per token at t = {LATE:g}", clusters(rotated_late) / n, 0.95, ">="),
        Claim(
            f"RoPE: angle to the first token's orbit at t = {LATE:g}",
            float(to_first(in_gauge(gauge, rho, rotated_late.final))),
            1e-2,
        ),
    ]
