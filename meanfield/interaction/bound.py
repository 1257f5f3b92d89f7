"""Kernels in structured form, bound to labels: what energies and velocities share."""

from collections.abc import Callable

import jax.numpy as jnp

from .._callable import cast
from .._types import Array, DType, Float
from ..kernels import AbstractKernel, Term, terms
from ..kernels.position import identity
from ..marginal import Marginal
from ..prefix import Prefix
from .pairs import Causal, Sources, Targets


def bound_terms(kernel: AbstractKernel, rho: Marginal, d: int, dtype: DType) -> tuple[Term, ...] | None:
    """The structured terms of `kernel` with gauge matrices evaluated at the labels, or None."""
    found = terms(kernel)
    return found and tuple(t.fix(rho.labels, d, dtype) for t in found)


def visibility(causal: bool | Callable) -> Causal | None:
    """The mask of `causal` (False, True, or a function choosing the scalar position of a label)."""
    if causal is False:
        return None
    return Causal(identity if causal is True else causal)


def sides(term: Term, x: Float[Array, "n d"], rho: Marginal, rotate_values: bool) -> tuple[Targets, Sources]:
    """Targets and sources of one term: queries and keys Q_i x_i, values rotated or not."""
    q = term.gauge(rho.labels, x)
    return Targets(q, rho.labels), Sources(q, q if rotate_values else x, rho.labels, rho.weights)


def prefix_sides(x: Float[Array, "n d"], prefix: Prefix) -> tuple[Targets, Sources]:
    """Targets and sources of the frozen prefix: no label, gauge or factor."""
    nothing = jnp.zeros(x.shape[0], jnp.int32)
    tokens = prefix.tokens
    return Targets(x, nothing), Sources(tokens, tokens, jnp.zeros(tokens.shape[0], jnp.int32), prefix.weights)


def zonal_only(term: Term) -> Term:
    """The term without gauges and factors, as prefix tokens see it."""
    return Term(term.scale, term.zonal)


def cast_parts(kernel: AbstractKernel, rho: Marginal, prefix: Prefix | None, dtype: DType):
    """Kernel, marginal and prefix in the dtype of the tokens."""
    return cast(kernel, dtype), cast(rho, dtype), cast(prefix, dtype)


def check_prefix(prefix: Prefix | None, structured: bool, d: int) -> None:
    """A prefix of the right dimension, on a kernel that has a zonal part."""
    if prefix is None:
        return
    if not structured:
        raise ValueError("prefix needs a kernel with a zonal part φ(⟨x, y⟩): a Pair has none, write it as mf.Zonal")
    if prefix.tokens.shape[1] != d:
        raise ValueError(f"prefix tokens have d={prefix.tokens.shape[1]} but tokens have d={d}: use one dimension")
