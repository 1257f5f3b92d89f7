"""A million tokens on S²: a pattern of degree 4 grows at the predicted rate, then they collapse; the picture of it."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.colors import LogNorm

import meanfield as mf

from ._claims import Claim
from ._record import save_table

BETA = 9.0
TIMES = np.array([0.0, 15.0, 60.0, 120.0, 240.0])
SHOWN = (0, 2, 3, 4)


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """USA on S² from a slightly patterned uniform law: densities at four times, energy and pattern along the flow."""
    n = 20_000 if smoke else 1_000_000
    x = mf.sphere.sample(jax.random.key(seed), (n, 3), jnp.float32)
    x = mf.sphere.normalize(x + (0.06 if smoke else 0.02) * x**3)  # along the gradient of Σ_k x_k⁴
    rho = mf.Marginal(np.zeros(n, np.float32), np.full(n, 1 / n, np.float32))
    dynamics = mf.USA(mf.ExpDot(BETA, shift=1.0))
    ts = TIMES.astype(np.float32)
    traj = mf.flow(dynamics, x, rho, ts, rtol=1e-3, atol=1e-4, method="expansion", throw=False)
    states = np.asarray(traj.x)
    pattern = np.array([np.mean(np.sum(s.astype(np.float64) ** 4, axis=1)) - 3 / 5 for s in states])
    energy = np.asarray(traj.energy, np.float64)
    picture(states[list(SHOWN)], ts[list(SHOWN)], out / "million_tokens.png")
    columns = zip(ts, energy, np.asarray(traj.order), pattern, strict=True)
    save_table(
        out, "million_tokens", [dict(zip(("t", "energy", "order", "pattern"), row, strict=True)) for row in columns]
    )
    rate = float(np.log(pattern[1] / pattern[0]) / TIMES[1])
    predicted = float(mf.theory.growth_rates(BETA, 3, np.array([4]))[0] * np.exp(-BETA))
    noise = 4 * 0.1 / n**0.5 / pattern[0] / TIMES[1]  # of the logarithm of a mean over n tokens of deviation 0.1
    return [
        Claim("share of times reached", float(np.isfinite(energy).mean()), 1.0, ">="),
        Claim("largest fall of the energy between saved times, relative", float(-np.diff(energy).min() / energy[-1]), 0.0),
        Claim(f"growth rate {rate:.4g} of degree 4 against {predicted:.4g} (theory.md 1.6), difference",
              abs(rate - predicted), 0.05 * predicted + noise),
        Claim("energy at the end over that of one point", float(energy[-1] * 2 * BETA), 1 / 8, ">="),
    ]  # fmt: skip


def picture(x: np.ndarray, ts: np.ndarray, path: pathlib.Path) -> None:
    """Mollweide histograms of the tokens' directions on one logarithmic scale of density over the uniform law."""
    bins = 180 if x.shape[1] > 100_000 else 45
    longitude, height = np.linspace(-np.pi, np.pi, bins + 1), np.linspace(-1, 1, bins // 2 + 1)
    norm = LogNorm(0.05, 200, clip=True)
    with mf.plot.style():
        fig = mf.plot.figure(9.0, 5.0)
        panels = fig.subplots(2, 2, subplot_kw={"projection": "mollweide"})
        for ax, t, tokens in zip(panels.flat, ts, x, strict=True):
            counts, _, _ = np.histogram2d(np.arctan2(tokens[:, 1], tokens[:, 0]), tokens[:, 2], (longitude, height))
            density = counts.T / counts.sum() * counts.size + 1e-9  # cells of equal area
            image = ax.pcolormesh(longitude, np.arcsin(height), density, norm=norm, cmap="magma", rasterized=True)
            ax.set(title=f"t = {t:g}", xticklabels=[], yticklabels=[])
            ax.grid(visible=False)
        fig.colorbar(image, ax=panels, label="density / uniform", shrink=0.8)
        fig.suptitle(f"{x.shape[1]:,} tokens on S², USA, β = {BETA:g}")
    mf.plot.save(fig, path)
