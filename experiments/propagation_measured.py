"""Predicted against measured influence of BLOOM-176B, in every convention and content.

The measured profile (256 tokens, FineWeb-Edu) ships with the library, read off the figure of arXiv 2602.16837. No measured profile of the other
models is at hand; the commands that measure and compare one are printed.
"""

import pathlib
import sys

import numpy as np

import meanfield as mf
from meanfield.files import write_text

from ._claims import Claim
from .propagation_content import _scores

pp = mf.propagation
PUBLISHED = {"none": 0.079, "per head": 0.016, "mean": 0.091}
OTHERS = """No measured profile of bloom-7b1, falcon-rw-7b, mpt-7b and mpt-30b is at hand. With a checkpoint and a text:
    meanfield measure CHECKPOINT --text FILE --length 256 --out measured
    meanfield profile bloom-7b1 --compare measured/influence.npz
"""
CHECKPOINT = {"none": 0.035, "per head": 0.038, "mean": 0.036}


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """Figure measured.png, numbers measured.csv; nothing is random."""
    measured = pp.measured_influence("bloom")
    profiles = {}
    scores = _scores()
    for convention in ("checkpoint", "published"):
        for content in ("none", "mean"):
            arch = pp.preset("bloom", content=content, convention=convention)
            profiles[f"{convention} slopes, content {content}"] = np.asarray(pp.profile(arch, 256))
        if scores:
            scale = 128**-0.5 if convention == "checkpoint" else 1.0
            table = np.asarray(scores["bloom/fineweb-edu/diagonal"], float) * scale
            arch = pp.Architecture(arch.mixing, arch.bias.slopes, diagonal=table.astype(np.asarray(arch.mixing).dtype))
            profiles[f"{convention} slopes, content per head"] = np.asarray(pp.profile(arch, 256))
    profiles["attention only"] = np.asarray(pp.profile(pp.Architecture(np.ones(70), [0.0]), 256))
    profiles["½I + ½A"] = np.asarray(pp.profile(pp.Architecture(np.full(70, 0.5), pp.alibi_slopes(112)), 256))
    profiles["uniform"] = np.full(256, 1 / 256)
    rows = [(name, float(pp.wasserstein(p, measured)), float(pp.spearman(p, measured))) for name, p in profiles.items()]
    write_text(
        out / "measured.csv",
        "\n".join(["prediction,wasserstein,spearman", *(",".join(map(str, r)) for r in rows)]) + "\n",
    )
    shown = {name: p for name, p in profiles.items() if "content" in name}
    mf.plot.save(
        mf.plot.profiles(shown, "BLOOM-176B: predicted and measured influence", measured / measured.sum()),
        out / "measured.png",
    )
    sys.stdout.write(OTHERS)
    distance = {name: w for name, w, _ in rows}
    expected = {f"checkpoint slopes, content {k}": v for k, v in CHECKPOINT.items()}
    expected |= {f"published slopes, content {k}": v for k, v in PUBLISHED.items()}
    expected |= {"attention only": 0.651, "½I + ½A": 0.650, "uniform": 0.152}
    return [
        Claim(
            f"{name}: Wasserstein distance to the measured profile is {value} (difference)",
            abs(distance[name] - value),
            5.1e-4,
        )
        for name, value in expected.items()
        if name in distance
    ]
