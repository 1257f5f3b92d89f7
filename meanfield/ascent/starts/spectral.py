"""Spectral starts: normalise(C₊^{1/2} z), C the label and gauge matrix of h linearised at t = 0."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from ..._types import Array, Float
from ...kernels import Dot, slope
from ..landscape import AbstractLandscape, StructuredLandscape, label_factor

DENSE = 2048  # largest matrix whose spectrum is computed
FILTERS = 4


def spectral(landscape: AbstractLandscape, z: Float[Array, "R n d"]) -> Float[Array, "R n d"]:
    """C₊^{1/2} z for each restart, scaled to unit mean square (theory.md 2): Gaussian tokens that follow the labels.

    Zero where h has no linear part. Above 2048 unknowns C₊^{1/2} is replaced by (C + ‖C‖)⁴/‖C‖⁴, which favours the same
    modes and needs no matrix. Unstructured kernels have no C: z is returned.
    """
    if not isinstance(landscape, StructuredLandscape):
        return z
    n, d = z.shape[1:]
    gauged = any(term.gauges for term in landscape.terms)
    size = n * d if gauged else n
    if size > DENSE:
        filtered = _filter(landscape, z)
    else:
        matrix = label_matrix(landscape, d, z.dtype) if gauged else label_matrix(landscape, 1, z.dtype)
        values, vectors = jnp.linalg.eigh(matrix)
        root = (vectors * jnp.sqrt(jnp.maximum(values, 0))) @ vectors.T
        flat = z.reshape(-1, n * d) if gauged else z
        filtered = (flat @ root if gauged else root @ flat).reshape(z.shape)
    square = jnp.mean(filtered**2, axis=(1, 2), keepdims=True) * d
    return jnp.where(square > 0, filtered / jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def label_matrix(landscape: StructuredLandscape, d: int, dtype: DTypeLike) -> Float[Array, "m m"]:
    """C_{(ia)(jb)} = Σ_terms scale φ'(0) g_ij (Q_iᵀ Q_j)_{ab}, (n·d, n·d); for d = 1 the gauges are left out."""
    n = landscape.rho.n
    total = jnp.zeros((n * d, n * d), dtype)
    for term, factor in zip(landscape.terms, landscape.factors, strict=True):
        g = factor
        if g is None:
            g = label_factor(term, landscape.rho, dtype) if term.factors else jnp.ones((n, n), dtype)
        weight = term.scale.astype(dtype) * slope(term.zonal, jnp.zeros((), dtype)) * g
        if d == 1:
            total += weight
            continue
        turned = [term.gauge(landscape.rho.labels, jnp.tile(e, (n, 1))) for e in jnp.eye(d, dtype=dtype)]
        frames = jnp.stack(turned, axis=-1)  # (n, d, d), columns Q_i e_a
        total += jnp.einsum("ij,ica,jcb->iajb", weight, frames, frames).reshape(n * d, n * d)
    return total


def _filter(landscape: StructuredLandscape, z: Float[Array, "R n d"]) -> Float[Array, "R n d"]:
    """(C + c)⁴ z / c⁴ with matrix-free products: C is the force of the linear kernel with the same labels."""
    zero = jnp.zeros((), z.dtype)
    terms = tuple(
        eqx.tree_at(lambda t: (t.scale, t.zonal), t, (t.scale * slope(t.zonal, zero).astype(t.scale.dtype), Dot()))
        for t in landscape.terms
    )
    linear = StructuredLandscape(terms, landscape.factors, landscape.rho, None, landscape.tiling)

    def one(v):
        def size(u):
            return jnp.sqrt(jnp.mean(u**2))

        grown = linear(v)[1]
        bound = size(linear(grown)[1]) / jnp.maximum(size(grown), jnp.finfo(v.dtype).tiny)
        for _ in range(FILTERS):
            v = linear(v)[1] / jnp.maximum(bound, jnp.finfo(v.dtype).tiny) + v
        return v

    return jax.lax.map(one, z)
