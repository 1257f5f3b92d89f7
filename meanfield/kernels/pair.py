"""Any function of one pair."""

import equinox as eqx
import jax.numpy as jnp

from .._callable import as_callable
from .._types import Function, Label, Scalar, Vector
from .algebra import AbstractKernel


class Pair(AbstractKernel):
    """h = fn(x, ξ, y, ζ): any differentiable function or callable pytree of one pair → scalar.

    Sums run by mapped autodiff in blocks; kernels that are zonal up to gauges and factors are faster written as such.

    Source: theory.md 1.

    Examples:
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> kernel = mf.Pair(lambda x, xi, y, zeta: jnp.exp(-(xi - zeta) ** 2) * (x @ y))
        >>> float(kernel(x, 1.0, x, 1.0))
        1.0
    """

    fn: Function = eqx.field(converter=as_callable)

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """fn(x, ξ, y, ζ)."""
        value = self.fn(x, xi, y, zeta)
        if jnp.ndim(value):
            raise ValueError(f"fn of Pair returns shape {jnp.shape(value)} for one pair: return a scalar")
        return value
