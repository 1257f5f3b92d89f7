"""Equiangular tokens: ⟨x_i, x_j⟩ = r for all i ≠ j, uniform weights (theory.md 1.2)."""

import jax.numpy as jnp

from .._callable import as_parameter
from .._types import AnyArray, Array, Float, Scalar, ScalarLike


def equiangular_rate(r: ScalarLike, n: int, beta: ScalarLike, softmax: bool = False) -> Scalar:
    """ṙ = (2/n)e^{βr}(1−r)(1+(n−1)r) for USA; SA divides e^{βr} by (e^β + (n−1)e^{βr})/n.

    Source: theory.md 1.2.

    Examples:
        >>> float(mf.theory.equiangular_rate(0.0, 2, 1.0)), float(mf.theory.equiangular_rate(1.0, 2, 1.0))
        (1.0, 0.0)
    """
    r, beta = as_parameter(r), as_parameter(beta)
    shape = 2 * (1 - r) * (1 + (n - 1) * r)
    if softmax:
        return shape / (jnp.exp(beta * (1 - r)) + (n - 1))
    return shape * jnp.exp(beta * r) / n


def equiangular_linear(t: Float[AnyArray, "..."] | ScalarLike, n: int) -> Float[Array, "..."]:
    """r(t) = (e^{2t} − 1)/(e^{2t} + n − 1), the solution for β = 0 from r(0) = 0.

    Source: theory.md 1.2.

    Examples:
        >>> print(np.round(mf.theory.equiangular_linear(jnp.asarray([0.0, 1.0, 5.0]), n=4), 4))
        [0.         0.615      0.99979997]
    """
    decay = jnp.exp(-2 * as_parameter(t))
    return (1 - decay) / (1 + (n - 1) * decay)


def cross_ratio(x: Float[AnyArray, "4 d"]) -> Scalar:
    """‖x1−x2‖‖x3−x4‖/(‖x1−x3‖‖x2−x4‖), conserved by the β = 0 flow in any dimension: an integrator's error meter.

    Source: theory.md 1.3.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1], [-1, 0], [0, -1]])
        >>> print(f"{mf.theory.cross_ratio(x):.4f}")
        0.5000
    """
    x = jnp.asarray(x)

    def side(i, j):
        return jnp.linalg.norm(x[i] - x[j])

    return side(0, 1) * side(2, 3) / (side(0, 2) * side(1, 3))
