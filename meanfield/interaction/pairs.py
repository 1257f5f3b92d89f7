"""One side of a pair sum each: who feels the interaction (targets) and who exerts it (sources)."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Bool, Float, Function, Label, Labels, Real
from ..kernels import Term


class Targets(eqx.Module):
    """Tokens that feel a force: `q` (n, d) in the frame where the interaction is zonal, and their labels."""

    q: Float[Array, "n d"]
    labels: Labels


class Sources(eqx.Module):
    """Tokens that exert it: `k` (n, d) in the zonal frame, `values` (n, d) they pull towards, labels and weights."""

    k: Float[Array, "n d"]
    values: Float[Array, "n d"]
    labels: Labels
    weights: Float[Array, " n"]


class Causal(eqx.Module):
    """Token j is visible to token i when position(ξ_j) ≤ position(ξ_i) (theory.md 1, causal mask)."""

    position: Function

    def __call__(self, xi: Label, zeta: Label) -> Bool[Array, ""]:
        """Whether a source labelled ζ is visible to a target labelled ξ."""
        return self.scalar(zeta) <= self.scalar(xi)

    def scalar(self, label: Label) -> Real[Array, ""]:
        """The scalar position of one label; raises `ValueError` where it has none."""
        value = self.position(label)
        if not hasattr(value, "ndim") or value.ndim:
            raise ValueError(
                "causal=True needs scalar labels: pass causal=function that chooses the scalar position of a composite label"
            )
        return value


def over_pairs(fn: Callable, xi: Label, zeta: Label, transposed: bool = False) -> Array:
    """fn(ξ_i, ζ_j) for every pair: (B, …) and (C, …) → (B, C), or (C, B) where `transposed`."""
    if transposed:
        return jax.vmap(lambda b: jax.vmap(lambda a: fn(a, b))(xi))(zeta)
    return jax.vmap(lambda a: jax.vmap(lambda b: fn(a, b))(zeta))(xi)


def factors(term: Term, targets: Targets, sources: Sources, transposed: bool = False) -> Float[Array, "B C"] | None:
    """Π g over all pairs of a tile, or None without factors."""
    if not term.factors:
        return None
    dtype = targets.q.dtype
    return over_pairs(lambda xi, zeta: term.factor(xi, zeta, dtype), targets.labels, sources.labels, transposed)


def hide(
    values: Float[Array, "B C"],
    visible: Causal | None,
    targets: Targets,
    sources: Sources,
    fill: float,
    transposed: bool = False,
) -> Array:
    """`values` with invisible pairs replaced by `fill`."""
    if visible is None:
        return values
    seen = over_pairs(visible, targets.labels, sources.labels, transposed)
    return jnp.where(seen, values, jnp.asarray(fill, values.dtype))
