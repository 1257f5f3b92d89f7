"""Phases of influence: U-shaped, primacy and recency over total mixing, ALiBi decay and head mixtures, with the closed-form boundary.

One slope α: the smooth part of the profile rises at the end iff Σλ < b = 2(1 − e^{−αn}), for mixed heads iff Σλ < b = 2 ∂A/A² at (1, 1), with
T equal layers iff Σλ < T b/(T − 1 + b); these are limits n → ∞, tokens are off by the order of the largest slope α. The continuum profile
is compared with n = 4096 tokens.
"""

import pathlib

import numpy as np

import meanfield as mf

from ._claims import Claim

pp = mf.propagation


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figures phases.png, heads.png, continuum.png with their numbers as .npz; nothing is random."""
    points, depth, length = (8, 16, 48) if smoke else (48, 64, 256)
    total = np.geomspace(0.05, 40.0 if not smoke else 12.0, points)
    plane = pp.phase_map(total, np.linspace(0.5, 12, points), depth, length)
    heads = pp.head_mixture_map(total, np.linspace(0, 0.9, points), 20.0, depth, length)
    for name, found, label in (
        ("phases", plane, "αn, decay over the context"),
        ("heads", heads, "share of uniform heads (others: αn = 20)"),
    ):
        fig = mf.plot.phases(found, label)
        fig.axes[0].set_yscale("log")
        mf.plot.save(
            fig,
            out / f"{name}.png",
            {"total": found.rows, "columns": found.columns, "shape": found.shape, "boundary": found.boundary},
        )
    return [
        Claim(
            "one slope: computed boundary over closed form, worst |log| over columns (at most 2α)",
            _mismatch(plane),
            2 * 12 / length,
        ),
        Claim(
            "head mixtures: computed boundary over closed form, worst |log| over columns (at most 2α)",
            _mismatch(heads),
            2 * 20 / length,
        ),
        Claim(
            "continuum profile against n = 4096, relative error for s in [0.1, 0.9]",
            _continuum(out, 512 if smoke else 4096),
            5e-3,
        ),
    ]


def _mismatch(found) -> float:
    """Largest |log| ratio, over columns, of the Σλ at which the smooth part stops rising (interpolated) to the closed form."""
    rise, rows = np.asarray(found.rise), np.log(np.asarray(found.rows))
    crossing = [np.interp(0.0, -column, rows) for column in rise.T]
    return float(np.max(np.abs(crossing - np.log(np.asarray(found.boundary)))))


def _continuum(out: pathlib.Path, length: int) -> float:
    mixing, decay = np.linspace(0.3, 0.05, 12), 6.0
    p = np.asarray(pp.profile(pp.Architecture(mixing, [decay / length]), length)) * length
    s = (np.arange(length) + 0.5) / length
    density = np.asarray(mf.theory.continuum_profile(mixing, s, decay))
    with mf.plot.style():
        fig = mf.plot.figure(5.4, 3.3)
        ax = fig.subplots()
        ax.plot(s[:-1], p[:-1], label=f"n = {length} tokens")
        ax.plot(s, density, "--", label="continuum, smooth part")
        ax.set(xlabel="position s = j/n", ylabel="density n p", yscale="log")
        ax.legend()
    mf.plot.save(fig, out / "continuum.png", {"s": s, "profile": p, "continuum": density})
    inside = (s > 0.1) & (s < 0.9)
    return float(np.max(np.abs(p[inside] / density[inside] - 1)))
