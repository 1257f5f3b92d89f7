"""Losses between laws of tokens, and against collapse; any function of JAX arrays serves beside them."""

import diffrax
import jax
import jax.numpy as jnp

from .._types import AnyArray, DType, Float, PRNGKey, Scalar, ScalarLike, Tokens, Weights
from ..observables import sinkhorn_divergence, sliced_wasserstein

Target = Float[AnyArray, "m d"]
TargetWeights = Float[AnyArray, " m"]


def sinkhorn(
    x: Tokens,
    target: Target,
    weights: Weights | None = None,
    target_weights: TargetWeights | None = None,
    epsilon: ScalarLike = 0.01,
) -> Scalar:
    """The Sinkhorn divergence S_ε of `observables.sinkhorn_divergence`: ≥ 0, 0 where the laws agree.

    Source: arXiv 1810.08278.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> print(f"{mf.design.sinkhorn(x, -x):.2f}")
        2.00
    """
    return sinkhorn_divergence(x, target, weights, target_weights, epsilon)


def sliced(
    x: Tokens,
    target: Target,
    key: PRNGKey,
    weights: Weights | None = None,
    target_weights: TargetWeights | None = None,
    projections: int = 64,
) -> Scalar:
    """The mean of W_2² over random directions: smooth at 0, unlike the sliced distance itself.

    Give a fresh `key` at each step (`fit(…, key=)`) for an unbiased gradient of the mean over all directions.

    Source: arXiv 1902.00434.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> float(mf.design.sliced(x, x[::-1], jax.random.key(0)))
        0.0
    """
    return sliced_wasserstein(x, target, key, weights, target_weights, projections, order=2) ** 2


def maximum_mean_discrepancy(
    x: Tokens,
    target: Target,
    weights: Weights | None = None,
    target_weights: TargetWeights | None = None,
    widths: tuple[float, ...] = (0.1, 0.3, 1.0),
) -> Scalar:
    """‖Σ w_i k(x_i, ·) − Σ v_j k(y_j, ·)‖² in the reproducing kernel space of k(x, y) = mean_s e^{−‖x−y‖²/(2 s²)}.

    `widths`: s, in chords. ≥ 0, 0 only where the laws agree; O((n + m)²) pairs. Source: arXiv 0805.2368.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> float(mf.design.maximum_mean_discrepancy(x, x))
        0.0
    """
    x, y = jnp.asarray(x), jnp.asarray(target, jnp.asarray(x).dtype)
    a = jnp.full(len(x), 1 / len(x), x.dtype) if weights is None else jnp.asarray(weights, x.dtype)
    b = jnp.full(len(y), 1 / len(y), x.dtype) if target_weights is None else jnp.asarray(target_weights, x.dtype)
    points, signed = jnp.concatenate([x, y]), jnp.concatenate([a, -b])
    squares = jnp.sum(points**2, axis=1)
    distance = jnp.maximum(squares[:, None] + squares - 2 * points @ points.T, 0)
    kernel = sum(jnp.exp(-distance / (2 * s**2)) for s in widths) / len(widths)
    return signed @ kernel @ signed


def order_margin(order: Float[AnyArray, "*times"], margin: ScalarLike) -> Scalar:
    """mean(max(0, R − margin)²) of order parameters R = ‖Σ w_i x_i‖: pushes consensus below `margin`.

    Examples:
        >>> print(f"{mf.design.order_margin(jnp.asarray([0.2, 0.9]), 0.5):.3f}")
        0.080
    """
    order = jnp.asarray(order)
    return jnp.mean(jax.nn.relu(order - margin) ** 2)


def pair_margin(x: Tokens, cosine: ScalarLike = 0.5, weights: Weights | None = None) -> Scalar:
    """Σ_{i≠j} w_i w_j max(0, ⟨x_i, x_j⟩ − cosine)²: pushes every pair apart to at least arccos(`cosine`).

    Examples:
        >>> x = np.float32([[1, 0], [1, 0]])
        >>> float(mf.design.pair_margin(x, cosine=0.5))
        0.125
    """
    x = jnp.asarray(x)
    w = jnp.full(len(x), 1 / len(x), x.dtype) if weights is None else jnp.asarray(weights, x.dtype)
    excess = jax.nn.relu(x @ x.T - cosine) ** 2
    return w @ excess @ w - jnp.sum(w**2 * jnp.diagonal(excess))


def soft_collapse_time(
    order: Float[AnyArray, " T"], ts: Float[AnyArray, " T"], level: ScalarLike = 0.9, sharpness: ScalarLike = 40.0
) -> Scalar:
    """∫ σ(sharpness (level − R(t))) dt: the time spent below consensus `level`, with a gradient everywhere.

    It tends to the time to collapse for a monotone R as `sharpness` grows, and to the last time where R never reaches `level`;
    `observables.collapse_time` is the sharp one. `ts` (T,) times of `order` (T,); trapezoidal rule.

    Examples:
        >>> ts = jnp.linspace(0.0, 10.0, 101)
        >>> print(f"{mf.design.soft_collapse_time(ts / 10, ts):.2f}")
        9.00
    """
    order, ts = jnp.asarray(order), jnp.asarray(ts)
    return jnp.trapezoid(jax.nn.sigmoid(sharpness * (level - order)), ts)


def adjoint_for(
    n: int, d: int, memory: float | int, dtype: DType = jnp.float32, max_steps: int = 16384
) -> diffrax.AbstractAdjoint:
    """The reverse-mode adjoint of `mf.flow` with as many checkpoints as `memory` bytes hold.

    A checkpoint is a state (n, d) with the derivative that the next step reuses. More checkpoints recompute fewer steps;
    two are the least. Gradients are the same for any number.

    Examples:
        >>> type(mf.design.adjoint_for(64, 3, memory=1e6)).__name__
        'RecursiveCheckpointAdjoint'
    """
    if memory <= 0:
        raise ValueError(f"memory={memory}: give bytes")
    fits = int(memory // (2 * n * d * jnp.dtype(dtype).itemsize))
    return diffrax.RecursiveCheckpointAdjoint(checkpoints=max(2, min(fits, max_steps)))
