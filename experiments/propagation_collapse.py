"""Attention without residuals collapses onto the first token as 2^-T; the fixed mix ½I + ½A only slows this to (3/4)^T.

Mass on the first token against depth for uniform causal attention, ALiBi, the fixed mix of earlier theories, and a trained model's
mixing coefficients (arXiv 2602.16837, theory of arXiv 2502.01951 for attention only).
"""

import pathlib

import numpy as np

import meanfield as mf
from meanfield.files import write_text

from ._claims import Claim

pp = mf.propagation


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figure collapse.png, numbers collapse.csv; nothing is random."""
    length, depth = 64, 24 if smoke else 70
    bloom = np.asarray(pp.preset("bloom").mixing)[:depth]
    cases = {
        "attention only, uniform": pp.Architecture(np.ones(depth), [0.0]),
        "attention only, ALiBi 0.1": pp.Architecture(np.ones(depth), [0.1]),
        "½I + ½A, uniform": pp.Architecture(np.full(depth, 0.5), [0.0]),
        "BLOOM-176B mixing, uniform": pp.Architecture(bloom, [0.0]),
        "BLOOM-176B mixing and slopes": pp.Architecture(bloom, pp.alibi_slopes(112)),
    }
    mass = {name: np.asarray(pp.first_token_mass_by_depth(arch, length)) for name, arch in cases.items()}
    half = {name: int(pp.collapse_depth(arch, length, 0.5)) for name, arch in cases.items()}
    _figure(mass, out / "collapse.png")
    rows = [",".join(["depth", *mass])] + [
        ",".join(map(repr, map(float, r))) for r in np.column_stack([np.arange(1, depth + 1), *mass.values()])
    ]
    write_text(out / "collapse.csv", "\n".join(rows) + "\n")
    uniform, alibi, mixed, *_ = mass.values()
    slow = 1 - mixed[-8:]
    published = [abs(uniform[t - 1] - x) for t, x in ((5, 0.512), (10, 0.956), (20, 0.99994))]
    published += [abs(alibi[t - 1] - x) for t, x in ((5, 0.053), (10, 0.512), (20, 0.992))]
    tail = 1 - uniform[20:28] if not smoke else 1 - uniform[18:24]
    return [
        Claim("attention only: mass on token 0 of 64 at T = 5, 10, 20, distance to the closed values", max(published), 5e-4),
        Claim("attention only: the tail 1 − P_n0 shrinks by ½ per layer (worst ratio, T = 21 … 28)", float(np.max(tail[1:] / tail[:-1])), 0.51),
        Claim("the tail stays below (n − 1) 2^−T", float(np.max((1 - uniform[:30]) / (length - 1) * 2.0 ** np.arange(1, len(uniform[:30]) + 1))), 1.0),
        Claim("½I + ½A collapses too: its tail shrinks by 1 − λ/2 = ¾ per layer (worst ratio of the last layers)", float(np.max(slow[1:] / slow[:-1])), 0.76),
        Claim("BLOOM-176B as trained does not: layers to half of the mass on token 0 of 64 (71: not within its 70)", half["BLOOM-176B mixing and slopes"], depth, ">"),
    ]  # fmt: skip


def _figure(mass: dict[str, np.ndarray], path: pathlib.Path) -> None:
    with mf.plot.style():
        fig = mf.plot.figure(6.4, 3.6)
        ax = fig.subplots()
        for k, (name, m) in enumerate(mass.items()):
            ax.plot(np.arange(1, len(m) + 1), m, label=name, linestyle=("-", "--", "-.", ":", (0, (5, 1)))[k])
        ax.set(xlabel="depth T (layers)", ylabel="mass of the last row on the first token", ylim=(-0.02, 1.02))
        ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.68))
    mf.plot.save(fig, path)
