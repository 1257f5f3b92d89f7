"""Sums of any kernel of one pair, by mapped autodiff in blocks: the fallback for kernels without structure."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, Labels, Tokens
from ..kernels import AbstractKernel
from .fold import Tiling, fold
from .pairs import Causal, over_pairs


class Cloud(eqx.Module):
    """Tokens x (n, d) with labels and weights."""

    x: Float[Array, "n d"]
    labels: Labels
    weights: Float[Array, " n"]


def mapped_force(
    kernel: AbstractKernel, x: Tokens, labels: Labels, weights: Array, visible: Causal | None, tiling: Tiling
) -> Float[Array, "n d"]:
    """Σ_j w_j ∇_x h(z_i, z_j) over visible j."""

    def tile(t: Cloud, s: Cloud):
        gradients = _map_pairs(jax.grad(kernel), t, s)
        if visible is not None:
            gradients = jnp.where(over_pairs(visible, t.labels, s.labels)[:, :, None], gradients, 0)
        return jnp.einsum("ijd,j->id", gradients, s.weights)

    cloud = Cloud(x, labels, weights)
    return fold(tile, cloud, cloud, _mute, tiling)


def mapped_potential(
    kernel: AbstractKernel, x: Tokens, labels: Labels, weights: Array, tiling: Tiling
) -> Float[Array, " n"]:
    """Σ_j w_j h(z_i, z_j)."""
    cloud = Cloud(x, labels, weights)
    return fold(lambda t, s: _map_pairs(kernel, t, s) @ s.weights, cloud, cloud, _mute, tiling)


def _map_pairs(fn: Callable, t: Cloud, s: Cloud) -> Array:
    return jax.vmap(lambda x, xi: jax.vmap(lambda y, zeta: fn(x, xi, y, zeta))(s.x, s.labels))(t.x, t.labels)


def _mute(cloud: Cloud, real: Array) -> Cloud:
    return eqx.tree_at(lambda c: c.weights, cloud, jnp.where(real, cloud.weights, 0))
