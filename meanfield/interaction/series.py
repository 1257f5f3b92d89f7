"""Zonal functions as short series: ψ(t) = e^top Σ_{l≤L} c_l P_l(t), P_l Chebyshev (d = 2) or Legendre (d = 3) polynomials.

P_l(1) = 1 in both, so that Σ|c_l| beyond L bounds the error of the sum, uniformly in t.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from .._check import is_concrete
from .._products import matmul
from .._types import Array, Bool, DType, Float
from ..kernels import AbstractZonal, Dot, ExpDot, Term, log_slope, slope

LARGEST = {2: 1024, 3: 160}  # degrees beyond which tables and terms stop paying off
TRACED = {2: 128, 3: 40}  # degree where β is traced: the sum is NaN where that is too low
STEPS = (4, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 112, 128, 144, 160, 192, 256, 384, 512, 768, 1024)
GUARD = 8  # terms beyond L that measure the truncation


class Series(eqx.Module):
    """ψ = e^top Σ_l coefficients_l P_l; NaN coefficients where the truncation is not to rounding."""

    coefficients: Float[Array, " terms"]
    top: Float[Array, ""]


@functools.singledispatch
def slope_series(zonal: AbstractZonal, d: int, degree: int, dtype: DType) -> Series:
    """φ' as a series of the given degree, scaled so that max |Σ c_l P_l| is about 1."""
    return _quadrature(_slope_of(zonal), d, degree, dtype)


@slope_series.register
def _(zonal: ExpDot, d, degree, dtype):
    beta, shift = zonal.beta.astype(dtype), zonal.shift.astype(dtype)
    return Series(_bessel(beta, d, degree), beta * (1 - shift))


@functools.singledispatch
def phi_series(zonal: AbstractZonal, d: int, degree: int, dtype: DType) -> Series:
    """φ as a series of the given degree."""
    return _quadrature(zonal.phi, d, degree, dtype)


@phi_series.register
def _(zonal: ExpDot, d, degree, dtype):
    series = slope_series(zonal, d, degree, dtype)
    return Series(series.coefficients / zonal.beta.astype(dtype), series.top)


@functools.singledispatch
def needed(zonal: AbstractZonal, d: int, dtype: DType) -> int | None:
    """The degree that represents φ and φ' to rounding; None if that exceeds LARGEST. `zonal` must be concrete."""
    for size in (32, 64, 128, 256, 512, 1024):
        with jax.ensure_compile_time_eval():
            both = [np.asarray(_sampled(psi, d, size, dtype)[0], np.float64) for psi in (_slope_of(zonal), zonal.phi)]
        relative = np.max([np.abs(c) / max(np.abs(c).max(), np.finfo(float).tiny) for c in both], axis=0)
        if not np.isfinite(relative).all():
            return None
        # the rounding of ψ at the nodes leaves a floor of about eps
        last = int(np.flatnonzero(relative > 64 * float(jnp.finfo(dtype).eps)).max(initial=0))
        if last <= 0.6 * size:
            return _round_up(last + 1, d)
        if size >= LARGEST[d]:
            return None
    return None


@needed.register
def _(zonal: Dot, d, dtype):
    return 4


@needed.register
def _(zonal: ExpDot, d, dtype):
    beta = float(zonal.beta)
    limit = LARGEST[d] + GUARD
    order = np.arange(limit + 1) + (d / 2 - 1)
    terms = special.ive(order, beta) * (2 * order if d > 2 else np.where(order == 0, 1.0, 2.0))
    tail = np.cumsum(terms[::-1])[::-1] / max(terms.sum(), np.finfo(float).tiny)
    small = np.flatnonzero(tail <= float(jnp.finfo(dtype).eps) / 8)
    return _round_up(int(small[0]) - 1, d) if len(small) and small[0] <= LARGEST[d] else None


def degree(terms: tuple[Term, ...], d: int, dtype: DType) -> int | None:
    """One degree for all `terms`: to rounding where parameters have values now, else the fixed one of TRACED."""
    if not is_concrete([t.zonal for t in terms]):
        return TRACED[d]
    found = [needed(t.zonal, d, dtype) for t in terms]
    return None if None in found else max(found)


def differentiate(coefficients: Float[Array, " terms"], d: int) -> Float[Array, " terms"]:
    """Coefficients of the derivative of Σ_l c_l P_l."""
    matrix = _derivative_matrix(coefficients.shape[0], d)
    return jnp.asarray(matrix, coefficients.dtype) @ coefficients


