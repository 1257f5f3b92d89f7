"""g = cos τ at growing β: which state wins, its symmetry and multiplicity, and whether it lies in a plane."""

import pathlib

import jax
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._maximisers import atoms, cosine, symmetry, thickness, write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Best states in d = 3 for β from 1 to 24, with bounds; their energies beside great circle and arcs."""
    n, restarts = (24, 8) if smoke else (60, 64)
    betas = np.array([1.0, 4.0]) if smoke else np.array([1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0])
    rho = mf.Marginal.circle(n)
    best = [mf.ascend(cosine(b), rho, 3, jax.random.key(seed), restarts) for b in betas]
    planar = [mf.ascend(cosine(b), rho, 2, jax.random.key(seed + 1), restarts, certify=False) for b in betas]
    rows = {
        "energy": [float(b.energy) for b in best],
        "bound": [b.upper_bound for b in best],
        "planar_energy": [float(b.energy) for b in planar],
        "circle": np.asarray(mf.theory.great_circle_energy(betas, 0.0, 1.0)),
        **{f"arcs{k}": [float(mf.theory.arcs_energy(k, b, 1.0)) for b in betas] for k in (2, 3, 4)},
        "symmetry": [symmetry(b.x) for b in best],
        "multiplicity": [n // symmetry(b.x) for b in best],
        "atoms": [atoms(b.x) for b in best],
        "thickness": [thickness(b.x) for b in best],
        "hits": [float(np.mean(np.asarray(b.energies) > float(b.energy) * (1 - 1e-5))) for b in best],
    }
    states = np.stack([np.asarray(b.x) for b in best])
    variables = {"x": (("beta", "label", "coordinate"), states)} | {k: ("beta", v) for k, v in rows.items()}
    data = write(out, "winner", variables, {"beta": betas, "label": np.asarray(rho.labels)})
    draw_energies(out, data)
    draw_states(out, data)
    return [
        Claim("largest thickness of a best state out of its plane", float(data.thickness.max()), 1e-6),
        Claim("d = 3 against d = 2: largest relative difference of best energies", float(abs(data.energy / data.planar_energy - 1).max()), 1e-5),
        Claim("largest ratio of bound to best energy, β ≤ 8", float((data.bound / data.energy).sel(beta=betas[betas <= 8]).max()), 1.15),
        Claim("least advantage over the great circle, β ≥ 2", float((data.energy / data.circle - 1).sel(beta=betas[betas >= 2]).min()), 1e-3, ">="),
        Claim("share of converged best states", float(np.mean([b.status == "converged" for b in best])), 1.0, ">="),
    ]  # fmt: skip


def draw_energies(out: pathlib.Path, data) -> None:
    """Energies of closed forms and the bound, all divided by the best energy."""
    with mf.plot.style():
        fig = mf.plot.figure(5.4, 3.6)
        ax = fig.add_subplot()
        names = {
            "bound": "upper bound",
            "circle": "great circle",
            "arcs3": "3 arcs",
            "arcs4": "2 or 4 arcs (equal)",
        }
        for (name, label), marker in zip(names.items(), "^osD", strict=True):
            ax.plot(data.beta, data[name] / data.energy, marker=marker, markersize=3.5, label=label)
        ax.axhline(1, color="black", linewidth=1)
        ax.set_xscale("log")
        ax.set_ylim(0.5, 1.3)
        ax.set_xlabel("inverse temperature β")
        ax.set_ylabel("energy / best energy found")
        ax.legend(ncols=2)
    mf.plot.save(fig, out / "winner_energies.png")


def draw_states(out: pathlib.Path, data) -> None:
    """Angle of the best state against the label, for all β."""
    with mf.plot.style():
        fig = mf.plot.figure(8.0, 4.2)
        columns = min(5, data.sizes["beta"])
        axes = fig.subplots(-(-data.sizes["beta"] // columns), columns, sharex=True, sharey=True, squeeze=False).ravel()
        for ax, beta in zip(axes, data.beta.values, strict=False):
            state = data.sel(beta=beta)
            ax.plot(data.label, plane_angle(state.x.values), "o", markersize=2)
            ax.set_title(f"β = {beta:g}, symmetry {int(state.symmetry)}")
        for ax in axes[data.sizes["beta"] :]:
            ax.remove()
        fig.supxlabel("label ξ, from the largest step on")
        fig.supylabel("angle of x in its plane (rad)")
    mf.plot.save(fig, out / "winner_states.png")


def plane_angle(x: np.ndarray) -> np.ndarray:
    """Angles in the principal plane, growing from 0; labels are shifted so that the largest step is the one left out."""
    plane = np.linalg.svd(x, full_matrices=False)[2][:2]
    z = (x @ plane.T) @ np.array([1, 1j])
    steps = np.angle(np.roll(z, -1) / z)
    steps = np.roll(steps, -1 - int(np.abs(steps).argmax()))[:-1]
    angle = np.concatenate([[0.0], np.cumsum(steps)])
    return angle if angle[-1] >= 0 else -angle
