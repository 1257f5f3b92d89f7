"""Derivatives of a maximiser with respect to the kernel, the labels' weights and the prefix."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, PyTree
from .landscape import bind

DENSE = 1024


@eqx.filter_custom_jvp
def follow(x: Float[Array, "n d"], parameters: PyTree) -> Float[Array, "n d"]:
    """x, with the derivative of a maximiser: Hess dx = −∂_θ grad, without component along rotations.

    `parameters` = (kernel, rho, prefix). The pseudo-inverse of the Hessian leaves out its null directions, the rotations
    that the kernel leaves free: by eigenvalues up to n·d = 1024, by conjugate gradients on the normal equations above. At
    a bifurcation the derivative does not exist. Forward and reverse mode.
    """
    return x


@follow.def_jvp
def _(primals, tangents):
    x, parameters = primals
    dx, dparameters = tangents
    dim = x.shape[1]
    frozen = jax.lax.stop_gradient(x)

    def gradient(parameters):
        landscape = bind(*parameters, dim, x.dtype)
        return landscape.rho.weights[:, None] * landscape.gradient(frozen, landscape(frozen)[1])

    _, change = eqx.filter_jvp(gradient, (parameters,), (dparameters,))
    landscape = bind(*parameters, dim, x.dtype)

    # multiplied by the weights, the operator is symmetric in the plain inner product
    def minus_hessian(v):
        return -landscape.rho.weights[:, None] * landscape.hessian(frozen, landscape.gradient(frozen, v))

    moved = jax.lax.custom_linear_solve(minus_hessian, change, _pseudo_inverse, _pseudo_inverse, symmetric=True)
    return x, moved if dx is None else moved + dx


def _pseudo_inverse(matvec, b: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """The minimum-norm solution of matvec(v) = b for a symmetric matvec."""
    eps = float(jnp.finfo(b.dtype).eps)
    if b.size > DENSE:

        def normal(v):
            return matvec(matvec(v))

        return jax.scipy.sparse.linalg.cg(normal, matvec(b), tol=1e2 * eps, maxiter=2 * b.size)[0]
    basis = jnp.eye(b.size, dtype=b.dtype).reshape(b.size, *b.shape)
    matrix = jax.vmap(matvec)(basis).reshape(b.size, b.size)
    values, vectors = jnp.linalg.eigh(0.5 * (matrix + matrix.T))
    real = jnp.abs(values) > eps**0.6 * jnp.max(jnp.abs(values))
    inverse = jnp.where(real, 1 / jnp.where(real, values, 1), 0)
    return (vectors @ (inverse * (vectors.T @ b.ravel()))).reshape(b.shape)
