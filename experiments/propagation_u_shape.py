"""The U shape of influence in five models and three corpora, in both conventions, and the context lengths at which it fails.

Both readings of U-shaped (ends above the middle third; ends above uniform) for every preset, corpus and length (arXiv 2602.16837). The claims on
where it fails were written after the first run: Falcon mixes most, so its last token falls behind on two corpora, and in the checkpoint convention,
where its ALiBi is 8 times weaker than in the published tables, at all but thousands of tokens.
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
CONVENTIONS = ("published", "checkpoint")


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Per convention the figures u_shape_*.png (profiles at 256 tokens) and lengths_*.png; numbers u_shape.csv; nothing is random."""
    lengths = (16, 256) if smoke else (16, 64, 256, 1024, 4096, 16384)
    names = [(kind, model, corpus) for kind in CONVENTIONS for model in MODELS for corpus in CORPORA]
    family = _family([pp.preset(model, dataset=corpus, convention=kind) for kind, model, corpus in names])
    rows, profiles = [], {kind: {} for kind in CONVENTIONS}
    for length in lengths:
        found = np.asarray(jax.jit(jax.vmap(lambda arch, n=length: pp.profile(arch, n)))(family))
        for (kind, model, corpus), p in zip(names, found, strict=True):
            shape = pp.u_shape(p)
            rows.append(
                (kind, model, corpus, length, bool(shape.holds), bool(shape.strict), p[0] * length, p[-1] * length)
            )
            if length == 256 and corpus == CORPORA[0]:
                profiles[kind][model] = p
    head = "convention,model,corpus,length,ends above middle third,ends above uniform,n p_1,n p_n"
    write_text(out / "u_shape.csv", "\n".join([head, *(",".join(map(str, r)) for r in rows)]) + "\n")
    for kind in CONVENTIONS:
        fig = mf.plot.profiles(profiles[kind], f"predicted influence, 256 tokens, FineWeb-Edu, {kind} convention")
        mf.plot.save(fig, out / f"u_shape_{kind}.png")
        _lengths([r for r in rows if r[0] == kind and r[2] == CORPORA[0]], lengths, out / f"lengths_{kind}.png")
    return _claims(rows)


def _claims(rows: list) -> list[Claim]:
    falcon, others = ("falcon-rw-7b",), tuple(model for model in MODELS if model != "falcon-rw-7b")

    def count(kind: str, length: int, models: tuple = MODELS, corpora: tuple = CORPORA) -> int:
        return sum(r[4] for r in rows if r[0] == kind and r[3] == length and r[1] in models and r[2] in corpora)

    longest = max(r[3] for r in rows)
    claims = [
        Claim("published convention, 256 tokens, FineWeb-Edu: U-shaped profiles (ends above the middle third), of 5", count("published", 256, corpora=CORPORA[:1]), 5, ">="),
        Claim("both conventions, 256 tokens, three corpora: U-shaped profiles of the models other than Falcon, of 24", sum(count(kind, 256, others) for kind in CONVENTIONS), 24, ">="),
        Claim("published convention, 256 tokens, DCLM and Wikipedia: U-shaped profiles of Falcon, of 2", count("published", 256, falcon, CORPORA[1:]), 0),
        Claim("checkpoint convention, 256 tokens: U-shaped profiles of Falcon, of 3", count("checkpoint", 256, falcon), 0),
        Claim("both conventions, 16 tokens: profiles with both ends above uniform, of 30", sum(r[5] for r in rows if r[3] == 16), 0),
    ]  # fmt: skip
    if longest > 256:
        claims += [
            Claim("checkpoint convention, 4096 tokens: U-shaped profiles of Falcon, of 3", count("checkpoint", 4096, falcon), 3, ">="),
            Claim(f"both conventions, {longest} tokens: U-shaped profiles, of 30", sum(count(kind, longest) for kind in CONVENTIONS), 0),
            Claim("BLOOM and MPT: p_1 falls by the least slope per token from 4096 to 16384 (worst relative error)", _fall(rows, others), 0.05),
        ]  # fmt: skip
    return claims


def _fall(rows: list, models: tuple) -> float:
    """Relative distance of −Δ log p_1/Δn to the smallest ALiBi slope: the flattest head carries what reaches the first token."""
    worst = 0.0
    for model in models:
        slope = float(pp.preset(model).bias.slopes.min())
        near, far = (r[6] / r[3] for r in rows if r[:3] == ("checkpoint", model, CORPORA[0]) and r[3] in (4096, 16384))
        worst = max(worst, abs(np.log(near / far) / (16384 - 4096) / slope - 1))
    return float(worst)


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
    """Both ends times n against n; filled where the profile is U-shaped."""
    with mf.plot.style():
        fig = mf.plot.figure(7.6, 3.4)
        axes = fig.subplots(1, 2, sharex=True)
        for k, model in enumerate(MODELS):
            mine = [r for r in rows if r[1] == model]
            for ax, column in zip(axes, (6, 7), strict=True):
                (line,) = ax.plot(lengths, [r[column] for r in mine], linewidth=1, label=model)
                for r in mine:
                    face = line.get_color() if r[4] else "white"
                    ax.plot(r[3], r[column], "osD^v"[k], color=line.get_color(), markerfacecolor=face, markersize=5)
        for ax, name in zip(axes, ("first", "last"), strict=True):
            ax.axhline(1, color="#666666", linestyle=":")
            ax.set(xlabel="context length n", ylabel=f"influence of the {name} token × n", xscale="log", yscale="log")
        axes[0].set_ylim(1e-4, 1e3)
        axes[0].legend()
        fig.suptitle("filled: U-shaped (both ends above the middle third)", fontsize=9)
    mf.plot.save(fig, path)
