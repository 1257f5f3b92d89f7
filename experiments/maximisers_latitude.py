"""g = offset + cos τ in d = 3: a latitude circle leaves the Dirac at offset ½, and loses to another state near .33."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._maximisers import cosine, great_circle, write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """sin²θ and energy of the latitude circle against the best state, β = 2, and its curvature."""
    n, restarts, beta = (16, 4, 2.0) if smoke else (60, 16, 2.0)
    rho = mf.Marginal.circle(n)
    offsets = np.array([0.30, 0.45, 0.60]) if smoke else np.round(np.arange(0.20, 0.601, 0.02), 2)
    exact = [mf.theory.latitude_circle(beta, a, 1.0) for a in offsets]
    best = [mf.ascend(cosine(beta, a), rho, 3, jax.random.key(seed), restarts, certify=False) for a in offsets]
    at_circle = [
        mf.ascend(cosine(beta, a), rho, 3, jax.random.key(seed), x0=jnp.tile(state(n, c.sine_squared), (restarts, 1, 1)), certify=False)
        for a, c in zip(offsets, exact, strict=True)
    ]  # fmt: skip
    rows = {
        "exact": [c.sine_squared for c in exact],
        "found": [spread(b.x) for b in best],
        "energy_ratio": [float(b.energy) / c.energy for b, c in zip(best, exact, strict=True)],
        "curvature": [float(b.curvature) for b in at_circle],
        "moves": [int(b.iterations) for b in at_circle],
    }
    data = write(out, "latitude", {k: ("offset", v) for k, v in rows.items()}, {"offset": offsets})
    draw(out, data)
    inside = (offsets > 0.44) & (offsets < 0.5)
    return [
        Claim("sin²θ at β = 2, offset .40: error against .1834", abs(mf.theory.latitude_circle(2.0, 0.40).sine_squared - 0.1834), 5e-5),
        Claim("offset ≥ ½: largest spread of the best state", float(data.found[offsets >= 0.5].max()), 1e-6),
        Claim("offset in (.44, .5): best state against the latitude circle, largest |sin²θ| error", float(abs(data.found - data.exact)[inside].max()), 1e-4),
        Claim("the latitude circle is critical: most moves of an ascent from it", float(data.moves.max()), 2),
        Claim("the latitude circle is a local maximum: largest curvature at it", float(data.curvature.max()), 1e-9),
        Claim("offset ≤ .32: another state beats it, least relative gain", float((data.energy_ratio - 1)[offsets <= 0.32].min()), 1e-4, ">="),
        Claim("least ratio of best energy to that of the latitude circle", float(data.energy_ratio.min()), 1 - 1e-9, ">="),
    ]  # fmt: skip


def state(n: int, sine_squared: float) -> jax.Array:
    """The latitude circle with that sin²θ."""
    s = np.sqrt(sine_squared)
    return mf.sphere.normalize(s * great_circle(n, 3) + jnp.array([0.0, 0.0, np.sqrt(1 - sine_squared)]))


def spread(x) -> float:
    """1 − ‖mean x‖², sin²θ for a latitude circle and 0 for a Dirac."""
    return float(1 - jnp.sum(jnp.mean(x, axis=0) ** 2))


def draw(out: pathlib.Path, data) -> None:
    """The bifurcation, and what the best state gains over the latitude circle."""
    with mf.plot.style():
        fig = mf.plot.figure(5.4, 4.6)
        top, bottom = fig.subplots(2, 1, sharex=True)
        top.plot(data.offset, data.exact, label="latitude circle, exact")
        top.plot(data.offset, data.found, "o", markersize=4, label="best state found")
        top.set_ylabel("1 − ‖mean x‖² (sin²θ)")
        top.legend()
        bottom.plot(data.offset, data.energy_ratio - 1, "s-", markersize=3, color="#D55E00")
        bottom.set_ylabel("E best / E latitude − 1")
        bottom.set_xlabel("offset of g = offset + cos τ (β = 2, d = 3)")
        for ax in (top, bottom):
            ax.axvline(0.5, color="black", linestyle="--", linewidth=1)
    mf.plot.save(fig, out / "latitude.png")
