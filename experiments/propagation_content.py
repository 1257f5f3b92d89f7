"""Content: per-head scores move influence to recent tokens in all five models, mean content does not in three.

Both signs of the diagonal and the drift they give. Per-head scores come from an .npz file with arrays MODEL/CORPUS/diagonal of shape (T, H)
(environment variable MEANFIELD_CONTENT, by default ../shared/data/content_per_head.npz); without it only mean content is claimed.
"""

import os
import pathlib

import numpy as np

import meanfield as mf
from meanfield.files import write_text

from ._claims import Claim

pp = mf.propagation
MODELS = ("bloom", "bloom-7b1", "falcon-rw-7b", "mpt-7b", "mpt-30b")
NEGATIVE = ("bloom", "bloom-7b1", "mpt-30b")
SCORES = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data" / "content_per_head.npz"


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figure content.png, numbers content.csv; nothing is random."""
    length = 64 if smoke else 256
    scores = _scores()
    claims, rows = [], []
    for model in MODELS:
        none = pp.preset(model, convention="published")
        start = float(pp.mean_position(pp.profile(none, length)))
        mean = pp.preset(model, content="mean", convention="published")
        diagonal = float(mean.content.diagonal)
        drift = float(pp.mean_position(pp.profile(mean, length))) - start
        rows.append((model, "mean", diagonal, drift))
        relation = "<" if model in NEGATIVE else ">"
        claims.append(Claim(f"{model}: mean content {diagonal:+.2f}, drift of the mean position", drift, 0.0, relation))
        if f"{model}/fineweb-edu/diagonal" in scores:
            table = np.asarray(scores[f"{model}/fineweb-edu/diagonal"], np.asarray(none.mixing).dtype)
            arch = pp.Architecture(none.mixing, none.bias.slopes, diagonal=table)
            drift = float(pp.mean_position(pp.profile(arch, length))) - start
            rows.append((model, "per head", float((table > 0).mean()), drift))
            claims.append(Claim(f"{model}: per-head content, drift of the mean position", drift, 0.0, ">"))
    claims += _signs(length)
    head = "model,content,diagonal (mean) or share of positive heads (per head),drift of mean position"
    write_text(out / "content.csv", "\n".join([head, *(",".join(map(str, r)) for r in rows)]) + "\n")
    _figure(rows, out / "content.png")
    return claims


def _signs(length: int) -> list[Claim]:
    """A diagonal of either sign on the same architecture: every step up moves mass towards the end."""
    arch = pp.preset("bloom-7b1")
    positions = [
        float(pp.mean_position(pp.profile(pp.Architecture(arch.mixing, arch.bias.slopes, diagonal=d), length)))
        for d in (-4.0, -2.0, 0.0, 2.0, 4.0)
    ]
    return [
        Claim(
            "bloom-7b1: mean position rises with the diagonal from −4 to 4 (least step)",
            float(np.diff(positions).min()),
            0.0,
            ">",
        )
    ]


def _scores() -> dict:
    path = pathlib.Path(os.environ.get("MEANFIELD_CONTENT", SCORES))
    return dict(np.load(path, allow_pickle=False)) if path.is_file() else {}


def _figure(rows: list, path: pathlib.Path) -> None:
    with mf.plot.style():
        fig = mf.plot.figure(6.4, 3.2)
        ax = fig.subplots()
        place = np.arange(len(MODELS))
        for k, kind in enumerate(("mean", "per head")):
            values = [next((r[3] for r in rows if r[:2] == (m, kind)), np.nan) for m in MODELS]
            bars = ax.bar(place + 0.38 * (k - 0.5), values, 0.36, label=f"{kind} content", hatch=("", "//")[k])
            ax.bar_label(bars, fmt="%+.3f", fontsize=7, padding=2)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_xticks(place, MODELS)
        ax.set(ylabel="drift of the mean position\n(+ recent, − first tokens)")
        ax.margins(y=0.12)
        ax.legend()
    mf.plot.save(fig, path)
