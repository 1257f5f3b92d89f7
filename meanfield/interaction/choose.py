"""Which method sums all pairs: named by the user, or chosen by predicted cost."""

import jax
from jax.sharding import Mesh

from .._check import is_concrete
from .._types import DType
from ..kernels import Term
from .devices import Plan
from .expansion import BLOCK, Expansion, refusal
from .fold import Tiling
from .method import AbstractMethod
from .pairs import Causal
from .separable import Split, split_factors
from .series import LARGEST, degree
from .tiled import Tiled

METHODS = ("auto", "dense", "blocked", "expansion", "pallas")
DENSE_PAIRS = 1024**2
ROWS, COLUMNS = 512, 1024
MAPPED_ROWS, MAPPED_COLUMNS = 64, 256


def choose(
    method: str | Plan, terms: tuple[Term, ...], n: int, d: int, dtype: DType, visible: Causal | None = None
) -> tuple[AbstractMethod, str]:
    """The method for structured `terms` of n tokens in R^d, and why.

    Raises `ValueError` for an unknown name, and for an expansion where none is known.
    """
    reverse = isinstance(method, Plan) and method.reverse
    method, mesh, where = _parts(method)
    if method == "expansion":
        found, why = _expansion(terms, d, dtype, visible)
        return Expansion(found, mesh), f"expansion{where}: {why}"
    if method == "pallas":
        return _pallas(mesh), f"pallas{where}: asked for"
    if method == "dense" or (method == "auto" and n * n <= DENSE_PAIRS):
        why = "asked for" if method == "dense" else f"n = {n} tokens are few"
        return Tiled(Tiling(mesh=mesh), reverse), f"dense{where}: {why}"
    why = "asked for"
    if method == "auto":
        terms_needed, why = _worthwhile(terms, n, d, dtype, visible)
        if terms_needed is not None:
            return Expansion(terms_needed, mesh), f"expansion{where}: {why}"
    return Tiled(Tiling(ROWS, COLUMNS, mesh), reverse), f"blocked{where}: {why}"


def choose_mapped(method: str | Plan, n: int) -> tuple[Tiling, str]:
    """The tiling for a kernel without structure, and why."""
    method, mesh, where = _parts(method)
    if method in ("expansion", "pallas"):
        raise ValueError(
            f"method={method!r} needs a kernel that is zonal up to gauges and position factors: use method='blocked' "
            "for Pair kernels and for products of differently gauged kernels"
        )
    if method == "dense" or (method == "auto" and n <= 256):
        return Tiling(mesh=mesh), f"mapped autodiff over all pairs at once{where}"
    why = "the kernel has no zonal structure"
    return Tiling(MAPPED_ROWS, MAPPED_COLUMNS, mesh), f"mapped autodiff in blocks{where}: {why}"


def _pallas(mesh: Mesh | None) -> AbstractMethod:
    """Imported on demand: Pallas is slow to import."""
    from .pallas import Pallas

    if jax.default_backend() not in ("cpu", "gpu"):
        raise ValueError(f"method='pallas' has kernels for GPUs, not for {jax.default_backend()}: use method='blocked'")
    return Pallas(mesh=mesh)


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
    return found, f"asked for, degree {found}{note}"


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
    if max(series_cost(d, found, split_factors(term, visible)) for term in terms) >= n:
        return None, f"{plain}; an expansion of degree {found} would cost more"
    return found, f"n = {n} tokens, degree {found} costs less than all pairs"


def series_cost(d: int, degree: int, parts: Split) -> float:
    """Cost per token of one term's expansion in units of one pair (1.5 ns on two EPYC cores in f32, where it was measured)."""
    size = degree + 1
    once = 5.5 * size if d == 2 else 0.6 * size**2 + 6.0 * size
    once *= 3 ** len(parts.trigonometric)  # columns of values
    return 2 * once + BLOCK[d] if parts.ordered else once


def _parts(method: str | Plan) -> tuple[str, Mesh | None, str]:
    """Name, mesh and how to say it; an unknown name is refused."""
    mesh = method.mesh if isinstance(method, Plan) else None
    method = method.name if isinstance(method, Plan) else method
    if method not in METHODS:
        raise ValueError(f"method={method!r} is unknown: use one of {', '.join(METHODS)}")
    return method, mesh, "" if mesh is None else f" on {mesh.size} devices"