def _bessel(beta: Float[Array, ""], d: int, degree: int) -> Float[Array, " terms"]:
    """e^{β(t−1)}: c_l ∝ (l + ν) I_{l+ν}(β), ν = d/2 − 1, by the continued fraction of I_{l+ν+1}/I_{l+ν}: all terms positive.

    Started from Amos' bound and normalised by Σ c_l = 1, so no Bessel function is evaluated and nothing overflows.
    """
    nu = d / 2 - 1
    count = degree + 1 + GUARD
    last = count - 1 + nu
    start = beta / (last + 0.5 + jnp.sqrt((last + 1.5) ** 2 + beta * beta))

    def step(ratio, order):
        ratio = beta / (2 * (order + 1) + beta * ratio)
        return ratio, ratio

    orders = jnp.asarray(np.arange(count - 1) + nu, beta.dtype)
    ratios = jax.lax.scan(step, start, orders, reverse=True)[1]
    weight = np.arange(count) * 2.0 + 1 if d == 3 else np.where(np.arange(count) == 0, 1.0, 2.0)
    terms = jnp.asarray(weight, beta.dtype) * jnp.concatenate([jnp.ones(1, beta.dtype), jnp.cumprod(ratios)])
    terms = terms / jnp.sum(terms)
    tail = jax.lax.stop_gradient(jnp.sum(terms[degree + 1 :]))
    return jnp.where(tail <= 64 * jnp.finfo(beta.dtype).eps, terms[: degree + 1], jnp.nan)


def _slope_of(zonal: AbstractZonal):
    return lambda t: slope(zonal, t)


def _sampled(psi, d: int, degree: int, dtype) -> tuple[Float[Array, " more"], Float[Array, ""]]:
    """Coefficients 0 … degree + GUARD of ψ/e^top by Gauss quadrature, and e^top = max |ψ| at the nodes."""
    nodes, matrix = _rule(degree, d)
    values = psi(jnp.asarray(nodes, dtype))
    scale = jax.lax.stop_gradient(jnp.max(jnp.abs(values)))
    scale = jnp.where(scale > 0, scale, 1)
    return matmul(jnp.asarray(matrix, dtype), values / scale), scale


def _quadrature(psi, d: int, degree: int, dtype) -> Series:
    full, scale = _sampled(psi, d, degree, dtype)
    tail = jax.lax.stop_gradient(jnp.max(jnp.abs(full[degree + 1 :])))
    good = tail <= 256 * jnp.finfo(dtype).eps
    return Series(jnp.where(good, full[: degree + 1], jnp.nan), jnp.log(scale))


def positive_slope(zonal: AbstractZonal, d: int, degree: int, dtype: DType) -> Bool[Array, ""]:
    """Whether φ' > 0 at the quadrature nodes: a softmax form exists."""
    return ~jnp.any(jnp.isnan(log_slope(zonal, jnp.asarray(_rule(degree, d)[0], dtype))))


@functools.lru_cache(maxsize=32)
def _rule(degree: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and the matrix from values there to coefficients 0 … degree + GUARD."""
    count = 2 * degree + 2 * GUARD
    rows = degree + 1 + GUARD
    if d == 2:
        theta = np.pi * (np.arange(count) + 0.5) / count
        matrix = np.cos(np.arange(rows)[:, None] * theta) * 2 / count
        matrix[0] /= 2
        return np.cos(theta), matrix
    nodes, weights, basis = _gauss_legendre(count, rows)
    return nodes, (np.arange(rows)[:, None] + 0.5) * basis * weights


def _gauss_legendre(count: int, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights and P_0 … P_{rows−1} at the nodes, polished in extended precision (SciPy's weights lose 4 digits)."""
    x = special.roots_legendre(count)[0].astype(np.longdouble)
    for _ in range(2):
        p = _legendre(x, count + 1)
        slope = count * (x * p[-1] - p[-2]) / (x * x - 1)
        x = x - p[-1] / slope
    p = _legendre(x, count + 1)
    slope = count * (x * p[-1] - p[-2]) / (x * x - 1)
    return x.astype(float), (2 / ((1 - x * x) * slope**2)).astype(float), p[:rows].astype(float)


def _legendre(x: np.ndarray, count: int) -> np.ndarray:
    p = [np.ones_like(x), x]
    for l in range(1, count - 1):
        p.append(((2 * l + 1) * x * p[-1] - l * p[-2]) / (l + 1))
    return np.stack(p)


@functools.lru_cache(maxsize=32)
def _derivative_matrix(terms: int, d: int) -> np.ndarray:
    """P_k' = Σ_l D_lk P_l over l < k of the other parity: 2k (half of it for l = 0) in d = 2, 2l + 1 in d = 3."""
    l, k = np.meshgrid(np.arange(terms), np.arange(terms), indexing="ij")
    reached = (k > l) & ((k - l) % 2 == 1)
    size = np.where(l == 0, 1.0, 2.0) * k if d == 2 else 2.0 * l + 1
    return np.where(reached, size, 0.0)


def _round_up(degree: int, d: int) -> int | None:
    """The next of STEPS: few degrees, so that a loop over β compiles a few programs."""
    return next((s for s in STEPS if s >= degree and s <= LARGEST[d]), None)
