"""Position factors that expansions can use: trigonometric ones by separable products, decays by order of the labels."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, DType, Float, Labels, PyTree, Real
from ..kernels import Cosine, ExponentialDecay, PositionFactor, Term
from .pairs import Causal


class Waves(eqx.Module):
    """g(τ) = constant + Σ_k amplitude_k cos(frequency_k τ): what a trigonometric profile must be to be expanded."""

    constant: Float[Array, ""]
    amplitudes: Float[Array, " k"]
    frequencies: Float[Array, " k"]


@functools.singledispatch
def waves(profile: Callable) -> Waves | None:
    """The trigonometric form of a profile, or None. Register your own profile class here to have it expanded."""
    return None


@waves.register
def _(profile: Cosine):
    return Waves(profile.offset, jnp.ones((1,), profile.offset.dtype), profile.frequency[None])


class Split(eqx.Module):
    """The factors of one term: `trigonometric` ones, and decays (`rates` summed) along one order of labels."""

    trigonometric: tuple[PositionFactor, ...]
    decays: tuple[PositionFactor, ...]
    position: Callable | None

    @property
    def ordered(self) -> bool:
        """Whether tokens must be sorted by label."""
        return self.position is not None


def split_factors(term: Term, visible: Causal | None) -> Split | str:
    """The factors of `term` sorted by kind, or why they cannot be expanded."""
    trigonometric, decays = [], []
    for factor in term.factors:
        if waves(factor.profile) is not None:
            trigonometric.append(factor)
        elif isinstance(factor.profile, ExponentialDecay):
            decays.append(factor)
        else:
            name = type(factor.profile).__name__
            return f"the position factor {name} is neither trigonometric nor an exponential decay"
    choices = [f.label for f in decays] + ([] if visible is None else [visible.position])
    if any(_function(c) is not _function(choices[0]) for c in choices):
        return "decays and mask order tokens by different parts of the label"
    return Split(tuple(trigonometric), tuple(decays), choices[0] if choices else None)


def _function(choice: Callable):
    return choice.func if isinstance(choice, jax.tree_util.Partial) and not choice.args else choice


def positions(choice: Callable, labels: Labels) -> Real[Array, " n"]:
    """Scalar positions of all tokens, signed so that differences are exact."""
    values = jax.vmap(lambda label: jnp.asarray(choice(label)))(labels)
    if values.ndim != 1:
        raise ValueError(
            f"this kernel needs scalar labels, got one of shape {values.shape[1:]}: choose a scalar part with label="
        )
    if jnp.issubdtype(values.dtype, jnp.unsignedinteger) or values.dtype == bool:
        values = values.astype(jnp.result_type(int))
    return values


def features(
    factors: tuple[PositionFactor, ...], labels: Labels, sources: PyTree[Array], dtype: DType
) -> tuple[Float[Array, "n r"], Float[Array, "m r"]]:
    """Products over `factors` of (constant, a cos ωξ, a sin ωξ) and (1, cos ωζ, sin ωζ): g_ij = ⟨target_i, source_j⟩."""
    n, m = (jax.tree.leaves(tree)[0].shape[0] for tree in (labels, sources))
    target, source = jnp.ones((n, 1), dtype), jnp.ones((m, 1), dtype)
    for factor in factors:
        series = waves(factor.profile)
        a, b = positions(factor.label, labels), positions(factor.label, sources)
        origin = a[0]  # integer labels are shifted exactly before they are rounded to the dtype
        frequencies = series.frequencies.astype(dtype)
        a, b = ((p - origin).astype(dtype)[:, None] * frequencies for p in (a, b))
        amplitude = series.amplitudes.astype(dtype)
        left = [jnp.full((n, 1), series.constant.astype(dtype)), amplitude * jnp.cos(a), amplitude * jnp.sin(a)]  # fmt: skip
        right = [jnp.ones((m, 1), dtype), jnp.cos(b), jnp.sin(b)]
        target = _rows(target, jnp.concatenate(left, axis=1))
        source = _rows(source, jnp.concatenate(right, axis=1))
    return target, source


def _rows(a: Float[Array, "n r"], b: Float[Array, "n s"]) -> Float[Array, "n rs"]:
    return (a[:, :, None] * b[:, None, :]).reshape(a.shape[0], -1)
