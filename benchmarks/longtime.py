"""Long times: what it costs to reach the last merge, by clock and solver (steps, velocity evaluations, seconds)."""

import pathlib

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from .measure import table, timed

N, BETAS = 32, (4.0, 6.0, 8.0)


def run(out: pathlib.Path) -> None:
    """Writes longtime.md and .csv: `coarsen` against `flow` and an implicit solver, all to the same time."""
    with jax.enable_x64(True):
        rows = [row for beta in BETAS for row in _compare(beta)]
    note = (
        f"SA, {N} random tokens on the circle, float64, tolerance 1e-6, to the time of the last merge. `error` is that of the "
        "order parameter halfway (geometric mean of the last two merges) against flow at tolerance 1e-9."
    )
    table(rows, out / "longtime", "Exponentially long times", note)


def _compare(beta: float) -> list[dict]:
    x0, rho = mf.sphere.sample(jax.random.key(0), (N, 2)), mf.Marginal(jnp.zeros(N))
    dynamics = mf.SA(mf.ExpDot(beta))
    reference = mf.coarsen(dynamics, x0, rho, 1e12)
    merges = [m.t for m in reference.merges()]
    end = jnp.asarray(merges[-1])
    ts = jnp.array([0.0, np.sqrt(merges[-1] * merges[-2]), merges[-1]])
    exact = mf.flow(dynamics, x0, rho, ts, rtol=1e-9, atol=1e-9, max_steps=10**6, save=("order",)).order[1]
    limits = {"max_steps": 10**6, "save": ("order",)}

    def explicit():
        return mf.flow(dynamics, x0, rho, ts, atol=0.0, **limits)

    def coarse():
        return mf.coarsen(dynamics, x0, rho, end, atol=0.0, max_steps=512)

    def implicit():
        return _kvaerno(dynamics, x0, rho, ts)

    rows = []
    for name, fn in (
        ("mf.coarsen, Tsit5, arc length", coarse),
        ("mf.flow, Tsit5", explicit),
        ("diffrax Kvaerno5 in time", implicit),
    ):
        result = fn()
        if name.startswith("mf.coarsen"):
            order, steps = result.at(np.asarray(ts[1:2]), "order")[0], int(result.steps["steps"])
        elif name.startswith("mf.flow"):
            order, steps = result.order[1], int(result.stats["steps"])
        else:
            order, steps = jnp.linalg.norm(result.ys[1].mean(0)), int(result.stats["num_steps"])
        seconds = timed(fn, repeats=3, budget=8.0)
        rows.append(
            {
                "β": beta,
                "end": float(end),
                "method": name,
                "steps": steps,
                "seconds": seconds,
                "error": float(abs(order - exact)),
            }
        )
    return rows  # fmt: skip


@jax.jit
def _kvaerno(dynamics, x0, rho, ts):
    """An implicit solver on the same velocity, dense Newton steps, tokens normalised inside the field."""

    def field(t, x, args):
        return mf.velocity(dynamics, x / jnp.linalg.norm(x, axis=1, keepdims=True), rho)

    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Kvaerno5(),
        ts[0],
        ts[-1],
        None,
        x0,
        saveat=diffrax.SaveAt(ts=ts),
        stepsize_controller=diffrax.PIDController(rtol=1e-6, atol=1e-6),
        max_steps=4096,
        throw=False,
    )
