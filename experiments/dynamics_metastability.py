"""Two clusters live exponentially long in β: times to merge against the exact quadrature.

Softmax attention, two equal clusters of tokens at angle 2 on S², β = 2, 4, 6. The time until their angle is 0.5 is
∫ (1 + e^{β(1−cos φ)})/(2 sin φ) dφ from 0.5 to 2 (theory.md 1.4; arXiv 2410.06833).
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._record import save_runs, save_table, simulate, times, worst

BETAS, START, STOP = (2.0, 4.0, 6.0), 2.0, 0.5


def angle(flow: mf.Trajectory) -> np.ndarray:
    """The angle between the two clusters at every saved time."""
    return np.asarray(mf.sphere.distance(flow.x[:, 0], flow.x[:, -1]))


def crossing(dynamics: mf.SA, x0: jax.Array, rho: mf.Marginal, end: float) -> tuple[float, mf.Trajectory]:
    """The time at which the angle is STOP: bracketed by one flow, resolved by a second inside the bracket."""
    whole = simulate(dynamics, x0, rho, times(end))
    k = int(np.argmax(angle(whole) <= STOP))
    if k == 0:
        return float("nan"), whole
    inside = simulate(dynamics, whole.x[k - 1], rho, jnp.linspace(whole.ts[k - 1], whole.ts[k], len(whole.ts)))
    return float(np.interp(-STOP, -angle(inside), np.asarray(inside.ts))), whole


def picture(rows: list[dict], runs: dict[str, mf.Trajectory]):
    """Angles against time, and merge times against β on the quadrature's curve."""
    with mf.plot.style():
        fig = mf.plot.figure(7.2, 2.9)
        left, right = fig.subplots(1, 2)
        for line, (name, flow) in zip(("-", "--", "-."), runs.items(), strict=False):
            left.plot(np.asarray(flow.ts)[1:], angle(flow)[1:], line, label=name)
        left.axhline(STOP, color="#777777", linewidth=0.8, label=f"angle {STOP:g}")
        left.set(xscale="log", xlabel="time t (dimensionless)", ylabel="angle of the clusters (rad)")
        left.legend()
        betas = np.linspace(1.5, 6.5, 41)
        right.plot(
            betas, [mf.theory.two_cluster_time(b, START, STOP) for b in betas], label="quadrature", color="#777777"
        )
        right.plot([row["beta"] for row in rows], [row["measured"] for row in rows], "o", label="simulated")
        right.set(yscale="log", xlabel="inverse temperature β", ylabel=f"time from angle {START:g} to {STOP:g}")
        right.legend()
    return fig


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Simulates, draws, and states the claims."""
    n = 12 if smoke else 64
    pair = mf.sphere.sample(jax.random.key(seed), (2, 3))  # a random plane holds both clusters
    other = mf.sphere.normalize(mf.sphere.project(pair[0], pair[1]))
    x0 = jnp.repeat(jnp.stack([pair[0], jnp.cos(START) * pair[0] + jnp.sin(START) * other]), n // 2, axis=0)
    rho, rows, runs = mf.Marginal.circle(n), [], {}
    for beta in BETAS:
        exact = mf.theory.two_cluster_time(beta, START, STOP)
        measured, runs[f"β = {beta:g}"] = crossing(mf.SA(mf.ExpDot(beta)), mf.sphere.normalize(x0), rho, 1.3 * exact)
        rows.append({"beta": beta, "measured": measured, "quadrature": exact})
    save_runs(out, runs, log_time=True)
    save_table(out, "merge_times", rows)
    mf.plot.save(picture(rows, runs), out / "merge_times.png")
    return [
        Claim(
            f"β = {row['beta']:g}: merge time {row['measured']:.6g} against the quadrature's {row['quadrature']:.6g} (relative)",
            abs(row["measured"] / row["quadrature"] - 1),
            1e-3,
        )
        for row in rows
    ] + [
        Claim("growth of the time from β = 2 to 6 (factor)", rows[-1]["measured"] / rows[0]["measured"], 20.0, ">="),
        Claim(
            "clusters stay whole: spread of one cluster (rad)",
            worst(mf.observables.merge_angles(flow.final[: n // 2])[-1] for flow in runs.values()),
            1e-6,
        ),
    ]
