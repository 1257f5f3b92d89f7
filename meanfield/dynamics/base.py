"""What a dynamics is: a kernel and how it moves tokens."""

import abc
import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from .._check import describe
from .._types import Array, DType, Float
from ..interaction import Plan
from ..kernels import AbstractKernel, require_kernel
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
    """A kernel plus a rule of motion. Subclass with `bind` to add a dynamics that flows, sweeps and plots.

    Examples:
        >>> isinstance(mf.SA(mf.ExpDot(1.0)), mf.AbstractDynamics)
        True
    """

    kernel: eqx.AbstractVar[AbstractKernel]
    prefix: eqx.AbstractVar[Prefix | None]

    def __check_init__(self):
        if self.kernel is not None:
            require_kernel(self.kernel)

    @abc.abstractmethod
    def bind(self, rho: Marginal, d: int, dtype, method: str | Plan) -> AbstractField:
        """The vector field for fixed labels, evaluating once what does not depend on tokens (gauge matrices)."""


def require_dynamics(value: object) -> None:
    """Raises `ValueError` where `value` is no dynamics, naming what was meant."""
    if isinstance(value, AbstractDynamics):
        return
    if isinstance(value, AbstractKernel):
        name = type(value).__name__
        raise ValueError(f"dynamics is the kernel {name}: say how it moves tokens, mf.USA(kernel) or mf.SA(kernel)")
    raise ValueError(f"dynamics is {describe(value)}: pass an object such as mf.USA(mf.ExpDot(2.0))")


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
