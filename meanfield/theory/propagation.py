"""Closed forms of residual-aware propagation (arXiv 2602.16837): what `meanfield.propagation` must reproduce."""

from collections.abc import Sequence
from fractions import Fraction
from math import comb, prod

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np
from jaxtyping import Array, Float

Numbers = Array | np.ndarray | np.number | Sequence | float | int


def uniform_causal_moments(mixing: Numbers, length: int, orders: Numbers) -> Float[Array, " m"]:
    """E[(J−1)(J−2)…(J−m)] = (n−1)(n−2)…(n−m) f(1/(m+1)), f(z) = Π_t(1 − λ_t + λ_t z), for uniform causal attention.

    J is the 1-based input position drawn from the last row of P.

    Args:
        mixing: λ (T,).
        length: n.
        orders: m (any number of integers ≥ 0).

    Returns:
        One moment per order.

    Source: theory.md 3.3; arXiv 2602.16837.

    Examples:
        >>> print(mf.theory.uniform_causal_moments([0.5, 0.5], length=5, orders=[0, 1]))
        [1.   2.25]
    """
    mixing = floating(mixing)
    orders = np.atleast_1d(np.asarray(orders))
    if (orders < 0).any() or orders.dtype.kind not in "iu":
        raise ValueError(f"orders = {orders} must be integers ≥ 0: factorial moments")
    falling = [float(prod(length - k for k in range(1, int(m) + 1))) for m in orders]
    z = jnp.asarray(1.0 / (orders + 1)).astype(mixing.dtype)
    return jnp.asarray(falling).astype(mixing.dtype) * jnp.prod(1 - mixing + mixing * z[:, None], axis=-1)


def uniform_causal_exact(mixing: Sequence[Fraction], length: int) -> list[Fraction]:
    """Last row of P for uniform causal attention in rational arithmetic, its Hausdorff moment form.

    P_nk = C(n−1, k−1) Σ_{j=0}^{n−k} (−1)^j C(n−k, j) f(1/(k+j)), k = 1 … n, f(z) = Π_t(1 − λ_t + λ_t z). The sum alternates with
    terms as large as 2^n: it is exact for fractions and useless in floating point.

    Source: theory.md 3.3; arXiv 2602.16837.

    Examples:
        >>> from fractions import Fraction
        >>> [str(p) for p in mf.theory.uniform_causal_exact([Fraction(1, 2)], length=3)]
        ['1/6', '1/6', '2/3']
    """
    values = [Fraction(x) for x in mixing]
    f = {q: prod((1 - x + x * Fraction(1, q) for x in values), start=Fraction(1)) for q in range(1, length + 1)}
    row = []
    for k in range(1, length + 1):
        terms = (Fraction((-1) ** j * comb(length - k, j)) * f[k + j] for j in range(length - k + 1))
        row.append(comb(length - 1, k - 1) * sum(terms, start=Fraction(0)))
    return row


def attention_step_weights(mixing: Numbers) -> Float[Array, " steps"]:
    """c_k, k = 0 … T: probability that a path takes k attention steps, Π_t(1 − λ_t + λ_t z) = Σ_k c_k z^k.

    Source: theory.md 3.4; arXiv 2602.16837.

    Examples:
        >>> print(mf.theory.attention_step_weights([0.5, 0.5]))
        [0.25 0.5  0.25]
    """
    mixing = floating(mixing)
    weights = jnp.zeros(mixing.shape[0] + 1, mixing.dtype).at[0].set(1)

    def layer(weights: Array, x: Array) -> tuple[Array, None]:
        return weights * (1 - x) + jnp.roll(weights, 1).at[0].set(0) * x, None

    return jax.lax.scan(layer, weights, mixing)[0]


def continuum_profile(mixing: Numbers, positions: Numbers, decay: Numbers = 0.0) -> Float[Array, " m"]:
    """Density at s = j/n ∈ (0, 1] of the last row's smooth part as n → ∞ with ALiBi slope·n = decay fixed.

    In v = (e^{decay s} − 1)/(e^{decay} − 1) a step of attention is uniform on (0, v), so the density is
    Σ_{k≥1} c_k (−log v)^{k−1}/(k−1)! dv/ds, with c of `attention_step_weights`; besides it an atom c_0 = Π(1 − λ_t) sits at s = 1.

    Args:
        mixing: (T,).
        positions: s (m,) in (0, 1].
        decay: slope·n ≥ 0 (0: uniform attention).

    Returns:
        The density (m,), which integrates to 1 − c_0.

    Source: theory.md 3.4; arXiv 2602.16837.

    Examples:
        >>> print(np.round(mf.theory.continuum_profile([0.5, 0.5], [0.1, 0.5, 1.0]), 3))
        [1.0760001  0.67300004 0.5       ]
    """
    mixing = floating(mixing)
    s, decay = jnp.atleast_1d(floating(positions, mixing.dtype)), floating(decay, mixing.dtype)
    depth, density = alibi_variable(s, decay)
    k = jnp.arange(mixing.shape[0]).astype(mixing.dtype)
    steps = jnp.exp(special.xlogy(k, depth[:, None]) - special.gammaln(k + 1))
    return steps @ attention_step_weights(mixing)[1:] * density


