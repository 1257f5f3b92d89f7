"""The staircase: at large β the energy waits on plateaus 2βe^{−β}E = Σ W_c² of cluster weights, over exponentially long times."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import meanfield as mf

from ._claims import Claim
from ._record import worst

RADIUS, LONG = 0.1, 10.0


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Writes staircase.zarr and staircase.png; d = 2, SA and USA."""
    n, betas = (16, (9.0,)) if smoke else (64, (9.0, 16.0))
    x0 = mf.sphere.sample(jax.random.fold_in(jax.random.key(7), seed), (n, 2))
    rho = mf.Marginal(jnp.zeros(n))
    runs = {}
    for beta in betas:
        # USA with shift=1: energies and times scaled by e^{−β}, e^{β}
        runs["SA", beta] = mf.coarsen(mf.SA(mf.ExpDot(beta, shift=1.0)), x0, rho, 1e12)
        runs["USA", beta] = mf.coarsen(mf.USA(mf.ExpDot(beta, shift=1.0)), x0, rho, 1e12)
    stairs = {key: [p for p in r.plateaus(RADIUS) if p.end > LONG * p.start] for key, r in runs.items()}
    save(out, runs)
    draw(out, runs, stairs)
    errors = [abs(p.energy / p.predicted - 1) for plateaus in stairs.values() for p in plateaus]
    per_step = [float(np.nanmax(r.ts)) / int(r.steps["accepted"]) for r in runs.values()]
    return [
        Claim("plateaus longer than a factor 10 in time, all runs together", sum(map(len, stairs.values())), 2 if smoke else 5, ">="),
        Claim("largest relative error of 2βe^{−β}E = Σ W_c² on them", worst(errors), 0.01),
        Claim("time units per step of the longest run", worst(per_step), 1000, ">="),
        Claim("largest relative fall of the energy between steps (USA)", worst(fall(runs[k]) for k in runs if k[0] == "USA"), 1e-6),
    ]  # fmt: skip


def fall(r) -> float:
    """The largest fall of the energy between neighbouring steps, relative to the energy."""
    energy = np.asarray(r.energy)[np.isfinite(r.ts)]
    return float(np.max(-np.diff(energy) / energy[1:]))


def save(out: pathlib.Path, runs: dict) -> None:
    """All runs, one group each."""
    groups = {}
    for (name, beta), r in runs.items():
        real = np.isfinite(r.ts)
        groups[f"{name}_{beta:g}"] = xr.Dataset(
            {
                "energy": ("step", np.asarray(r.energy)[real]),
                "order": ("step", np.asarray(r.order)[real]),
                "clusters": ("step", r.clusters(RADIUS)[real]),
                "x": (("step", "token", "coordinate"), np.asarray(r.x)[real]),
            },
            {"time": ("step", np.asarray(r.ts)[real])},
            {"beta": beta, "dynamics": name},
        )
    mf.files.write_zarr(out / "staircase.zarr", xr.DataTree.from_dict(groups))


def draw(out: pathlib.Path, runs: dict, stairs: dict) -> None:
    """2βe^{−β}E and the number of clusters against log t."""
    with mf.plot.style():
        fig = mf.plot.figure(6.4, 4.6)
        top, bottom = fig.subplots(2, 1, sharex=True)
        for i, ((name, beta), r) in enumerate(runs.items()):
            t = np.asarray(r.ts)
            real = np.isfinite(t) & (t > 1e-3 * np.nanmax(t) ** 0.1)
            top.semilogx(t[real], 2 * beta * np.asarray(r.energy)[real], color=f"C{i}", label=f"{name}, β = {beta:g}")
            if r.status == mf.longtime.CoarseningStatus.FROZEN:
                top.plot(t[real][-1], 2 * beta * np.asarray(r.energy)[real][-1], "x", color=f"C{i}", ms=7)
            for p in stairs[name, beta]:
                top.plot([p.start, p.end], 2 * [2 * beta * p.predicted], color="black", ls=":", lw=1)
            bottom.loglog(t[real], r.clusters(RADIUS)[real], color=f"C{i}", drawstyle="steps-post")
        top.plot([], [], color="black", ls=":", lw=1, label="Σ W$_c^2$ of the clusters")
        top.plot([], [], "x", color="black", ms=7, label="speed at rounding (64 eps)")
        top.set(ylabel="2β e$^{-β}$ E", title="Energy climbs a staircase; every step is a merge")
        top.legend()
        bottom.set_yticks([1, 2, 3, 5, 10, 20], ["1", "2", "3", "5", "10", "20"])
        bottom.minorticks_off()
        bottom.set(xlabel="time (USA: in units of e$^{-β}$)", ylabel=f"clusters ({RADIUS:g} rad)")
        mf.plot.save(fig, out / "staircase.png")
