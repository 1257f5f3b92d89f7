"""Critical states of cos τ, β = 4, are saddles or poor local maxima: energies and curvatures of where ascents end."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._maximisers import cosine, curvature, great_circle, write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """256 random starts by L-BFGS (no continuation, no spectral starts), and named states, with curvature each."""
    n, count, beta, dim = (16, 8, 4.0, 2) if smoke else (60, 256, 4.0, 2)
    rho = mf.Marginal.circle(n)
    kernel = cosine(beta)
    batch = 8 if smoke else 64
    reference = mf.ascend(kernel, rho, dim, jax.random.key(seed), restarts=batch, certify=False)
    starts = mf.sphere.sample(jax.random.key(seed + 1), (count // batch, batch, n, dim))
    ended = [mf.ascend(kernel, rho, dim, jax.random.key(seed), x0=x, certify=False) for x in starts]
    order = np.argsort(-np.concatenate([e.energies for e in ended]))
    states = jnp.concatenate([e.states for e in ended])[order]
    ratio = np.concatenate([e.energies for e in ended])[order] / float(reference.energy)
    spectrum = np.array([float(curvature(beta, x)) for x in states])
    named = {
        "great circle": great_circle(n, dim),
        "winds twice": great_circle(n, dim, 2),
        **{f"{k} arcs": arcs(n, k) for k in (2, 3, 4)},
    }
    states = [float(mf.energy(kernel, x, rho)) for x in named.values()]
    curvatures = [float(curvature(beta, x)) for x in named.values()]
    data = write(
        out,
        "metastable",
        {"ratio": ("start", ratio), "curvature": ("start", spectrum),
         "named_ratio": ("state", np.array(states) / float(reference.energy)),
         "named_curvature": ("state", np.array(curvatures) / float(reference.energy))},
        {"state": list(named)},
    )  # fmt: skip
    draw(out, data)
    unit = float(reference.energy)
    maxima = spectrum < 1e-5 * unit
    return [
        Claim("share of random starts that reach the best energy", float(np.mean(ratio > 1 - 1e-5)), 0.1),
        Claim("no random start beats it: largest ratio", float(ratio.max()), 1 + 1e-5),
        Claim("share of the ends that are local maxima (no positive curvature)", float(maxima.mean()), 0.9, ">="),
        Claim("great circle at β = 4: curvature over best energy (a saddle)", float(curvature(beta, named["great circle"])) / unit, 1e-2, ">="),
        Claim("distinct energies of local maxima (relative resolution 1e-4)", float(len(np.unique(np.round(ratio[maxima], 4)))), 3, ">="),
    ]  # fmt: skip


def arcs(n: int, k: int) -> jax.Array:
    """k equal arcs at k equispaced directions."""
    angle = 2 * np.pi * (np.arange(n) * k // n) / k
    return jnp.asarray(np.stack([np.cos(angle), np.sin(angle)], axis=1))


def draw(out: pathlib.Path, data) -> None:
    """Energies of all ends, and curvature against energy of the named states."""
    with mf.plot.style():
        fig = mf.plot.figure(7.6, 3.4)
        left, right = fig.subplots(1, 2)
        left.plot(1 + np.arange(data.sizes["start"]), data.ratio, ".", markersize=4)
        left.axhline(1, color="black", linestyle="--", linewidth=1)
        left.set_xlabel("random start, best first")
        left.set_ylabel("final energy / best energy known")
        left.set_title("ends of random starts: local maxima")
        right.plot(data.named_ratio, data.named_curvature, "s", color="#D55E00")
        for name, x, y in zip(data.state.values, data.named_ratio.values, data.named_curvature.values, strict=True):
            side = -1 if name == "4 arcs" else 1  # beside 3 arcs
            align = {"ha": "left" if side > 0 else "right", "va": "center"}
            right.annotate(name, (x, y), xytext=(6 * side, 5), textcoords="offset points", **align)
        right.margins(x=0.3)
        right.axhline(0, color="black", linewidth=1)
        right.set_xlabel("energy / best energy known")
        right.set_ylabel("largest curvature / best energy")
        right.set_title("named states: saddles above the line")
    mf.plot.save(fig, out / "metastable.png")
