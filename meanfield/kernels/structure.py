"""Structured kernels: h = Σ_terms scale · Π g(ξ − ζ) · φ(⟨Q_ξ x, Q_ζ y⟩), the form that fast paths use."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, Labels, Scalar, Tokens
from .algebra import AbstractKernel, Product, Scaled, Sum
from .gauge import AbstractGauge, Gauge
from .position import PositionFactor, Toeplitz
from .zonal import AbstractZonal, ProductZonal


class Frames(eqx.Module):
    """Gauge matrices evaluated once per token: Q (n, d, d)."""

    matrices: Float[Array, "n d d"]


class Term(eqx.Module):
    """One summand scale · Π g · φ(⟨Q_ξ x, Q_ζ y⟩); `gauges` from the outermost (applied first) to the innermost."""

    scale: Float[Array, ""]
    zonal: AbstractZonal
    gauges: tuple[AbstractGauge | Frames, ...] = ()
    factors: tuple[PositionFactor, ...] = ()

    def gauge(self, labels: Labels, x: Tokens) -> Float[Array, "n d"]:
        """Q_i x_i for all tokens."""
        for g in self.gauges:
            if isinstance(g, Frames):
                x = jnp.einsum("nij,nj->ni", g.matrices, x)
            else:
                x = jax.vmap(g.rotate)(labels, x)
        return x

    def ungauge(self, labels: Labels, v: Tokens) -> Float[Array, "n d"]:
        """Q_iᵀ v_i for all tokens."""
        for g in reversed(self.gauges):
            if isinstance(g, Frames):
                v = jnp.einsum("nji,nj->ni", g.matrices, v)
            else:
                v = jax.vmap(g.unrotate)(labels, v)
        return v

    def factor(self, xi, zeta, dtype) -> Scalar:
        """Π g(ξ − ζ) of one pair of labels (1 without factors)."""
        value = jnp.ones((), dtype)
        for f in self.factors:
            value = value * f(xi, zeta, dtype)
        return value

    def log_factor(self, xi, zeta, dtype) -> Scalar:
        """Σ log g(ξ − ζ) of one pair of labels, NaN where a factor is not positive."""
        value = jnp.zeros((), dtype)
        for f in self.factors:
            value = value + f.log(xi, zeta, dtype)
        return value

    def fix(self, labels: Labels, d: int, dtype) -> "Term":
        """The same term with the maps of its `Gauge`s evaluated at every label, once for a whole flow."""
        frames = tuple(Frames(_matrices(g, labels, d, dtype)) if isinstance(g, Gauge) else g for g in self.gauges)
        return Term(self.scale, self.zonal, frames, self.factors)


@eqx.filter_jit
def _matrices(gauge: Gauge, labels: Labels, d: int, dtype) -> Float[Array, "n d d"]:
    return jax.vmap(lambda xi: gauge.matrix(xi, d, dtype))(labels)


@functools.singledispatch
def terms(kernel: AbstractKernel) -> tuple[Term, ...] | None:
    """The structured form of `kernel`, or None where it has none (`Pair`, products of differently gauged kernels)."""
    return None


@terms.register
def _(kernel: AbstractZonal):
    return (Term(jnp.ones(()), kernel),)


@terms.register
def _(kernel: Scaled):
    inner = terms(kernel.a)
    return inner and tuple(
        Term(t.scale * kernel.scale.astype(t.scale.dtype), t.zonal, t.gauges, t.factors) for t in inner
    )


@terms.register
def _(kernel: Sum):
    a, b = terms(kernel.a), terms(kernel.b)
    return a and b and a + b


@terms.register
def _(kernel: Product):
    a, b = terms(kernel.a), terms(kernel.b)
    if not a or not b or any(s.gauges or t.gauges for s in a for t in b):
        return None
    return tuple(
        Term(s.scale * t.scale, ProductZonal(s.zonal, t.zonal), (), s.factors + t.factors) for s in a for t in b
    )


@terms.register
def _(kernel: Toeplitz):
    inner = terms(kernel.inner)
    return inner and tuple(Term(t.scale, t.zonal, t.gauges, (kernel.factor, *t.factors)) for t in inner)


@terms.register
def _(kernel: AbstractGauge):
    inner = terms(kernel.inner)
    return inner and tuple(Term(t.scale, t.zonal, (kernel, *t.gauges), t.factors) for t in inner)
