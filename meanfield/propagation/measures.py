"""Measures of a profile and distances between two."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.stats
import numpy as np
from jaxtyping import Array, Bool, Float

from .._products import matmul
from ._inputs import Numbers, check_range, floating, is_concrete


def wasserstein(p: Numbers, q: Numbers) -> Float[Array, "*batch"]:
    """Σ_j |CDF_p(j) − CDF_q(j)| / (n − 1), both normalised: 0 for equal profiles, 1 between the two ends.

    Source: arXiv 2602.16837.

    Examples:
        >>> float(mf.propagation.wasserstein([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]))
        1.0
    """
    p, q = _pair(p, q)
    gap = jnp.cumsum(p / p.sum(-1, keepdims=True), -1) - jnp.cumsum(q / q.sum(-1, keepdims=True), -1)
    return jnp.abs(gap[..., :-1]).sum(-1) / (p.shape[-1] - 1)


def spearman(p: Numbers, q: Numbers) -> Float[Array, "*batch"]:
    """Correlation of the ranks of p and q over all positions; ties share their mean rank; NaN when one is constant.

    Source: arXiv 2602.16837.

    Examples:
        >>> print(f"{mf.propagation.spearman([0.1, 0.2, 0.7], [1.0, 2.0, 3.0]):.3f}")
        1.000
    """
    p, q = _pair(p, q, mass=False)
    a, b = (jax.scipy.stats.rankdata(x, axis=-1).astype(p.dtype) for x in (p, q))
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    return (a * b).sum(-1) / jnp.sqrt((a * a).sum(-1) * (b * b).sum(-1))


class UShape(eqx.Module):
    """Whether each end of a profile stands above its middle third, and above the uniform 1/n; scalar booleans.

    Source: arXiv 2602.16837.

    Examples:
        >>> u = mf.propagation.u_shape([0.5, 0.05, 0.05, 0.4])
        >>> bool(u.holds), bool(u.strict)
        (True, True)
    """

    start_above_middle: Bool[Array, "*batch"]
    end_above_middle: Bool[Array, "*batch"]
    start_above_uniform: Bool[Array, "*batch"]
    end_above_uniform: Bool[Array, "*batch"]

    @property
    def holds(self) -> Bool[Array, "*batch"]:
        """Both ends above the mean of the middle third."""
        return self.start_above_middle & self.end_above_middle

    @property
    def strict(self) -> Bool[Array, "*batch"]:
        """Both ends above 1/n."""
        return self.start_above_uniform & self.end_above_uniform


def u_shape(p: Numbers) -> UShape:
    """Both readings of U-shaped: p_1 and p_n against the mean of the middle third of positions, and against 1/n.

    Source: arXiv 2602.16837.

    Examples:
        >>> u = mf.propagation.u_shape([0.9, 0.05, 0.02, 0.03])
        >>> bool(u.start_above_middle), bool(u.end_above_uniform)
        (True, False)
    """
    p = _normalized(p)
    n = p.shape[-1]
    middle = p[..., n // 3 : n - n // 3].mean(-1)
    start, end = p[..., 0], p[..., -1]
    return UShape(start > middle, end > middle, start > 1 / n, end > 1 / n)


def is_u_shaped(p: Numbers, strict: bool = False) -> Bool[Array, "*batch"]:
    """p_1 and p_n both above the mean of the middle third; strict=True: both above 1/n instead.

    Source: arXiv 2602.16837.

    Examples:
        >>> bool(mf.propagation.is_u_shaped([0.5, 0.05, 0.05, 0.4]))
        True
    """
    shape = u_shape(p)
    return shape.strict if strict else shape.holds


def primacy_mass(p: Numbers, share: float = 0.1) -> Float[Array, "*batch"]:
    """Mass of the first ⌈share·n⌉ positions.

    Source: arXiv 2602.16837.

    Examples:
        >>> print(f"{mf.propagation.primacy_mass([0.5, 0.1, 0.1, 0.3], share=0.25):.2f}")
        0.50
    """
    p = _normalized(p)
    return p[..., : _count(p.shape[-1], share)].sum(-1)


def recency_mass(p: Numbers, share: float = 0.1) -> Float[Array, "*batch"]:
    """Mass of the last ⌈share·n⌉ positions.

    Source: arXiv 2602.16837.

    Examples:
        >>> print(f"{mf.propagation.recency_mass([0.5, 0.1, 0.1, 0.3], share=0.25):.2f}")
        0.30
    """
    p = _normalized(p)
    return p[..., p.shape[-1] - _count(p.shape[-1], share) :].sum(-1)


def mean_position(p: Numbers) -> Float[Array, "*batch"]:
    """Σ_j j p_j / (n − 1) with j = 0 … n − 1: 0 when all mass is on the first token, 1 on the last.

    Source: arXiv 2602.16837.

    Examples:
        >>> float(mf.propagation.mean_position([0.5, 0.0, 0.5]))
        0.5
    """
    p = _normalized(p)
    n = p.shape[-1]
    return matmul(p, jnp.arange(n).astype(p.dtype) / max(n - 1, 1))


def is_monotone(attention: Numbers, tolerance: float | None = None) -> Bool[Array, ""]:
    """Stochastic monotonicity of a causal kernel: F_i(k) ≥ F_{i+1}(k) for the row CDFs F_i(k) = Σ_{j≤k} A_ij.

    Args:
        attention: (n, n) with rows summing to 1.
        tolerance: default n rounding errors of attention's dtype.

    Source: arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> bool(mf.propagation.is_monotone(mf.propagation.attention(arch, 0, 5)))
        True
    """
    attention = floating(attention)
    if attention.ndim != 2 or attention.shape[0] != attention.shape[1]:
        raise ValueError(f"attention has shape {attention.shape}: give one (n, n) matrix")
    if tolerance is None:
        tolerance = 4 * attention.shape[0] * float(jnp.finfo(attention.dtype).eps)
    cdf = jnp.cumsum(attention, axis=-1)
    return jnp.all(cdf[:-1] >= cdf[1:] - tolerance)


def exclude_first(p: Numbers, count: int = 1) -> Float[Array, "*batch m"]:
    """p without its first `count` positions, normalised: for looking past the mass that gathers on the first token.

    Source: arXiv 2602.16837.

    Examples:
        >>> print(mf.propagation.exclude_first([0.5, 0.125, 0.375]))
        [0.25 0.75]
    """
    p = floating(p)
    if not 0 <= count < p.shape[-1]:
        raise ValueError(f"count = {count} must leave at least one of {p.shape[-1]} positions")
    return _share("p without its first positions", p[..., count:])


def per_receptive_field(p: Numbers) -> Float[Array, "*batch n"]:
    """p_j over the number n − j of positions that can see token j under a causal mask, normalised.

    Source: arXiv 2602.16837.

    Examples:
        >>> print(np.round(mf.propagation.per_receptive_field([0.5, 0.25, 0.25]), 3))
        [0.30800003 0.231      0.462     ]
    """
    p = floating(p)
    n = p.shape[-1]
    return _share("p", p / jnp.arange(n, 0, -1).astype(p.dtype))


def _normalized(p: Numbers) -> Float[Array, "*batch n"]:
    p = floating(p)
    if p.ndim == 0 or p.shape[-1] < 3:
        raise ValueError(f"a profile has shape {p.shape}: give (n,) with n ≥ 3")
    return _share("p", p)


def _share(name: str, p: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    _check_mass(name, p)
    return p / p.sum(-1, keepdims=True)


def _pair(p: Numbers, q: Numbers, mass: bool = True) -> tuple[Array, Array]:
    p = floating(p)
    q = floating(q, p.dtype)
    if p.ndim == 0 or p.shape[-1:] != q.shape[-1:] or p.shape[-1] < 2:
        raise ValueError(f"p has shape {p.shape}, q {q.shape}: give two profiles over the same n ≥ 2 positions")
    if mass:
        _check_mass("p", p)
        _check_mass("q", q)
    return p, q


def _check_mass(name: str, p: Array) -> None:
    check_range(name, p, 0.0, np.inf, "a profile is finite and non-negative")
    if is_concrete(p) and not (np.asarray(p).sum(-1) > 0).all():
        raise ValueError(f"{name} has no mass: a profile must have a positive sum")


def _count(n: int, share: float) -> int:
    if not 0 < share <= 1:
        raise ValueError(f"share = {share} must be in (0, 1]: a share of the positions")
    return max(1, int(np.ceil(share * n - 1e-9)))
