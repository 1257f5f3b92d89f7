"""The U shape of influence in five models and three corpora, and the context lengths at which it fails.

Both readings of U-shaped (ends above the middle third; ends above uniform) for every preset, corpus and length (arXiv 2602.16837).
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf
from meanfield.files import write_text

from ._claims import Claim

pp = mf.propagation
MODELS = ("bloom", "bloom-7b1", "falcon-rw-7b", "mpt-7b", "mpt-30b")
CORPORA = ("fineweb-edu", "dclm", "wikipedia")


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figures u_shape.png and lengths.png, numbers u_shape.csv; nothing is random."""
    lengths = (16, 256) if smoke else (16, 64, 256, 1024, 4096, 16384)
    names = [(model, corpus) for model in MODELS for corpus in CORPORA]
    family = _family([pp.preset(model, dataset=corpus) for model, corpus in names])
    rows, profiles = [], {}
    for length in lengths:
        found = np.asarray(jax.jit(jax.vmap(lambda arch, n=length: pp.profile(arch, n)))(family))
        for (model, corpus), p in zip(names, found, strict=True):
            shape = pp.u_shape(p)
            rows.append((model, corpus, length, bool(shape.holds), bool(shape.strict), p[0] * length, p[-1] * length))
            if length == 256 and corpus == CORPORA[0]:
                profiles[model] = p
    head = "model,corpus,length,ends above middle third,ends above uniform,n p_1,n p_n"
    write_text(out / "u_shape.csv", "\n".join([head, *(",".join(map(str, r)) for r in rows)]) + "\n")
    mf.plot.save(mf.plot.profiles(profiles, "predicted influence, 256 tokens, FineWeb-Edu mixing"), out / "u_shape.png")
    _lengths(rows, lengths, out / "lengths.png")
    at = [r for r in rows if r[2] == 256]
    claims = [
        Claim(
            "all five models × three corpora are U-shaped at 256 tokens (ends above the middle third)",
            sum(r[3] for r in at),
            15,
            ">=",
        ),
    ]
    for model in MODELS:
        fails = [r[2] for r in rows if r[0] == model and r[1] == CORPORA[0] and not r[3]]
        strict = [r[2] for r in rows if r[0] == model and r[1] == CORPORA[0] and not r[4]]
        first = min(fails, default=float("inf"))
        claims.append(
            Claim(
                f"{model}: smallest length whose profile is not U-shaped (inf: none up to {lengths[-1]})",
                first,
                256,
                ">",
            )
        )
        first = min(strict, default=float("inf"))
        claims.append(
            Claim(f"{model}: smallest length at which an end is not above uniform (inf: none)", first, 16, ">=")
        )
    return claims


def _family(archs: list) -> pp.Architecture:
    """Architectures of equal shapes, stacked: layers that do not mix and heads of weight 0 change nothing."""
    depth, heads = (max(getattr(a, size) for a in archs) for size in ("depth", "num_heads"))
    padded = [
        pp.Architecture(
            np.pad(np.asarray(a.mixing), (0, depth - a.depth)),
            np.pad(np.asarray(a.bias.slopes), (0, heads - a.num_heads)),
            head_weights=np.pad(np.ones(a.num_heads), (0, heads - a.num_heads)),
        )
        for a in archs
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *padded)


def _lengths(rows: list, lengths: tuple, path: pathlib.Path) -> None:
    with mf.plot.style():
        fig = mf.plot.figure(7.6, 3.4)
        axes = fig.subplots(1, 2, sharex=True)
        for k, model in enumerate(MODELS):
            mine = [r for r in rows if r[0] == model and r[1] == CORPORA[0]]
            for ax, column in zip(axes, (5, 6), strict=True):
                ax.loglog(lengths, [r[column] for r in mine], marker="osD^v"[k], markersize=4, label=model)
        for ax, name in zip(axes, ("first", "last"), strict=True):
            ax.axhline(1, color="#666666", linestyle=":")
            ax.set(xlabel="context length n", ylabel=f"influence of the {name} token × n")
        axes[0].legend()
    mf.plot.save(fig, path)
