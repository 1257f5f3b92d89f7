"""Position factors: h = g(ξ − ζ)·inner."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._callable import as_callable, as_parameter
from .._check import is_concrete
from .._types import AnyArray, Array, Float, Function, Label, Scalar, Vector
from .algebra import AbstractKernel, require_kernel


class Cosine(eqx.Module):
    """g(τ) = offset + cos(frequency·τ).

    Source: theory.md 1.

    Examples:
        >>> print(f"{mf.Cosine(frequency=2.0, offset=0.5)(jnp.asarray(np.pi)):.2f}")
        1.50
    """

    frequency: Float[Array, ""] = eqx.field(converter=as_parameter, default=1.0)
    offset: Float[Array, ""] = eqx.field(converter=as_parameter, default=0.0)

    def __call__(self, tau: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """offset + cos(frequency τ)."""
        return self.offset.astype(tau.dtype) + jnp.cos(self.frequency.astype(tau.dtype) * tau)


class ExponentialDecay(eqx.Module):
    """g(τ) = e^{−rate|τ|}, the distance bias of ALiBi. |τ| is never wrapped. Raises `ValueError` for rate < 0.

    Source: theory.md 1.

    Examples:
        >>> print(f"{mf.ExponentialDecay(0.5)(jnp.asarray(-2.0)):.3f}")
        0.368
    """

    rate: Float[Array, ""] = eqx.field(converter=as_parameter)

    def __check_init__(self):
        if is_concrete(self.rate) and not np.all(np.asarray(self.rate) >= 0):
            raise ValueError(f"rate={self.rate}: pass rate ≥ 0 (a decay)")

    def __call__(self, tau: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """e^{−rate|τ|}."""
        return jnp.exp(-self.rate.astype(tau.dtype) * jnp.abs(tau))


class Gaussian(eqx.Module):
    """g(τ) = e^{−τ²/(2 width²)}. Raises `ValueError` for width ≤ 0.

    Source: theory.md 1.

    Examples:
        >>> print(f"{mf.Gaussian(1.0)(jnp.asarray(2.0)):.3f}")
        0.135
    """

    width: Float[Array, ""] = eqx.field(converter=as_parameter)

    def __check_init__(self):
        if is_concrete(self.width) and not np.all(np.asarray(self.width) > 0):
            raise ValueError(f"width={self.width}: pass width > 0")

    def __call__(self, tau: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """e^{−τ²/(2 width²)}."""
        return jnp.exp(-0.5 * (tau / self.width.astype(tau.dtype)) ** 2)


@functools.singledispatch
def log_profile(profile: Callable, tau: Float[AnyArray, "..."]) -> Float[Array, "..."]:
    """log g(τ), NaN where g ≤ 0 (no softmax form)."""
    g = profile(tau)
    return jnp.where(g > 0, jnp.log(jnp.where(g > 0, g, 1)), jnp.nan)


@log_profile.register
def _(profile: ExponentialDecay, tau):
    return -profile.rate.astype(tau.dtype) * jnp.abs(tau)


@log_profile.register
def _(profile: Gaussian, tau):
    return -0.5 * (tau / profile.width.astype(tau.dtype)) ** 2


class PositionFactor(eqx.Module):
    """g of one pair of labels: τ = label(ξ) − label(ζ), `label` choosing the part of a composite label."""

    profile: Function
    label: Function

    def difference(self, xi: Label, zeta: Label, dtype) -> Float[Array, "..."]:
        """τ = label(ξ) − label(ζ) in `dtype`; integer labels are subtracted exactly first."""
        a, b = jnp.asarray(self.label(xi)), jnp.asarray(self.label(zeta))
        if jnp.issubdtype(a.dtype, jnp.unsignedinteger) or a.dtype == bool:
            a, b = a.astype(jnp.result_type(int)), b.astype(jnp.result_type(int))
        return (a - b).astype(dtype)

    def __call__(self, xi: Label, zeta: Label, dtype) -> Scalar:
        """g(τ)."""
        return _scalar(self.profile(self.difference(xi, zeta, dtype)), "profile")

    def log(self, xi: Label, zeta: Label, dtype) -> Scalar:
        """log g(τ), NaN where g ≤ 0."""
        return _scalar(log_profile(self.profile, self.difference(xi, zeta, dtype)), "profile")


def identity(label: Label) -> Label:
    """The whole label (default of `label=`)."""
    return label


class Toeplitz(AbstractKernel):
    """h = g(ξ − ζ)·inner(z, z') (theory.md 1, position factors).

    Args:
        profile: g, any callable pytree τ ↦ scalar (`Cosine`, `ExponentialDecay`, `Gaussian`, or your own); a vector τ
            goes to it whole.
        inner: the kernel that is multiplied.
        label: chooses this factor's part of a composite label; default the whole label.

    Examples:
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> kernel = mf.Toeplitz(mf.ExponentialDecay(1.0), mf.Dot())
        >>> print(f"{kernel(x, 0.0, x, 2.0):.3f}")
        0.135
    """

    profile: Function = eqx.field(converter=as_callable)
    inner: AbstractKernel
    label: Function = eqx.field(converter=as_callable, default=identity)

    def __check_init__(self):
        require_kernel(self.inner, "inner (the second argument of Toeplitz)")

    @property
    def factor(self) -> PositionFactor:
        """g as a function of two labels."""
        return PositionFactor(self.profile, self.label)

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """g(ξ − ζ) inner(z, z')."""
        return self.factor(xi, zeta, x.dtype) * self.inner(x, xi, y, zeta)


def _scalar(value: Float[Array, "..."], name: str) -> Scalar:
    if jnp.ndim(value):
        raise ValueError(
            f"{name}(τ) has shape {jnp.shape(value)} for one pair: it must be a scalar; a vector τ goes to it whole, "
            "choose a scalar part with label="
        )
    return value
