"""Largest eigenvalue of the Riemannian Hessian in ⟨·, ·⟩_w: at most 0 at a maximum, positive at a saddle."""

import jax
import jax.numpy as jnp

from .._types import Array, Float, Scalar
from .landscape import AbstractLandscape

DENSE = 384  # below this n·d all eigenvalues are computed
KRYLOV, CYCLES = 64, 8


def largest_curvature(landscape: AbstractLandscape, x: Float[Array, "n d"]) -> tuple[Scalar, Float[Array, "n d"]]:
    """(λ, u): Hess u = λu with the largest λ over tangent vectors of tokens that count, ‖u‖_w = 1.

    Exact for n·d ≤ 384; above, Lanczos with full reorthogonalisation, restarted from the best Ritz vector, which gives λ
    from below. For x = {v, −v} without labels and h = e^{⟨x,y⟩}: λ = 1/e.

    Examples:
        >>> landscape = mf.ascent.bind(mf.ExpDot(1.0), mf.Marginal.circle(2), None, 2, jnp.float32)
        >>> value, _ = mf.ascent.largest_curvature(landscape, jnp.asarray([[1.0, 0.0], [-1.0, 0.0]]))
        >>> print(f"{value:.4f}, 1/e = {1 / np.e:.4f}")
        0.3679, 1/e = 0.3679
    """
    # in u = v/√w the operator is symmetric in the plain inner product
    root = jnp.sqrt(landscape.rho.weights)[:, None]
    inverse = jnp.where(root > 0, 1 / jnp.where(root > 0, root, 1), 0)

    def tangent(v: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return landscape.gradient(x, v)

    def apply(v: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return root * landscape.hessian(x, inverse * tangent(v))

    size = x.shape[0] * x.shape[1]
    value, vector = (_dense if size <= DENSE else _lanczos)(apply, tangent, x)
    return value, inverse * vector


def _dense(apply, tangent, x) -> tuple[Scalar, Float[Array, "n d"]]:
    """All eigenvalues; directions that are not tangent are moved below the spectrum."""
    size = x.size
    basis = jnp.eye(size, dtype=x.dtype).reshape(size, *x.shape)
    matrix = jax.vmap(lambda e: apply(e).reshape(size))(basis)
    normal = jnp.eye(size, dtype=x.dtype) - jax.vmap(tangent)(basis).reshape(size, size)
    bound = 2 * jnp.max(jnp.sum(jnp.abs(matrix), axis=1)) + 1
    values, vectors = jnp.linalg.eigh(0.5 * (matrix + matrix.T) - bound * normal)
    return values[-1], vectors[:, -1].reshape(x.shape)


def _lanczos(apply, tangent, x) -> tuple[Scalar, Float[Array, "n d"]]:
    steps = min(KRYLOV, x.size // 2)

    def cycle(_, carry):
        vector, _ = carry
        return _krylov(apply, tangent, vector, steps)

    start = tangent(jax.random.normal(jax.random.key(0), x.shape, x.dtype))
    vector, value = jax.lax.fori_loop(0, CYCLES, cycle, (start, jnp.zeros((), x.dtype)))
    return value, vector


def _krylov(apply, tangent, start, steps: int) -> tuple[Float[Array, "n d"], Scalar]:
    """Best Ritz pair of one Krylov space, orthogonalised twice against the whole basis."""

    def unit(v):
        return v / jnp.maximum(jnp.sqrt(jnp.sum(v * v)), jnp.finfo(v.dtype).tiny)

    def extend(basis, k):
        v = apply(basis[k])
        image = v
        for _ in range(2):
            v = v - jnp.einsum("knd,k->nd", basis, jnp.einsum("knd,nd->k", basis, v))
        fresh = jnp.sqrt(jnp.sum(v * v)) > 1e3 * jnp.finfo(v.dtype).eps * jnp.sqrt(jnp.sum(image * image))
        return basis.at[k + 1].set(jnp.where(fresh, unit(tangent(v)), 0)), image

    basis = jnp.zeros((steps + 1, *start.shape), start.dtype).at[0].set(unit(start))
    basis, images = jax.lax.scan(extend, basis, jnp.arange(steps))
    basis = basis[:steps]
    matrix = jnp.einsum("knd,lnd->kl", basis, images)
    # an exhausted space leaves zero vectors: move them below the spectrum
    absent = jnp.sum(basis**2, axis=(1, 2)) < 0.5
    bound = 2 * jnp.max(jnp.sum(jnp.abs(matrix), axis=1)) + 1
    values, vectors = jnp.linalg.eigh(0.5 * (matrix + matrix.T) - bound * jnp.diag(absent.astype(matrix.dtype)))
    return tangent(jnp.einsum("knd,k->nd", basis, vectors[:, -1])), values[-1]
