"""Which state wins over (offset, β) for g = offset + cos kτ: the solver beside the closed-form boundaries."""

import pathlib

import jax
import numpy as np

import meanfield as mf

from ._claims import Claim
from ._maximisers import write


def run(out: pathlib.Path, smoke: bool = False, seed: int = 0) -> list[Claim]:
    """A grid of (offset, β) for k = 1 as one compiled program, and a coarser one for k = 2."""
    offset = np.linspace(0, 0.6, 3 if smoke else 19)
    beta = np.linspace(0.5, 4.0, 3 if smoke else 15)
    one = diagram(1, offset, beta, smoke, seed)
    names = ["energy", "state", "dirac", "circle", "latitude"]
    variables = {v: (("offset", "beta"), np.asarray(getattr(one, v))) for v in names}
    write(out, "phase_diagram", variables, {"offset": offset, "beta": beta})
    fig = mf.plot.phase_diagram(one, "Best state found, g = offset + cos τ, d = 3")
    mf.plot.save(fig, out / "phase_diagram.png")

    forms = np.maximum(np.maximum(one.dirac, one.circle), one.latitude)
    state = np.asarray(one.state)
    claims = [
        Claim("least ratio of the energy found to the best closed form", float(np.min(one.energy / forms)), 1 - 1e-6, ">="),
        Claim("offset > ½: share of Diracs", float(np.mean(state[offset > 0.5] == 0)), 1.0, ">="),
        Claim("offset < ½: share of Diracs", float(np.mean(state[offset < 0.5] == 0)), 0.0),
        Claim("offset 0, β ≤ 1.5: share of great circles", float(np.mean(state[0][beta <= 1.5] == 1)), 1.0, ">="),
    ]  # fmt: skip
    if not smoke:
        two = diagram(2, offset[::3], beta[::2], smoke, seed)
        difference = np.max(np.abs(np.asarray(two.energy) / np.asarray(one.energy)[::3, ::2] - 1))
        claims.append(Claim("k = 2 has the energies of k = 1: largest relative difference", float(difference), 1e-3))
    return claims


def diagram(k: int, offset: np.ndarray, beta: np.ndarray, smoke: bool, seed: int) -> mf.theory.PhaseDiagram:
    """The diagram of frequency k on 32k labels (each direction of labels of k = 1 occurs k times)."""
    n, restarts = (16, 4) if smoke else (32 * k, 16)
    return mf.theory.toeplitz_phase_diagram(offset, float(k), beta, jax.random.key(seed), n=n, restarts=restarts)
