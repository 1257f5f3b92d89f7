"""Kernels of the angle alone: h = φ(⟨x, y⟩)."""

import abc
import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._callable import as_callable, as_parameter
from .._check import is_concrete
from .._types import Array, Float, Label, Parameter, Scalar, Vector
from .algebra import AbstractKernel


class AbstractZonal(AbstractKernel):
    """h = φ(t), t = ⟨x, y⟩. Subclass and write `phi`; all fast paths then apply.

    Source: theory.md 1.

    Examples:
        >>> class Cubic(mf.AbstractZonal):
        ...     def phi(self, t):
        ...         return t**3
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> float(Cubic()(x, 0, x, 0))
        1.0
    """

    @abc.abstractmethod
    def phi(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ(t), elementwise."""

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """φ(⟨x, y⟩)."""
        return self.phi(jnp.dot(x, y))


class Dot(AbstractZonal):
    """φ(t) = t, the β = 0 model: velocity P_x Σ_j w_j y_j (theory.md 1).

    Examples:
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> float(mf.Dot()(x, 0, y, 0))
        0.0
    """

    def phi(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """t."""
        return t


class ExpDot(AbstractZonal):
    """φ(t) = e^{β(t − shift)}/β: unnormalised self-attention (USA) at inverse temperature β > 0 (arXiv 2605.30229).

    `shift=1` never overflows and only rescales time by e^{−β}. Raises `ValueError` for β ≤ 0 (β = 0 is `Dot`).

    Examples:
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> print(f"{mf.ExpDot(2.0)(x, 0, x, 0):.3f}, {mf.ExpDot(2.0, shift=1.0)(x, 0, x, 0):.3f}")
        3.695, 0.500
    """

    beta: Float[Array, ""] = eqx.field(converter=as_parameter)
    shift: Float[Array, ""] = eqx.field(converter=as_parameter)

    def __init__(self, beta: Parameter, shift: Parameter = 0.0):
        self.beta, self.shift = as_parameter(beta, "beta"), as_parameter(shift, "shift")
        for name, value in (("beta", self.beta), ("shift", self.shift)):
            if value.ndim:
                raise ValueError(f"{name} has shape {value.shape}: pass a scalar, and sweep with jax.vmap or mf.sweep")
        if is_concrete(self.beta) and not 0 < float(self.beta) < np.inf:
            raise ValueError(f"beta={float(self.beta)}: pass beta > 0 (beta = 0 is mf.Dot())")

    def phi(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """e^{β(t − shift)}/β."""
        beta, shift = self.beta.astype(t.dtype), self.shift.astype(t.dtype)
        return jnp.exp(beta * (t - shift)) / beta


class Zonal(AbstractZonal):
    """φ given by any elementwise function or callable pytree: `Zonal(lambda t: t**3)`.

    Source: theory.md 1.

    Examples:
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> float(mf.Zonal(lambda t: t**3)(x, 0, x, 0))
        1.0
    """

    function: Callable = eqx.field(converter=as_callable)

    def phi(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """function(t)."""
        return self.function(t)


class ProductZonal(AbstractZonal):
    """φ = φ_a φ_b."""

    a: AbstractZonal
    b: AbstractZonal

    def phi(self, t: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ_a(t) φ_b(t)."""
        return self.a.phi(t) * self.b.phi(t)


@functools.singledispatch
def slope(zonal: AbstractZonal, t: Float[Array, "..."]) -> Float[Array, "..."]:
    """φ'(t), elementwise."""
    return jax.jvp(zonal.phi, (t,), (jnp.ones_like(t),))[1]


@slope.register
def _(zonal: ExpDot, t):
    return jnp.exp(zonal.beta.astype(t.dtype) * (t - zonal.shift.astype(t.dtype)))


@slope.register
def _(zonal: Dot, t):
    return jnp.ones_like(t)


@functools.singledispatch
def log_slope(zonal: AbstractZonal, t: Float[Array, "..."]) -> Float[Array, "..."]:
    """log φ'(t), NaN where φ' ≤ 0 (no softmax form)."""
    s = slope(zonal, t)
    return jnp.where(s > 0, jnp.log(jnp.where(s > 0, s, 1)), jnp.nan)


@log_slope.register
def _(zonal: ExpDot, t):
    return zonal.beta.astype(t.dtype) * (t - zonal.shift.astype(t.dtype))


@log_slope.register
def _(zonal: Dot, t):
    return jnp.zeros_like(t)
