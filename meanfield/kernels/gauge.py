"""Gauges: h = inner(Q_ξ x, ξ, Q_ζ y, ζ) with Q_ξ ∈ O(d) chosen by the label."""

import abc
import functools

import equinox as eqx
import jax.numpy as jnp

from .._callable import as_callable, as_parameter
from .._types import Array, DType, Float, Function, Label, Scalar, Vector
from .algebra import AbstractKernel, require_kernel
from .position import identity


class AbstractGauge(AbstractKernel):
    """h = inner(Q_ξ x, ξ, Q_ζ y, ζ). Subclass with `rotate` and `unrotate` for one token.

    Source: theory.md 1; arXiv 2605.30229.

    Examples:
        >>> rope = mf.RoPE(mf.Dot(), jnp.ones(1))  # a gauge
        >>> print(np.round(rope.rotate(np.pi / 2, jnp.asarray([1.0, 0.0])), 3))
        [-0.  1.]
    """

    inner: eqx.AbstractVar[AbstractKernel]

    @abc.abstractmethod
    def rotate(self, xi: Label, x: Vector) -> Float[Array, " d"]:
        """Q_ξ x."""

    @abc.abstractmethod
    def unrotate(self, xi: Label, v: Vector) -> Float[Array, " d"]:
        """Q_ξᵀ v."""

    def __call__(self, x: Vector, xi: Label, y: Vector, zeta: Label) -> Scalar:
        """inner(Q_ξ x, ξ, Q_ζ y, ζ)."""
        return self.inner(self.rotate(xi, x), xi, self.rotate(zeta, y), zeta)


class RoPE(AbstractGauge):
    """Q_ξ = R_ξ turns the plane (2k, 2k+1) counter-clockwise by ω_k ξ; other coordinates are fixed (theory.md 1).

    Args:
        inner: the kernel seen in the rotated frame.
        frequencies: ω, (k,) with k ≤ d//2.
        label: chooses the scalar part ξ of a composite label.

    Raises:
        ValueError: when tokens have fewer than 2k coordinates, or the label is not a scalar.

    Examples:
        >>> kernel = mf.RoPE(mf.Dot(), jnp.ones(1))  # one plane, ω = 1
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> print(f"{kernel(x, 0.3, y, 0.3 - np.pi / 2):.3f}")
        1.000
    """

    inner: AbstractKernel
    frequencies: Float[Array, " k"] = eqx.field(converter=functools.partial(as_parameter, name="frequencies"))
    label: Function = eqx.field(converter=as_callable, default=identity)

    def __check_init__(self):
        require_kernel(self.inner, "inner (the first argument of RoPE)")
        if self.frequencies.ndim != 1:
            raise ValueError(
                f"frequencies has shape {self.frequencies.shape}: pass a one-dimensional array, one per plane"
            )

    def rotate(self, xi: Label, x: Vector) -> Float[Array, " d"]:
        """R_ξ x."""
        return self._turn(xi, x, 1)

    def unrotate(self, xi: Label, v: Vector) -> Float[Array, " d"]:
        """R_ξᵀ v."""
        return self._turn(xi, v, -1)

    def _turn(self, xi, x, sign):
        k = self.frequencies.shape[0]
        if 2 * k > x.shape[-1]:
            raise ValueError(
                f"{k} frequencies turn {k} planes but tokens have d={x.shape[-1]}: pass at most d//2 frequencies"
            )
        position = jnp.asarray(self.label(xi)).astype(x.dtype)
        if position.ndim:
            raise ValueError(
                f"RoPE needs scalar labels, got one of shape {position.shape}: choose a scalar part with label="
            )
        angle = sign * self.frequencies.astype(x.dtype) * position
        c, s = jnp.cos(angle), jnp.sin(angle)
        planes = x[: 2 * k].reshape(k, 2)
        a, b = planes[:, 0], planes[:, 1]
        turned = jnp.stack([c * a - s * b, s * a + c * b], axis=1).reshape(2 * k)
        return jnp.concatenate([turned, x[2 * k :]])


class Gauge(AbstractGauge):
    """Q_ξ = map(ξ), any measurable map from labels to O(d): prompt gauges, generalised RoPE (theory.md 1 and 2).

    Args:
        inner: the kernel seen in the rotated frame.
        map: label ↦ (d, d) orthogonal; a function, an `equinox.Module`, a bound flax module, a flax `nnx` module.
        label: chooses the part of a composite label that goes to `map`.

    Examples:
        >>> turn = lambda xi: jnp.asarray([[0.0, -1.0], [1.0, 0.0]]) if xi else jnp.eye(2)
        >>> x, y = jnp.asarray([1.0, 0.0]), jnp.asarray([0.0, 1.0])
        >>> float(mf.Gauge(mf.Dot(), turn)(x, True, y, False))
        1.0
    """

    inner: AbstractKernel
    map: Function = eqx.field(converter=as_callable)
    label: Function = eqx.field(converter=as_callable, default=identity)

    def matrix(self, xi: Label, d: int, dtype) -> Float[Array, "d d"]:
        """Q_ξ in `dtype`; raises `ValueError` where it is not (d, d)."""
        q = jnp.asarray(self.map(self.label(xi)))
        if q.shape != (d, d):
            raise ValueError(
                f"the gauge map returns shape {q.shape} but tokens have d={d}: return a ({d}, {d}) orthogonal matrix"
            )
        return q.astype(dtype)

    def rotate(self, xi: Label, x: Vector) -> Float[Array, " d"]:
        """Q_ξ x."""
        return self.matrix(xi, x.shape[-1], x.dtype) @ x

    def unrotate(self, xi: Label, v: Vector) -> Float[Array, " d"]:
        """Q_ξᵀ v."""
        return self.matrix(xi, v.shape[-1], v.dtype).T @ v


def orthogonality_defect(gauge: Gauge, xi: Label, d: int, dtype: DType) -> Scalar:
    """max |Q_ξ Q_ξᵀ − I|, 0 for an orthogonal gauge."""
    q = gauge.matrix(xi, d, dtype)
    return jnp.max(jnp.abs(q @ q.T - jnp.eye(d, dtype=dtype)))
