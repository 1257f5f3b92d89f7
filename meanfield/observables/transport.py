"""Distances between laws of tokens: sliced Wasserstein, Sinkhorn."""

import functools

import jax
import jax.numpy as jnp

from .. import sphere
from .._types import AnyArray, Array, Float, PRNGKey, Scalar, ScalarLike, Tokens, Weights
from ._inputs import masses, points

OtherTokens = Float[AnyArray, "m e"]
OtherWeights = Float[AnyArray, " m"]


def sliced_wasserstein(
    x: Tokens,
    y: OtherTokens,
    key: PRNGKey,
    weights_x: Weights | None = None,
    weights_y: OtherWeights | None = None,
    projections: int = 128,
    order: int = 2,
) -> Scalar:
    """(mean over random directions θ of W_p^p between the laws of ⟨x, θ⟩ and ⟨y, θ⟩)^{1/p}, p = `order`.

    O((n + m) log(n + m)) time per direction and O(n + m) memory; differentiable in tokens and weights, gradient 0 where
    the laws agree.

    Args:
        x: tokens (n, d) of one law.
        y: tokens (m, d) of the other.
        key: draws the directions, uniform on S^{d-1}; the same key compares many laws along the same ones.
        weights_x: (n,), uniform by default.
        weights_y: (m,), uniform by default.
        projections: how many; the relative error falls like projections^{−1/2}.

    Raises:
        ValueError: when tokens are NaN, weights are wrong, or d differ.

    Source: arXiv 1902.00434.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> float(mf.observables.sliced_wasserstein(x, x[::-1], jax.random.key(0)))  # the same law
        0.0
    """
    x, y = points(x), points(y, "y")
    _one_dimension(x, y)
    a, b = masses(weights_x, x, "weights_x"), masses(weights_y, y.astype(x.dtype), "weights_y")
    if projections < 1 or order < 1:
        raise ValueError(f"projections={projections}, order={order}: both must be at least 1")
    y = y.astype(x.dtype)
    return _sliced(x, y, a, b, sphere.sample(key, (projections, x.shape[1]), x.dtype), order)


@functools.partial(jax.jit, static_argnames="order")
def _sliced(x: Array, y: Array, a: Array, b: Array, directions: Array, order: int) -> Scalar:
    costs = jax.lax.map(lambda theta: _line_cost(x @ theta, a, y @ theta, b, order), directions)
    mean = jnp.mean(costs)
    positive = mean > 0
    return jnp.where(positive, jnp.where(positive, mean, 1) ** (1 / order), 0)


def _line_cost(u: Array, a: Array, v: Array, b: Array, order: int) -> Scalar:
    """W_p^p of two weighted laws on the line: ∫_0^1 |F⁻¹(s) − G⁻¹(s)|^p ds over the merged steps of both CDFs."""
    i, j = jnp.argsort(u), jnp.argsort(v)
    cdf_u, cdf_v = jnp.cumsum(a[i]), jnp.cumsum(b[j])
    steps = jnp.sort(jnp.concatenate([cdf_u, cdf_v]))
    lengths = jnp.diff(steps, prepend=jnp.zeros(1, steps.dtype))
    middle = jax.lax.stop_gradient(steps - lengths / 2)
    quantile_u = u[i][_step(cdf_u, middle)]
    quantile_v = v[j][_step(cdf_v, middle)]
    return jnp.sum(lengths * jnp.abs(quantile_u - quantile_v) ** order)


def _step(cdf: Array, s: Array) -> Array:
    return jnp.minimum(jnp.searchsorted(jax.lax.stop_gradient(cdf), s), cdf.shape[0] - 1)


def sinkhorn_divergence(
    x: Tokens,
    y: OtherTokens,
    weights_x: Weights | None = None,
    weights_y: OtherWeights | None = None,
    epsilon: ScalarLike = 0.01,
    batch_size: int | None = None,
) -> Scalar:
    """S_ε(x, y) = OT_ε(x, y) − ½OT_ε(x, x) − ½OT_ε(y, y) with cost ‖x − y‖², by ott-jax (extra `design`).

    0 where the laws agree, W_2² as ε → 0; differentiable in tokens and weights.

    Args:
        x: tokens (n, d).
        y: tokens (m, d).
        weights_x: (n,), uniform by default.
        weights_y: (m,), uniform by default.
        epsilon: entropic regularisation, in units of the squared chord; smaller is sharper and slower.
        batch_size: rows of the cost matrix held at once; default all up to 4096 tokens, 1024 above.

    Raises:
        ValueError: when tokens are NaN, weights are wrong, or d differ.
        ImportError: when ott-jax is missing, naming the extra.

    Source: arXiv 1810.08278.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> print(f"{mf.observables.sinkhorn_divergence(x, -x):.2f}")
        2.00
    """
    try:
        from ott.geometry import pointcloud
        from ott.tools import sinkhorn_divergence as ott_divergence
    except ImportError as error:
        raise ImportError("sinkhorn_divergence needs ott-jax: pip install 'meanfield[design]'") from error
    x, y = points(x), points(y, "y")
    _one_dimension(x, y)
    y = y.astype(x.dtype)
    a, b = masses(weights_x, x, "weights_x"), masses(weights_y, y, "weights_y")
    if batch_size is None and max(x.shape[0], y.shape[0]) > 4096:
        batch_size = 1024
    with jax.numpy_dtype_promotion("standard"):  # ott-jax mixes Python and array dtypes
        value, _ = ott_divergence.sinkhorn_divergence(
            pointcloud.PointCloud, x, y, a=a, b=b, epsilon=jnp.asarray(epsilon, x.dtype), batch_size=batch_size
        )
    return value


def _one_dimension(x: Float[Array, "n d"], y: Float[Array, "m e"]) -> None:
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ValueError(f"x has shape {x.shape} and y {y.shape}: pass (n, d) and (m, d) of one dimension d")
