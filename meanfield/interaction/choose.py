"""Which method sums all pairs: named by the user, or chosen by size."""

from ..kernels import Term
from .fold import Tiling
from .method import AbstractMethod
from .tiled import Tiled

METHODS = ("auto", "dense", "blocked")
DENSE_PAIRS = 1024**2
ROWS, COLUMNS = 256, 1024
MAPPED_ROWS, MAPPED_COLUMNS = 64, 256


def choose(method: str, terms: tuple[Term, ...], n: int, d: int, dtype) -> tuple[AbstractMethod, str]:
    """The method for structured `terms` of n tokens in R^d, and why. Raises `ValueError` for an unknown name."""
    _known(method)
    if method == "dense" or (method == "auto" and n * n <= DENSE_PAIRS):
        return Tiled(Tiling()), "dense: asked for" if method == "dense" else f"dense: n = {n} tokens are few"
    why = "asked for" if method == "blocked" else f"n = {n} tokens, no n×n array"
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


def _known(method: str) -> None:
    if method not in METHODS:
        raise ValueError(f"method={method!r} is unknown: use one of {', '.join(METHODS)}")
