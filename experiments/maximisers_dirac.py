"""Non-negative position factors: the maximiser is a Dirac, proved with no gap; a negative part that is large ends that."""

import pathlib

import jax
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._maximisers import atoms, cosine, write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """ALiBi, Gaussian and raised-cosine factors with their gaps; then the offset of a cosine from 0 to 1."""
    n, restarts = (16, 4) if smoke else (60, 32)
    rho = mf.Marginal.circle(n)
    kernels = {
        "ALiBi e^{−|τ|/2}": mf.Toeplitz(mf.ExponentialDecay(0.5), mf.ExpDot(2.0)),
        "Gaussian, width 0.6": mf.Toeplitz(mf.Gaussian(0.6), mf.ExpDot(2.0)),
        "1 + cos τ": mf.Toeplitz(mf.Cosine(1.0, 1.0), mf.ExpDot(2.0)),
    }
    best = {name: mf.ascend(k, rho, 3, jax.random.key(seed), restarts) for name, k in kernels.items()}
    offsets = np.linspace(0, 1, 3 if smoke else 21)
    swept = [mf.ascend(cosine(2.0, a), rho, 3, jax.random.key(seed), restarts) for a in offsets]
    order = np.array([float(np.linalg.norm(np.mean(b.x, axis=0))) for b in swept])
    data = write(
        out,
        "dirac",
        {
            "energy": ("offset", [float(b.energy) for b in swept]),
            "bound": ("offset", [b.upper_bound for b in swept]),
            "order": ("offset", order),
        },
        {"offset": offsets},
    )
    draw(out, data)
    gaps = [b.gap / float(b.energy) for b in best.values()]
    return [
        Claim("largest relative gap of three non-negative factors", max(gaps), 1e-6),
        Claim("largest number of atoms of their maximisers", max(atoms(b.x) for b in best.values()), 1),
        Claim("offset ≥ ½: least order parameter of the maximiser (a Dirac)", float(order[offsets >= 0.5].min()), 1 - 1e-5, ">="),
        Claim("offset ≤ .45: largest order parameter (no Dirac)", float(order[offsets <= 0.451].max()), 0.96),
        Claim("largest ratio of bound to energy over offsets", float((data.bound / data.energy).max()), 1.2),
    ]  # fmt: skip


def draw(out: pathlib.Path, data) -> None:
    """Energy, bound and order parameter against the offset."""
    with mf.plot.style():
        fig = mf.plot.figure(5.2, 4.0)
        top, bottom = fig.subplots(2, 1, sharex=True)
        top.plot(data.offset, data.bound, "--", label="upper bound")
        top.plot(data.offset, data.energy, label="best state")
        top.plot(data.offset, mf.theory.dirac_energy(2.0, data.offset.values, 1.0), ":", color="black", label="Dirac")
        top.set_ylabel("energy")
        top.legend()
        bottom.plot(data.offset, data.order, color="#009E73")
        bottom.axvline(0.5, color="black", linestyle="--", linewidth=1)
        bottom.annotate("offset ½", (0.51, 0.1), xycoords=("data", "axes fraction"))
        bottom.set_ylabel("order parameter")
        bottom.set_xlabel("offset of g = offset + cos τ (β = 2)")
    mf.plot.save(fig, out / "dirac.png")
