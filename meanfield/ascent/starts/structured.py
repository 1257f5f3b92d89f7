"""Starts with structure: collapsed, orbits of the gauges, arcs and windings of ordered labels."""

import jax
import jax.numpy as jnp

from ..._types import Array, Float
from ...marginal import Marginal
from ..landscape import AbstractLandscape, StructuredLandscape


def quantiles(rho: Marginal) -> Float[Array, " n"]:
    """q_i ∈ [0, 1): the weight of the labels below ξ_i; the order of the tokens where labels are not scalar."""
    leaves = jax.tree.leaves(rho.labels)
    order = jnp.arange(rho.n)
    if len(leaves) == 1 and leaves[0].ndim == 1:
        order = jnp.argsort(leaves[0])
    sorted_weights = rho.weights[order]
    below = jnp.cumsum(sorted_weights) - sorted_weights
    return jnp.zeros_like(rho.weights).at[order].set(below)


def collapsed(n: int, u: Float[Array, " d"]) -> Float[Array, "n d"]:
    """All tokens at u."""
    return jnp.tile(u, (n, 1))


def arcs(quantile: Float[Array, " n"], k: int, dim: int) -> Float[Array, "n d"]:
    """k equal arcs of labels sent to k equispaced directions of the first plane (k = 2: antipodes)."""
    return _plane(2 * jnp.pi * jnp.floor(k * quantile + 16 * jnp.finfo(quantile.dtype).eps) / k, dim)


def windings(quantile: Float[Array, " n"], k: int, dim: int) -> Float[Array, "n d"]:
    """The great circle that winds k times: angle 2πkq_i in the first plane."""
    return _plane(2 * jnp.pi * k * quantile, dim)


def orbit(landscape: AbstractLandscape, y: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """x_i = Q_iᵀ y_i, the configuration that the first term sees as y; y itself without gauges."""
    if not isinstance(landscape, StructuredLandscape):
        return y
    return landscape.terms[0].ungauge(landscape.rho.labels, y)


def _plane(angle: Float[Array, " n"], dim: int) -> Float[Array, "n d"]:
    rest = jnp.zeros((angle.shape[0], dim - 2), angle.dtype)
    return jnp.concatenate([jnp.cos(angle)[:, None], jnp.sin(angle)[:, None], rest], axis=1)
