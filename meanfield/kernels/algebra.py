"""What every kernel is, and how kernels add and multiply."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import numpy as np

from .._callable import as_parameter
from .._check import describe
from .._types import Array, Float, Label, Scalar, ScalarLike, Vector


class AbstractKernel(eqx.Module):
    """An interaction h(z, z') of one pair of tokens, z = (x, ξ), z' = (y, ζ).

    Subclass, give the formula in `__call__`, and the kernel has an energy, a flow and maximisers. Parameters are
    floating array leaves. Kernels add, multiply, and multiply with scalars: `ExpDot(1.0) + 0.5 * RoPE(ExpDot(3.0), w)`.

    Source: theory.md 1; arXiv 2605.30229.

    Examples:
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> kernel = mf.ExpDot(1.0) + 0.5 * mf.RoPE(mf.Dot(), jnp.ones(1))
        >>> print(f"{kernel(x, 0.0, y, 0.0):.2f}")
        1.00
    """

    __array_ufunc__: ClassVar[None] = None  # so that numpy_scalar * kernel comes here

    @abc.abstractmethod
    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """h((x, ξ), (y, ζ)) for x, y (d,) and one label each."""

    def __add__(self, other: "AbstractKernel") -> "Sum":
        return Sum(self, other) if isinstance(other, AbstractKernel) else NotImplemented

    def __mul__(self, other: "AbstractKernel | ScalarLike") -> "AbstractKernel":
        if isinstance(other, AbstractKernel):
            return Product(self, other)
        return Scaled(other, self) if _is_scalar(other) else NotImplemented

    def __rmul__(self, other: ScalarLike) -> "AbstractKernel":
        return Scaled(other, self) if _is_scalar(other) else NotImplemented

    def __neg__(self) -> "AbstractKernel":
        return Scaled(-1.0, self)

    def __sub__(self, other: "AbstractKernel") -> "AbstractKernel":
        return Sum(self, Scaled(-1.0, other)) if isinstance(other, AbstractKernel) else NotImplemented


def require_kernel(value: object, name: str = "kernel") -> None:
    """Raises `ValueError` where `value` is no kernel, naming what was meant."""
    if isinstance(value, AbstractKernel):
        return
    if callable(value) and not isinstance(value, (eqx.Module, type)):
        raise ValueError(f"{name} is a function: wrap it, mf.Pair(fn) for fn(x, xi, y, zeta), mf.Zonal(phi) for phi(t)")
    raise ValueError(f"{name} is {describe(value)}, not a kernel: pass an object such as mf.ExpDot(2.0)")


class Sum(AbstractKernel):
    """h = a + b."""

    a: AbstractKernel
    b: AbstractKernel

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """a(z, z') + b(z, z')."""
        return self.a(x, xi, y, zeta) + self.b(x, xi, y, zeta)


class Product(AbstractKernel):
    """h = a·b."""

    a: AbstractKernel
    b: AbstractKernel

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """a(z, z') b(z, z')."""
        return self.a(x, xi, y, zeta) * self.b(x, xi, y, zeta)


class Scaled(AbstractKernel):
    """h = c·a for a scalar c."""

    scale: Float[Array, ""] = eqx.field(converter=as_parameter)
    a: AbstractKernel

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """c a(z, z')."""
        return self.scale.astype(x.dtype) * self.a(x, xi, y, zeta)


def _is_scalar(value) -> bool:
    return isinstance(value, (int, float, np.number)) or (
        isinstance(value, (jax.Array, np.ndarray)) and value.ndim == 0
    )
