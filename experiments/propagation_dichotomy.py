"""Infinite depth: a token remembers itself if and only if the mixing coefficients have a finite sum.

λ_t = λ_0/t² (finite sum) and λ_t = λ_0/t (infinite): last diagonal entry and mass on the first token against depth, beside the closed
forms sin(π√a)/(π√a) and Γ(T+1−a)/(Γ(1−a)Γ(T+1)), a = λ_0(1 − A_ii) (arXiv 2602.16837).
"""

import pathlib

import numpy as np

import meanfield as mf
from meanfield.files import write_text

from ._claims import Claim

pp = mf.propagation


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figure dichotomy.png, numbers dichotomy.csv; nothing is random."""
    length, depth, scale = 64, 300 if smoke else 5000, 0.5
    own = 1 / length
    depths = np.arange(1, depth + 1)
    limit = float(mf.theory.diagonal_product(scale, own, None, 2))
    decaying = np.asarray([float(mf.theory.diagonal_product(scale, own, int(t), 1)) for t in _some(depth)])
    first, last = {}, {}
    for exponent in (1, 2):
        arch = pp.Architecture(pp.power_mixing(depth, scale, exponent), [0.0])
        first[exponent] = np.asarray(pp.first_token_mass_by_depth(arch, length))
        last[exponent] = np.cumprod(1 - np.asarray(arch.mixing) * (1 - own))
    _figure(depths, first, last, limit, decaying, out / "dichotomy.png")
    table = np.column_stack([depths, last[2], last[1], first[2], first[1]])
    head = "depth,diagonal λ0/t²,diagonal λ0/t,first token λ0/t²,first token λ0/t"
    write_text(out / "dichotomy.csv", "\n".join([head, *(",".join(f"{x:.17g}" for x in row) for row in table)]) + "\n")
    diagonals = [
        float(pp.diagonal_mass(pp.Architecture(pp.power_mixing(depth, scale, e), [0.0]), length)[-1]) for e in (1, 2)
    ]
    exact = float(mf.theory.diagonal_product(scale, own, depth, 1))
    stated = (diagonals[1] - 0.3658, diagonals[0] - 0.0087, first[2][-1] - 0.0218, first[1][-1] - 0.4281)
    off = float(np.max(np.abs(stated)))
    return [
        Claim("Σλ < ∞: the diagonal tends to sin(π√a)/(π√a) (distance; at most λ0/T of it is left)", abs(diagonals[1] - limit), limit * scale / depth),
        Claim("Σλ = ∞: the diagonal is Γ(T+1−a)/(Γ(1−a)Γ(T+1)) (relative error)", abs(diagonals[0] / exact - 1), 1e-10),
        Claim("n = 64, T = 5000: diagonals .3658 (Σλ < ∞), .0087 (Σλ = ∞), first token .0218, .4281 (largest difference)", off, 5e-5),
    ]  # fmt: skip


def _some(depth: int) -> np.ndarray:
    return np.unique(np.geomspace(1, depth, 40).astype(int))


def _figure(depths, first, last, limit, decaying, path: pathlib.Path) -> None:
    with mf.plot.style():
        fig = mf.plot.figure(8.0, 3.3)
        left, right = fig.subplots(1, 2)
        for exponent, line in ((2, "-"), (1, "--")):
            name = f"λ = ½/t{'²' if exponent == 2 else ''}"
            left.loglog(depths, last[exponent], line, label=name)
            right.semilogx(depths, first[exponent], line, label=name)
        left.axhline(limit, color="#666666", linestyle=":", label="limit sin(π√a)/(π√a)")
        left.plot(_some(len(depths)), decaying, "k.", markersize=3, label="Γ form")
        left.set(xlabel="depth T", ylabel="self-influence of the last token $P_{nn}$")
        right.set(xlabel="depth T", ylabel="mass on the first token $P_{n0}$")
        left.legend()
        right.legend()
    mf.plot.save(fig, path)
