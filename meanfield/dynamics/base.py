"""What a dynamics is: a kernel and how it moves tokens."""

import abc
import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from .._types import Array, DType, Float
from ..interaction import Plan
from ..kernels import AbstractKernel
from ..marginal import Marginal
from ..prefix import Prefix


class AbstractField(eqx.Module):
    """A vector field on (S^{d-1})^n with labels, weights, gauges and the summing method bound in."""

    method: eqx.AbstractVar[str]

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The velocity ẋ (n, d), tangent at x."""


class AbstractDriftField(AbstractField):
    """A vector field that is the tangent part of a drift A in R^d: ẋ = P_x A(x). Layers and norms act on A itself."""

    @abc.abstractmethod
    def drift(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """A(x) (n, d), not projected."""


def rows_to_sphere(x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """x/‖x‖ row by row, for rows near the sphere."""
    return x / jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


@functools.singledispatch
def retract(field: AbstractField, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """The state that a step ending at x is taken to: rows on the sphere, unless `field` moves tokens in R^d."""
    return rows_to_sphere(x)


class AbstractDynamics(eqx.Module):
    """A kernel plus a rule of motion. Subclass with `bind` to add a dynamics that flows, sweeps and plots."""

    kernel: eqx.AbstractVar[AbstractKernel]
    prefix: eqx.AbstractVar[Prefix | None]

    @abc.abstractmethod
    def bind(self, rho: Marginal, d: int, dtype, method: str | Plan) -> AbstractField:
        """The vector field for fixed labels, evaluating once what does not depend on tokens (gauge matrices)."""


def drift_field(
    dynamics: AbstractDynamics, rho: Marginal, d: int, dtype: DType, method: str | Plan
) -> AbstractDriftField:
    """The bound field of `dynamics`; raises `ValueError` where it has no drift in R^d."""
    field = dynamics.bind(rho, d, dtype, method)
    if not isinstance(field, AbstractDriftField):
        raise ValueError(
            f"{type(dynamics).__name__} gives a tangent velocity only: layers and norms need a field with drift(x) in R^d "
            "(subclass meanfield.dynamics.AbstractDriftField)"
        )
    return field


CausalRule = bool | Callable
