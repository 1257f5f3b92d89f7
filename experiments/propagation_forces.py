"""Four forces make the profile: attention pulls to the first token, residuals, ALiBi and a positive diagonal to the last.

Decomposition of the five models' profiles, stochastic monotonicity of their kernels, and the predicted sign of every drift.
"""

import pathlib

import jax.numpy as jnp
import numpy as np

import meanfield as mf
from meanfield.files import write_text

from ._claims import Claim

pp = mf.propagation
MODELS = ("bloom", "bloom-7b1", "falcon-rw-7b", "mpt-7b", "mpt-30b")


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """One figure per model, numbers forces.csv; nothing is random."""
    length = 64 if smoke else 256
    claims, rows = [], []
    for model in MODELS[:2] if smoke else MODELS:
        found = pp.forces(pp.preset(model, content="mean"), length)
        mf.plot.save(mf.plot.forces(found, f"{model}, {length} tokens, mean content"), out / f"forces_{model}.png")
        for name, sign, drift in zip(found.stages, found.predicted, found.total_drift, strict=True):
            rows.append((model, name, sign, *drift.tolist()))
        claims.append(Claim(f"{model}: kernels that are stochastically monotone, of 4", sum(found.monotone), 4, ">="))
        least = min(float(s * d) for s, d in zip(found.predicted, found.total_drift[:, 0], strict=True))
        claims.append(Claim(f"{model}: every drift has its predicted sign (least signed drift)", least, 0.0, ">"))
    head = "model,force,predicted sign,change of mean position,change of first tenth,change of last tenth"
    write_text(out / "forces.csv", "\n".join([head, *(",".join(map(str, r)) for r in rows)]) + "\n")
    waves = pp.Architecture(np.ones(1), bias=lambda distance: 3 * jnp.cos(distance))
    cdf = np.cumsum(np.asarray(pp.attention(waves, 0, 16)), axis=1)
    worst = float((cdf[1:] - cdf[:-1]).max())
    claims.append(Claim("a bias 3 cos(i − j) breaks monotonicity: largest F_{i+1}(k) − F_i(k)", worst, 1e-3, ">"))
    return claims
