"""What an all-pairs method must provide, for one structured term."""

import abc

import equinox as eqx
import jax.numpy as jnp

from .._types import Array, Float, PyTree
from ..kernels import Term
from ..sphere import project
from .pairs import Causal, Sources, Targets


class Average(eqx.Module):
    """A softmax average in progress: Σ_j a_j v_j and Σ_j a_j, both times e^{−top}, rows (n,)."""

    top: Float[Array, " n"]
    numerator: Float[Array, "n d"]
    denominator: Float[Array, " n"]


def merge(a: Average, b: Average) -> Average:
    """The average over both sets of sources."""
    top = jnp.maximum(a.top, b.top)
    finite = jnp.where(jnp.isfinite(top), top, 0)
    ea, eb = jnp.exp(a.top - finite), jnp.exp(b.top - finite)
    return Average(
        top,
        a.numerator * ea[:, None] + b.numerator * eb[:, None],
        a.denominator * ea + b.denominator * eb,
    )


def empty(zeros: Average) -> Average:
    """The average over nothing."""
    return Average(jnp.full_like(zeros.top, -jnp.inf), zeros.numerator, zeros.denominator)


def mean(average: Average) -> Float[Array, "n d"]:
    """Σ a v / Σ a, zero where nothing is visible."""
    some = average.denominator > 0
    weight = jnp.where(some, average.denominator, 1)
    # a NaN denominator (a factor that changes sign) stays NaN
    return jnp.where((some | jnp.isnan(average.denominator))[:, None], average.numerator / weight[:, None], 0)


class AbstractMethod(eqx.Module):
    """A way to sum one structured term over all pairs. All three sums leave out the term's `scale`."""

    @abc.abstractmethod
    def force(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Float[Array, "n d"]:
        """Σ_j w_j g_ij φ'(⟨q_i, k_j⟩) v_j over visible j."""

    @abc.abstractmethod
    def average(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Average:
        """Numerator and denominator of Σ_j a_ij v_j with a_ij ∝ w_j g_ij φ'(⟨q_i, k_j⟩) over visible j."""

    def tangent(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Float[Array, "n d"]:
        """`force` minus its part along q_i (unit rows): what moves tokens on the sphere, where values are keys."""
        return project(targets.q, self.force(term, targets, sources, visible))

    def tangent_average(self, term: Term, targets: Targets, sources: Sources, visible: Causal | None) -> Average:
        """`average` with the numerator's part along q_i removed."""
        average = self.average(term, targets, sources, visible)
        return Average(average.top, project(targets.q, average.numerator), average.denominator)

    @abc.abstractmethod
    def potential(self, term: Term, targets: Targets, sources: Sources) -> Float[Array, " n"]:
        """Σ_j w_j g_ij φ(⟨q_i, k_j⟩)."""


Blocks = PyTree[Array]
