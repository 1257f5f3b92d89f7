"""Which state wins over (offset, β) for g = offset + cos kτ, k = 1 and 2: the solver beside the closed-form boundaries."""

import pathlib

import jax
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._maximisers import write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """A grid of (offset, β) for both frequencies, one compiled program each."""
    offset = np.linspace(0, 0.6, 3 if smoke else 19)
    beta = np.linspace(0.5, 4.0, 3 if smoke else 15)
    names = ["energy", "state", "dirac", "circle", "latitude"]
    diagrams = {}
    for k in (1,) if smoke else (1, 2):
        found = mf.theory.toeplitz_phase_diagram(
            offset, float(k), beta, jax.random.key(seed), n=16 if smoke else 32 * k, restarts=4 if smoke else 16
        )
        diagrams[k] = found
        write(
            out,
            f"phase_diagram_k{k}",
            {v: (("offset", "beta"), np.asarray(getattr(found, v))) for v in names},
            {"offset": offset, "beta": beta},
        )
        mf.plot.save(
            mf.plot.phase_diagram(found, f"Best state found, g = offset + cos {k}τ, d = 3"),
            out / f"phase_diagram_k{k}.png",
        )
    one = diagrams[1]
    forms = np.maximum(np.maximum(one.dirac, one.circle), one.latitude)
    claims = [
        Claim("least ratio of the energy found to the best closed form", float(np.min(one.energy / forms)), 1 - 1e-6, ">="),
        Claim("offset > ½: share of Diracs", float(np.mean(np.asarray(one.state)[offset > 0.5] == 0)), 1.0, ">="),
        Claim("offset 0, β ≤ 1.5: share of great circles", float(np.mean(np.asarray(one.state)[0][beta <= 1.5] == 1)), 1.0, ">="),
    ]  # fmt: skip
    if 2 in diagrams:
        difference = float(np.max(np.abs(diagrams[2].energy / one.energy - 1)))
        claims.append(Claim("k = 1 and k = 2 have the same energies: largest relative difference", difference, 1e-3))
    return claims
