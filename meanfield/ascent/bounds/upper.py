"""The smallest upper bound that can be proved."""

import equinox as eqx
import numpy as np

from ...kernels import AbstractKernel, terms
from ...marginal import Marginal
from ...prefix import Prefix
from .delsarte import delsarte
from .parseval import parseval
from .problem import Problem, problems, profile
from .sdp import sdp_dual
from .termwise import termwise

EFFORTS = {"cheap": None, "default": (12, 12, 300), "tight": (30, 30, 1000)}
SPECTRAL_TOKENS = 2048  # above, eigenvalues of label matrices take too long
DELSARTE_TOKENS = 512
CLOSED = 1e-7  # relative gap below which no further bound is tried


class Bound(eqx.Module):
    """`value` ≥ the energy of every configuration; `method` that gave it, and `reason` where nothing is proved.

    Examples:
        >>> kernel = mf.Pair(lambda x, xi, y, zeta: x @ y)
        >>> x = np.tile(np.float32([1, 0]), (4, 1))
        >>> mf.ascent.upper_bound(kernel, mf.Marginal.circle(4), 2, x).value  # nothing is proved for a Pair
        inf
    """

    value: float = eqx.field(static=True)
    method: str = eqx.field(static=True)
    reason: str = eqx.field(static=True, default="")


def upper_bound(
    kernel: AbstractKernel,
    rho: Marginal,
    dim: int,
    x: np.ndarray,
    prefix: Prefix | None = None,
    effort: str = "default",
) -> Bound:
    """The smallest of the termwise, Parseval, SDP-dual and Delsarte bounds, in float64 on the host (theory.md 2).

    Terms with different gauges are bounded apart and added. `x` (n, dim): a good state, from which the SDP dual takes
    its multipliers. `effort`: "cheap" leaves out the Delsarte bound, "tight" spends about 10 s on it. Unstructured
    kernels (`Pair`) have no bound: inf, with the reason.

    Examples:
        >>> x = np.tile(np.float32([1, 0]), (4, 1))
        >>> bound = mf.ascent.upper_bound(mf.Dot(), mf.Marginal.circle(4), 2, x, effort="cheap")
        >>> print(f"{bound.value:.4f}", bound.method)
        0.5000 termwise
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort={effort!r} is unknown: use one of {', '.join(EFFORTS)}")
    parts = problems(kernel, rho, dim, np.asarray(x))
    if parts is None:
        return Bound(float("inf"), "", "the kernel is not zonal up to gauges and factors, so no bound is known")
    bounds = [_smallest(part, effort) for part in parts]
    value = sum(value for value, _ in bounds) + sum(part.slack for part in parts) + _prefix_bound(kernel, prefix)
    if not np.isfinite(value):
        return Bound(float("inf"), "", "the kernel overflows in float64: use ExpDot(beta, shift=1)")
    rounding = 64 * float(np.finfo(np.asarray(x).dtype).eps) * sum(part.scale for part in parts)
    return Bound(value + rounding, "+".join(dict.fromkeys(name for _, name in bounds)))


def _smallest(problem: Problem, effort: str) -> tuple[float, str]:
    """The least bound of one problem; a bound that the known state attains ends the search."""
    known = _energy(problem)
    best = (termwise(problem), "termwise")
    n = len(problem.weights)
    candidates = []
    if n <= SPECTRAL_TOKENS:
        candidates += [(parseval, "parseval"), (sdp_dual, "sdp")]
    if n <= DELSARTE_TOKENS and EFFORTS[effort] is not None:
        candidates.append((lambda p: delsarte(p, *EFFORTS[effort]), "delsarte"))
    for bound, name in candidates:
        if best[0] - known <= CLOSED * problem.scale:
            break
        best = min(best, (bound(problem), name))
    return best


def _energy(problem: Problem) -> float:
    values = problem.pair(np.clip(problem.y @ problem.y.T, -1, 1))
    return 0.5 * float(problem.weights @ np.sum(problem.coefficients * values, axis=0) @ problem.weights)


def _prefix_bound(kernel: AbstractKernel, prefix: Prefix | None) -> float:
    """Σ_k max_t c_k φ(t) summed over terms: exact for one prefix token and increasing φ."""
    if prefix is None:
        return 0.0
    t = np.cos(np.linspace(0, np.pi, 4097))
    total = 0.0
    for term in terms(kernel):
        shape = profile(term.zonal)
        values = shape.phi(t)
        slack = 0.0 if shape.monotone else shape.bend * (np.pi / 4096) ** 2 / 8
        for c in np.asarray(prefix.weights, np.float64) * float(term.scale):
            total += max(c * (values.max() + slack), c * (values.min() - slack))
    return float(total)
