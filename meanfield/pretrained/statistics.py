"""What is seen of one layer on the way up, per sequence; padding counts as 0 and enters no mean."""

from typing import NamedTuple

import jax.numpy as jnp

from .._types import Array, Bool, Float
from .block import Trace


class Stream(NamedTuple):
    """The residual stream entering a layer: norms (B, n); of its normalised tokens, the order parameter ‖mean x̂‖ (B,) and
    the effective dimension (tr C)²/tr C² of C = mean x̂ x̂ᵀ (B,)."""

    norms: Float[Array, "B n"]
    order: Float[Array, " B"]
    dimension: Float[Array, " B"]


class LayerStatistics(NamedTuple):
    """One layer. mixing_token: λ = ‖a‖/(‖x‖+‖a‖) per token; mixing: its mean; mixing_norms: the ratio of matrix norms; epsilon,
    epsilon_mlp: mean of ‖a‖²/(‖x‖²+‖a‖²) and ‖a‖²/(‖x‖²+‖a‖²+‖m‖²); content: mean scaled logits (diagonal, strictly below)."""

    mixing_token: Float[Array, "B n"]
    mixing: Float[Array, " B"]
    mixing_norms: Float[Array, " B"]
    epsilon: Float[Array, " B"]
    epsilon_mlp: Float[Array, " B"]
    content: Float[Array, "B H 2"]
    stream: Stream


def stream_statistics(x: Float[Array, "B n D"], mask: Bool[Array, "B n"]) -> Stream:
    """Norms, order parameter and effective dimension of a residual stream."""
    norms = safe_norm(x)
    unit = x * jnp.where(mask, safe_divide(jnp.ones_like(norms), norms), 0)[..., None]
    count = jnp.sum(mask, axis=1).astype(x.dtype)
    order = jnp.sqrt(jnp.sum(jnp.sum(unit, axis=1) ** 2, axis=-1)) / count
    gram = jnp.einsum("bid,bjd->bij", unit, unit)
    dimension = safe_divide(count**2, jnp.sum(gram**2, axis=(1, 2)))
    return Stream(jnp.where(mask, norms, 0), order, dimension)


def layer_statistics(x: Float[Array, "B n D"], trace: Trace, mask: Bool[Array, "B n"]) -> LayerStatistics:
    """Everything of `LayerStatistics`."""
    nx, na, nm = safe_norm(x), safe_norm(trace.a), safe_norm(trace.m)
    token = jnp.where(mask, safe_divide(na, nx + na), 0)
    frobenius = [jnp.sqrt(jnp.sum(jnp.where(mask, norm, 0) ** 2, axis=1)) for norm in (nx, na)]
    return LayerStatistics(
        mixing_token=token,
        mixing=masked_mean(token, mask),
        mixing_norms=safe_divide(frobenius[1], frobenius[0] + frobenius[1]),
        epsilon=masked_mean(safe_divide(na**2, nx**2 + na**2), mask),
        epsilon_mlp=masked_mean(safe_divide(na**2, nx**2 + na**2 + nm**2), mask),
        content=trace.heads.content,
        stream=stream_statistics(x, mask),
    )


def masked_mean(values: Float[Array, "B n"], mask: Bool[Array, "B n"]) -> Float[Array, " B"]:
    """Mean over real tokens."""
    return jnp.sum(jnp.where(mask, values, 0), axis=1) / jnp.sum(mask, axis=1).astype(values.dtype)


def safe_norm(x: Float[Array, "*b D"]) -> Float[Array, "*b"]:
    """‖x‖ along the last axis, with gradient 0 at 0."""
    square = jnp.sum(x**2, axis=-1)
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)


def safe_divide(a: Float[Array, "*b"], b: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """a / b, and 0 where b is 0."""
    zero = b == 0
    return jnp.where(zero, 0, a / jnp.where(zero, 1, b))
