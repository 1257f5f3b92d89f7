"""Conditional Diracisation: one atom per label for convex self terms, spread measures for repulsion, vanishing like 1/n."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._maximisers import write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Maximal energies over measures and over Dirac graphs against the number of labels, for attraction and repulsion."""
    sizes = [1, 2] if smoke else [1, 2, 4, 8]
    kernels = {
        "attraction": mf.Toeplitz(mf.Cosine(1.0, 0.2), mf.ExpDot(1.0)),
        "repulsion": mf.Toeplitz(mf.Gaussian(0.15), -mf.Dot()),
    }
    gain, spread = np.zeros((2, len(sizes))), np.zeros((2, len(sizes)))
    for i, kernel in enumerate(kernels.values()):
        for j, n in enumerate(sizes):
            rho = mf.Marginal.circle(n) if i == 0 else mf.Marginal.interval(n)
            measure = mf.ascent.ascend_measures(kernel, rho, 2, jax.random.key(seed), atoms=3, restarts=4)
            dirac = mf.ascend(kernel, rho, 2, jax.random.key(seed), restarts=8, certify=False)
            gain[i, j] = float(measure.energy) - float(dirac.energy)
            spread[i, j] = float(jnp.max(measure.dispersion))
    data = write(
        out,
        "measures",
        {"gain": (("kernel", "n"), gain), "spread": (("kernel", "n"), spread)},
        {"kernel": list(kernels), "n": sizes},
    )
    draw(out, data)
    scaled = data.gain.sel(kernel="repulsion") * data.n
    return [
        Claim("attraction: largest dispersion of a label's measure", float(data.spread.sel(kernel="attraction").max()), 1e-5),
        Claim("attraction: largest gain over Dirac graphs", float(data.gain.sel(kernel="attraction").max()), 1e-8),
        Claim("repulsion on one label: gain (exactly ½)", float(data.gain.sel(kernel="repulsion", n=1)), 0.5 - 1e-6, ">="),
        Claim("repulsion: largest n × gain (at most ½: the self term)", float(scaled.max()), 0.5 + 1e-6),
    ]  # fmt: skip


def draw(out: pathlib.Path, data) -> None:
    """Gain over Dirac graphs against n."""
    with mf.plot.style():
        fig = mf.plot.figure(5.0, 3.4)
        ax = fig.add_subplot()
        ax.plot(data.n, data.gain.sel(kernel="repulsion"), "o", label="repulsion, labels overlap")
        ax.plot(data.n, 0.5 / data.n, color="black", linestyle="--", label="1/(2n), the self term")
        ax.set_xscale("log", base=2)
        ax.set_xticks(data.n.values, labels=[str(n) for n in data.n.values])
        ax.set_yscale("log")
        ax.set_xlabel("number of labels n")
        ax.set_ylabel("gain of measures over Dirac graphs")
        ax.legend()
    mf.plot.save(fig, out / "measures.png")
