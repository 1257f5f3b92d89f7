"""Any function of one pair."""

import equinox as eqx

from .._callable import as_callable
from .._types import Function, Label, Scalar, Vector
from .algebra import AbstractKernel


class Pair(AbstractKernel):
    """h = fn(x, ξ, y, ζ): any differentiable function or callable pytree of one pair → scalar.

    Sums run by mapped autodiff in blocks; kernels that are zonal up to gauges and factors are faster written as such.
    """

    fn: Function = eqx.field(converter=as_callable)

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """fn(x, ξ, y, ζ)."""
        return self.fn(x, xi, y, zeta)
