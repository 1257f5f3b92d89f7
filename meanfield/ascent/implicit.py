"""Derivatives of a maximiser with respect to the kernel, the labels' weights and the prefix."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, PyTree
from .landscape import bind


@eqx.filter_custom_jvp
def follow(x: Float[Array, "n d"], parameters: PyTree) -> Float[Array, "n d"]:
    """x, with the derivative of a maximiser: Hess dx = −∂_θ grad, the solution without component along rotations.

    `parameters` = (kernel, rho, prefix). The Hessian of a maximiser is negative semidefinite and the right-hand side is
    orthogonal to its null directions (rotations that the kernel leaves free), so conjugate gradients give the
    minimum-norm solution; at a bifurcation the derivative does not exist. Forward and reverse mode.
    """
    return x


@follow.def_jvp
def _(primals, tangents):
    x, parameters = primals
    dx, dparameters = tangents
    n, dim = x.shape
    frozen = jax.lax.stop_gradient(x)

    def gradient(parameters):
        landscape = bind(*parameters, dim, x.dtype)
        return landscape.rho.weights[:, None] * landscape.gradient(frozen, landscape(frozen)[1])

    _, change = eqx.filter_jvp(gradient, (parameters,), (dparameters,))
    landscape = bind(*parameters, dim, x.dtype)

    # multiplied by the weights, the operator is symmetric in the plain inner product
    def minus_hessian(v):
        return -landscape.rho.weights[:, None] * landscape.hessian(frozen, landscape.gradient(frozen, v))

    def solve(matvec, b):
        return jax.scipy.sparse.linalg.cg(matvec, b, tol=1e2 * float(jnp.finfo(x.dtype).eps), maxiter=2 * n * dim)[0]

    moved = jax.lax.custom_linear_solve(minus_hessian, change, solve, solve, symmetric=True)
    return x, moved if dx is None else moved + dx