def alibi_variable(
    positions: Float[Array, " m"], decay: Float[Array, ""]
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """(−log v, dv/ds) for v = (e^{decay s} − 1)/(e^{decay} − 1), in which a step of ALiBi attention is uniform on (0, v)."""
    whole = _mean_decay(decay)
    log_v = decay * (positions - 1) + jnp.log(positions) + jnp.log(_mean_decay(decay * positions)) - jnp.log(whole)
    return jnp.maximum(-log_v, 0), jnp.exp(decay * (positions - 1)) / whole


def diagonal_product(scale: Numbers, own_attention: Numbers, depth: int | None, exponent: int) -> Float[Array, ""]:
    """P_ii = Π_{t≤T}(1 − a/t^exponent), a = scale(1 − A_ii) < 1, for the schedule λ_t = scale/t^exponent.

    exponent=1: Γ(T+1−a)/(Γ(1−a)Γ(T+1)), which tends to 0; exponent=2: depth None gives the limit sin(π√a)/(π√a) > 0.
    The dichotomy: P_ii → 0 if and only if Σ_t λ_t = ∞.

    Source: theory.md 3.6; arXiv 2602.16837.

    Examples:
        >>> print(f"{mf.theory.diagonal_product(0.5, 0.0, depth=None, exponent=2):.4f}")
        0.3582
    """
    a = floating(scale) * (1 - floating(own_attention))
    if exponent == 1:
        if depth is None:
            return jnp.where(a > 0, 0, jnp.ones_like(a))
        top = jnp.asarray(float(depth + 1)).astype(a.dtype)
        return jnp.exp(special.gammaln(top - a) - special.gammaln(1 - a) - special.gammaln(top))
    if exponent == 2 and depth is None:
        return jnp.sinc(jnp.sqrt(a))
    raise ValueError(
        f"exponent = {exponent}, depth = {depth}: closed forms are 1 with any depth, and 2 with depth=None"
    )


def attention_only_tail(length: int, depth: int) -> float:
    """(n−1) 2^{−T}: mean 0-based position, hence a bound on the mass off the first token, of T uniform causal attention steps.

    Source: theory.md 3.5; arXiv 2602.16837.

    Examples:
        >>> mf.theory.attention_only_tail(length=257, depth=8)
        1.0
    """
    return (length - 1) * 2.0**-depth


def lag_distribution(slope: Numbers, depth: int, lags: Numbers) -> Float[Array, " m"]:
    """C(m+T−1, m)(1−q)^T q^m, q = e^{−slope}: how far T attention-only ALiBi steps look back, far from the start.

    Source: theory.md 3.7; arXiv 2602.16837.

    Examples:
        >>> print(np.round(mf.theory.lag_distribution(1.0, depth=3, lags=[0, 1, 2]), 3))
        [0.25300002 0.279      0.20500001]
    """
    slope = floating(slope)
    m = jnp.atleast_1d(floating(lags, slope.dtype))
    log_binomial = special.gammaln(m + depth) - special.gammaln(m + 1) - special.gammaln(jnp.full_like(m, depth))
    return jnp.exp(log_binomial + depth * jnp.log(-jnp.expm1(-slope)) - slope * m)


def window_reach_depth(length: int, window: int) -> int:
    """⌈(n−1)/(w−1)⌉: the number of layers after which the last token of n first sees the first through windows of w.

    Source: theory.md 3.8; arXiv 2602.16837.

    Examples:
        >>> mf.theory.window_reach_depth(length=257, window=65)
        4
    """
    if window < 2 and length > 1:
        raise ValueError(f"window = {window} never looks back: use ≥ 2")
    return 0 if length == 1 else -(-(length - 1) // (window - 1))


def recency_boundary(decays: Numbers, weights: Numbers | None = None, depth: int | None = None) -> Float[Array, ""]:
    """The Σλ_t below which the smooth part of p rises towards the end: b = 2 Σ_h w_h κ_h²/(1−e^{−κ_h}) / K², K = Σ_h w_h κ_h/(1−e^{−κ_h}).

    From dp/ds at s = 1, c_1 ∂_sA(1, s) − c_2 A(1, 1)², c of `attention_step_weights`. Small λ_t: c_2/c_1 = Σλ/2; one head then gives
    2(1 − e^{−κ}). T equal λ: c_2/c_1 = (T−1)λ/(2(1−λ)), hence T b/(T − 1 + b).

    Args:
        decays: κ_h = slope_h·n (H,).
        weights: (H,), default equal.
        depth: T of equal λ, None for small ones.

    Source: theory.md 3.7; arXiv 2602.16837.

    Examples:
        >>> print(f"{mf.theory.recency_boundary([3.0]):.4f}")
        1.9004
    """
    decays = jnp.atleast_1d(floating(decays))
    weights = jnp.full_like(decays, 1 / decays.shape[0]) if weights is None else floating(weights, decays.dtype)
    density = 1 / _mean_decay(decays)
    small = 2 * jnp.sum(weights * decays * density) / jnp.sum(weights * density) ** 2
    return small if depth is None else depth * small / (depth - 1 + small)


def _mean_decay(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """(1 − e^{−x})/x, 1 at 0."""
    safe = jnp.where(x > 0, x, 1)
    return jnp.where(x > 0, -jnp.expm1(-safe) / safe, 1)


def floating(value: Numbers, dtype: np.dtype | None = None) -> Array:
    """`value` as a floating JAX array: of `dtype`, else of its own floating dtype, else of JAX's default one."""
    array = jnp.asarray(value)
    if dtype is None:
        dtype = array.dtype if jnp.issubdtype(array.dtype, jnp.floating) else jnp.zeros(()).dtype
    return array.astype(dtype)
