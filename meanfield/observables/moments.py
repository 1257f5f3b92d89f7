"""First and second moments of the law of tokens."""

import jax
import jax.numpy as jnp

from .. import sphere
from .._types import Array, Float, Weights
from ._inputs import Clouds, masses, points


def order_parameter(x: Clouds, weights: Weights | None = None) -> Float[Array, "*batch"]:
    """R = ‖Σ_i w_i x_i‖: 1 where all tokens agree, 0 where they balance; gradient 0 at R = 0.

    `x` (…, n, d), `weights` (n,), uniform by default. Raises `ValueError` for NaN tokens and wrong weights.

    Source: theory.md 1.

    Examples:
        >>> float(mf.observables.order_parameter(np.float32([[1, 0], [-1, 0]])))
        0.0
    """
    x = points(x)
    mean = jnp.einsum("...nd,n->...d", x, masses(weights, x))
    return sphere.safe_norm(mean)[..., 0]


def effective_dimension(x: Clouds, weights: Weights | None = None) -> Float[Array, "*batch"]:
    """(tr C)²/tr C², the participation ratio of the covariance C = Σ_i w_i (x_i − m)(x_i − m)ᵀ, m = Σ_i w_i x_i.

    Between 1 (tokens on a line) and d (uniform on the sphere). 0, with gradient 0, where all tokens coincide.
    `x` (…, n, d), `weights` (n,), uniform by default. Raises `ValueError` for NaN tokens and wrong weights.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1], [-1, 0], [0, -1]])
        >>> float(mf.observables.effective_dimension(x))
        2.0
    """
    x = points(x)
    return _participation_ratio(x, masses(weights, x))


@jax.jit
def _participation_ratio(x: Array, w: Array) -> Array:
    centred = x - jnp.einsum("...nd,n->...d", x, w)[..., None, :]
    size = jnp.max(jnp.abs(centred), axis=(-2, -1), keepdims=True)
    spread = size > 0
    centred = centred / jnp.where(spread, size, 1)  # the ratio has no scale, so tiny clouds do not underflow
    covariance = jnp.einsum("...ni,...nj,n->...ij", centred, centred, w)
    trace = jnp.trace(covariance, axis1=-2, axis2=-1)
    square = jnp.sum(covariance**2, axis=(-2, -1))
    positive = square > 0
    return jnp.where(positive, trace**2 / jnp.where(positive, square, 1), 0)
