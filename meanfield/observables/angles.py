"""Statistics of the angles of all pairs of tokens, in blocks."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import sphere
from .._types import Array, Float, PRNGKey, Scalar, Tokens, Weights
from ..interaction import Tiling, fold
from ._inputs import masses, points

ROWS, COLUMNS = 64, 512


class AngleStatistics(eqx.Module):
    """Of the angle ∠(x_i, x_j) ∈ [0, π] over pairs i ≠ j, each with probability ∝ w_i w_j.

    - `mean`, `std`, `minimum`, `maximum`: radians.
    - `density` (bins,), `edges` (bins + 1,): its density, which integrates to 1.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> stats = mf.observables.angle_statistics(x, bins=4)
        >>> stats.density.shape, stats.edges.shape
        ((4,), (5,))
    """

    mean: Scalar
    std: Scalar
    minimum: Scalar
    maximum: Scalar
    density: Float[Array, " bins"]
    edges: Float[Array, " bins+1"]


class _Cloud(eqx.Module):
    x: Float[Array, "n d"]
    weights: Float[Array, " n"]
    index: Array


class _Sums(eqx.Module):
    first: Array
    second: Array
    least: Array
    most: Array
    counts: Array


def angle_statistics(
    x: Tokens, weights: Weights | None = None, bins: int = 64, pairs: int | None = None, key: PRNGKey | None = None
) -> AngleStatistics:
    """Mean, spread, extremes and density of the pairwise angles 2·atan2(‖x_i − x_j‖, ‖x_i + x_j‖).

    Mean and spread are differentiable, at coincident tokens too.

    Args:
        x: tokens (n, d), unit rows, n ≥ 2.
        weights: (n,), uniform by default.
        bins: bins of the density on [0, π].
        pairs: estimate from this many random pairs instead of all n(n−1): beyond some 10⁵ tokens all pairs take
            minutes. Either way no n×n array is formed.
        key: draws those pairs.

    Raises:
        ValueError: when tokens are NaN, weights are wrong, or n < 2.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1]])
        >>> print(f"{mf.observables.angle_statistics(x).mean:.4f}")
        1.5708
    """
    x = points(x)
    if x.shape[0] < 2:
        raise ValueError(f"x has shape {x.shape}: angles of pairs need tokens (n, d) with n ≥ 2")
    w = masses(weights, x)
    if pairs is not None:
        return _sampled(x, w, bins, pairs, key)
    return _all_pairs(x, w, bins)


@functools.partial(jax.jit, static_argnames="bins")
def _all_pairs(x: Array, w: Array, bins: int) -> AngleStatistics:
    cloud = _Cloud(x, w, jnp.arange(x.shape[0]))
    rows = fold(lambda t, s: _tile(t, s, bins), cloud, cloud, _mute, Tiling(ROWS, COLUMNS), _merge, _empty)
    mass = jnp.sum(w) ** 2 - jnp.sum(w * w)
    first, second = jnp.dot(w, rows.first) / mass, jnp.dot(w, rows.second) / mass
    return _summary(first, second, rows.least.min(), rows.most.max(), w @ rows.counts / mass)


def _tile(t: _Cloud, s: _Cloud, bins: int) -> _Sums:
    other = (t.index[:, None] != s.index[None, :]) & (s.index >= 0)[None, :]
    a = jax.vmap(lambda x: jax.vmap(lambda y: sphere.distance(x, y))(s.x))(t.x)
    w = jnp.where(other, s.weights[None, :], 0)
    place = _bin(a, bins)
    counts = jax.vmap(lambda p, v: jnp.zeros(bins, a.dtype).at[p].add(v))(place, jax.lax.stop_gradient(w))
    seen = other & (s.weights > 0)[None, :] & (t.weights > 0)[:, None]
    least = jnp.min(jnp.where(seen, a, jnp.inf), axis=1)
    most = jnp.max(jnp.where(seen, a, -jnp.inf), axis=1)
    return _Sums(jnp.sum(w * a, axis=1), jnp.sum(w * a * a, axis=1), least, most, counts)


def _mute(cloud: _Cloud, real: Array) -> _Cloud:
    return _Cloud(cloud.x, jnp.where(real, cloud.weights, 0), jnp.where(real, cloud.index, -1))


def _merge(a: _Sums, b: _Sums) -> _Sums:
    return _Sums(
        a.first + b.first,
        a.second + b.second,
        jnp.minimum(a.least, b.least),
        jnp.maximum(a.most, b.most),
        a.counts + b.counts,
    )


def _empty(zeros: _Sums) -> _Sums:
    return eqx.tree_at(lambda z: (z.least, z.most), zeros, (zeros.least + jnp.inf, zeros.most - jnp.inf))


def _sampled(x, w, bins: int, pairs: int, key) -> AngleStatistics:
    if key is None or pairs < 1:
        raise ValueError(f"pairs={pairs}, key={key}: pass pairs ≥ 1 and a key, e.g. key=jax.random.key(0)")
    # i and j are independent draws; equal pairs get no mass
    i, j = jax.random.choice(key, x.shape[0], (2, pairs), p=w)
    a = sphere.distance(x[i], x[j])
    mass = jnp.where(i != j, 1, 0).astype(x.dtype)
    mass = mass / jnp.sum(mass)
    counts = jnp.zeros(bins, x.dtype).at[_bin(a, bins)].add(mass)
    least, most = jnp.min(jnp.where(i != j, a, jnp.inf)), jnp.max(jnp.where(i != j, a, -jnp.inf))
    return _summary(jnp.dot(mass, a), jnp.dot(mass, a * a), least, most, counts)


def _bin(a: Array, bins: int) -> Array:
    return jnp.clip((jax.lax.stop_gradient(a) * (bins / np.pi)).astype(jnp.int32), 0, bins - 1)


def _summary(first, second, least, most, counts) -> AngleStatistics:
    variance = second - first**2
    positive = variance > 0
    std = jnp.where(positive, jnp.sqrt(jnp.where(positive, variance, 1)), 0)
    bins = counts.shape[0]
    edges = jnp.linspace(0, np.pi, bins + 1, dtype=counts.dtype)
    return AngleStatistics(first, std, least, most, counts * (bins / np.pi), edges)
