"""Which method sums all pairs: named by the user, or chosen by predicted cost."""

from .._check import is_concrete
from ..kernels import Term
from .expansion import Expansion, refusal
from .fold import Tiling
from .method import AbstractMethod
from .pairs import Causal
from .series import LARGEST, degree
from .tiled import Tiled

METHODS = ("auto", "dense", "blocked", "expansion")
DENSE_PAIRS = 1024**2
ROWS, COLUMNS = 256, 1024
MAPPED_ROWS, MAPPED_COLUMNS = 64, 256


def choose(
    method: str, terms: tuple[Term, ...], n: int, d: int, dtype, visible: Causal | None = None
) -> tuple[AbstractMethod, str]:
    """The method for structured `terms` of n tokens in R^d, and why.

    Raises `ValueError` for an unknown name, and for an expansion where none is known.
    """
    _known(method)
    if method == "expansion":
        return _expansion(terms, d, dtype, visible)
    if method == "dense" or (method == "auto" and n * n <= DENSE_PAIRS):
        return Tiled(Tiling()), "dense: asked for" if method == "dense" else f"dense: n = {n} tokens are few"
    why = "asked for"
    if method == "auto":
        terms_needed, why = _worthwhile(terms, n, d, dtype, visible)
        if terms_needed is not None:
            return Expansion(terms_needed), f"expansion: {why}"
    return Tiled(Tiling(ROWS, COLUMNS)), f"blocked: {why}"


def choose_mapped(method: str, n: int) -> tuple[Tiling, str]:
    """The tiling for a kernel without structure, and why."""
    _known(method)
    if method == "expansion":
        raise ValueError(
            "method='expansion' needs a kernel that is zonal up to gauges and position factors: use method='blocked' "
            "for Pair kernels and for products of differently gauged kernels"
        )
    if method == "dense" or (method == "auto" and n <= 256):
        return Tiling(), "mapped autodiff over all pairs at once"
    return Tiling(MAPPED_ROWS, MAPPED_COLUMNS), "mapped autodiff in blocks: the kernel has no zonal structure"


def _expansion(terms, d, dtype, visible):
    reason = refusal(terms, d, visible)
    if reason is not None:
        raise ValueError(f"method='expansion' does not apply: {reason}; use method='blocked'")
    found = degree(terms, d, dtype)
    if found is None:
        raise ValueError(
            f"method='expansion' needs more than {LARGEST[d]} terms to represent φ to the rounding of {dtype}: "
            "use method='blocked', a smaller beta, or a smoother φ"
        )
    traced = not is_concrete([t.zonal for t in terms])
    note = " (parameters are traced: NaN where that is too few)" if traced else ""
    return Expansion(found), f"expansion: asked for, degree {found}{note}"


def _worthwhile(terms, n, d, dtype, visible) -> tuple[int | None, str]:
    """The degree where an expansion is predicted to be faster than blocks, else None; and why."""
    plain = f"n = {n} tokens, no n×n array"
    reason = refusal(terms, d, visible)
    if reason is not None:
        return None, f"{plain}; no expansion: {reason}"
    if not is_concrete([t.zonal for t in terms]):
        return (
            None,
            f"{plain}; no expansion: parameters are traced, so its length is unknown (method='expansion' fixes it)",
        )
    found = degree(terms, d, dtype)
    if found is None:
        return None, f"{plain}; no expansion: more than {LARGEST[d]} terms"
    pairs, series = n * n * PAIR_COST, n * series_cost(d, found)
    if series >= pairs:
        return None, f"{plain}; an expansion of degree {found} would cost more"
    return found, f"n = {n} tokens, degree {found} costs less than all pairs"


PAIR_COST = 1.0


def series_cost(d: int, degree: int) -> float:
    """Cost per token of an expansion in units of one pair."""
    return 40.0 * (degree + 1) if d == 2 else 4.0 * (degree + 1) ** 2 + 1000.0


def _known(method: str) -> None:
    if method not in METHODS:
        raise ValueError(f"method={method!r} is unknown: use one of {', '.join(METHODS)}")
