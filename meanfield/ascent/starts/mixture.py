"""The default mixture of starts."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from ... import sphere
from ..._types import Array, Float, PRNGKey
from ..landscape import AbstractLandscape, StructuredLandscape
from .spectral import spectral
from .structured import arcs, collapsed, orbit, quantiles, windings

# (kind, noise) of restarts 0, 1, 2, …, repeated. Planar ones are lifted from S¹: z has two columns, noise does the rest.
PATTERN = (
    ("planar", 0.05), ("spectral", 0.05), ("structured", 0.03), ("random", 1.0),
    ("spectral", 0.15), ("planar", 0.15), ("planar", 0.05), ("spectral", 0.3),
)  # fmt: skip


def start_mixture(
    landscape: AbstractLandscape, key: PRNGKey, restarts: int, dim: int, dtype: DTypeLike
) -> Float[Array, "R n d"]:
    """Spectral, planar, structured and random starts in turn (`PATTERN`), each with its own noise."""
    n = landscape.rho.n
    kinds, noises = zip(*(PATTERN[i % len(PATTERN)] for i in range(restarts)), strict=True)
    kinds = np.asarray(kinds)
    z, noise = jax.random.normal(key, (2, restarts, n, dim), dtype)
    planar = jnp.asarray(kinds == "planar")[:, None, None] & (jnp.arange(dim) >= 2)
    x = spectral(landscape, jnp.where(planar, 0, z))
    shapes = structured_shapes(landscape, dim, dtype)
    turn = np.cumsum(kinds == "structured") - 1
    x = jnp.where(jnp.asarray(kinds == "structured")[:, None, None], shapes[jnp.asarray(turn % len(shapes))], x)
    x = jnp.where(jnp.asarray(kinds == "random")[:, None, None], 0, x)
    return sphere.normalize(x + jnp.asarray(noises, dtype)[:, None, None] * noise)


def structured_shapes(landscape: AbstractLandscape, dim: int, dtype: DTypeLike) -> Float[Array, "k n d"]:
    """Collapsed (towards the prefix where there is one), windings 1–3 and arcs 2–5, as the first term's frame sees them."""
    rho = landscape.rho
    pole = jnp.zeros(dim, dtype).at[-1].set(1)
    if isinstance(landscape, StructuredLandscape) and landscape.prefix is not None:
        pull = landscape.prefix.weights @ landscape.prefix.tokens
        pole = sphere.normalize(pull + 1e-3 * pole)
    q = quantiles(rho).astype(dtype)
    shapes = [collapsed(rho.n, pole), windings(q, 1, dim)]
    shapes += [arcs(q, k, dim) for k in (2, 3, 4, 5)] + [windings(q, k, dim) for k in (2, 3)]
    return jax.vmap(lambda shape: orbit(landscape, shape))(jnp.stack(shapes))
