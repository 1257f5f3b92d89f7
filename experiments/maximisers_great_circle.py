"""g = cos τ: the great circle is stable up to β₂ = 1.7866 (mode 2) exactly, but a deformed circle beats it well before."""

import pathlib

import jax
import numpy as np
from scipy.optimize import brentq

import meanfield as mf

from ._claims import Claim
from ._maximisers import cosine, curvature, great_circle, write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Curvature of the great circle and excess of the best state over it, against β."""
    n, restarts = (16, 4) if smoke else (60, 32)
    rho, circle = mf.Marginal.circle(n), great_circle(n, 2)

    found = brentq(lambda beta: float(curvature(beta, circle)) - 1e-9, 1.7, 1.9, xtol=1e-6)
    fine = np.concatenate([np.linspace(1.0, 1.5, 5), np.arange(1.53, 1.78, 0.01), np.linspace(1.79, 2.2, 8)])
    betas = np.array([1.0, 1.75, 2.2]) if smoke else fine
    best = [mf.ascend(cosine(b), rho, 2, jax.random.key(seed), restarts, certify=False) for b in betas]
    energy = np.array([float(b.energy) for b in best])
    flat = np.asarray(mf.theory.great_circle_energy(betas, 0.0, 1.0))
    modes = np.array([deformation(np.asarray(b.x)) for b in best])
    data = write(
        out,
        "great_circle",
        {"excess": ("beta", energy / flat - 1), "amplitude": (("beta", "mode"), modes)},
        {"beta": betas, "mode": np.arange(1, 6)},
    )
    exact = mf.theory.great_circle_threshold(2)
    draw(out, data, exact)
    excess, wins = data.excess.values, data.excess.values > 1e-6
    return [
        Claim("threshold from the curvature of the great circle: error", abs(found - exact), 2e-4),
        Claim("closed form of the threshold: error against 1.7866", abs(exact - 1.7866), 5e-5),
        Claim("β ≤ 1.5: largest excess of the best state over the circle", float(np.abs(excess[betas <= 1.5]).max()), 1e-8),
        Claim("first β of the grid at which another state wins (before β₂: a first-order transition)", float(betas[wins][0]), exact, "<"),
        Claim("curvature of the circle at β = 1.75, where it no longer wins (a local maximum)", float(curvature(1.75, circle)), 1e-9),
        Claim("β = 1.75: excess of the best state", float(excess[np.argmin(np.abs(betas - 1.75))]), 1e-3, ">="),
        Claim("above β₂: least excess", float(excess[betas > exact].min()), 1e-3, ">="),
    ]  # fmt: skip


def deformation(x: np.ndarray) -> np.ndarray:
    """|Fourier coefficients 1 … 5| of the angle of x minus its winding, in radians."""
    angle = np.unwrap(np.arctan2(x[:, 1], x[:, 0]))
    n = len(angle)
    winding = np.round((angle[-1] - angle[0]) * n / (n - 1) / (2 * np.pi))
    return 2 * np.abs(np.fft.rfft(angle - winding * 2 * np.pi * np.arange(n) / n))[1:6] / n


def draw(out: pathlib.Path, data, exact: float) -> None:
    """Excess energy and deformation modes against β."""
    with mf.plot.style():
        fig = mf.plot.figure(5.4, 4.4)
        top, bottom = fig.subplots(2, 1, sharex=True)
        top.plot(data.beta, data.excess, "o-", markersize=3)
        top.set_ylabel("E / E circle − 1")
        for mode in (1, 2, 3, 4):
            bottom.plot(data.beta, data.amplitude.sel(mode=mode), "o-", markersize=3, label=f"mode {mode}")
        bottom.set_ylabel("deformation (rad)")
        bottom.set_xlabel("inverse temperature β")
        bottom.legend(ncols=2)
        for ax in (top, bottom):
            ax.axvline(exact, color="black", linestyle="--", linewidth=1)
        top.annotate(
            "β₂ = 1.7866",
            (exact, float(data.excess.max())),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="top",
        )
    mf.plot.save(fig, out / "great_circle.png")
