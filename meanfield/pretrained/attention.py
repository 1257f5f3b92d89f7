"""Causal attention with grouped queries, rotary and additive position biases; long sequences head by head."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Bool, Float, Int
from .layers import Context, Linear
from .spec import Spec

TOGETHER = 2**23  # entries B H n²: above it, one head at a time,
ROWS = 256  # and so many rows of it


class Heads(NamedTuple):
    """Inside of one attention: q, k, v (B, n, H, head_dim) with grouped heads repeated; probs A (B, H, n, n); mean and squares,
    Σ_h A^h/H and Σ_h (A^h)² (B, n, n); content (B, H, 2), the mean scaled logits without additive bias, on the diagonal and strictly
    below it (NaN where there is no pair)."""

    q: Float[Array, "B n H h"]
    k: Float[Array, "B n H h"]
    v: Float[Array, "B n H h"]
    probs: Float[Array, "B H n n"]
    mean: Float[Array, "B n n"]
    squares: Float[Array, "B n n"]
    content: Float[Array, "B H 2"]


class Attention(nn.Module):
    """x (B, n, D) → the attention contribution a (B, n, D), and its Heads."""

    spec: Spec

    @nn.compact
    def __call__(self, x, where: Context, depth):
        spec = self.spec
        q = self._project(x, "query", spec.heads)
        k = self._project(x, "key", spec.kv_heads)
        v = self._project(x, "value", spec.kv_heads)
        if spec.rotary is not None:
            q, k = rotate(q, where), rotate(k, where)
        k, v = jnp.repeat(k, spec.group, axis=2), jnp.repeat(v, spec.group, axis=2)
        scale = spec.scale / (depth.astype(x.dtype) + 1) if spec.scale_by_depth else spec.scale
        scaled = q * scale
        mixed, *maps = attend(spec, scaled, k, v, where)
        out = Linear(spec.dim, spec.out_bias, name="out")(mixed.reshape(*x.shape[:2], -1))
        return out, Heads(q, k, v, *maps, mean_logits(scaled, k, where.allowed))

    def _project(self, x, name: str, heads: int):
        y = Linear(heads * self.spec.head_dim, self.spec.qkv_bias, name=name)(x)
        if self.spec.clip is not None:
            y = jnp.clip(y, -self.spec.clip, self.spec.clip)
        return y.reshape(*x.shape[:2], heads, self.spec.head_dim)


def attend(
    spec: Spec, q: Float[Array, "B n H h"], k: Float[Array, "B n H h"], v: Float[Array, "B n H h"], where: Context
) -> tuple[Float[Array, "B n H h"], Float[Array, "B H n n"], Float[Array, "B n n"], Float[Array, "B n n"]]:
    """Σ_j A_ij v_j, A, its mean over heads and Σ_h (A^h)²; A_ij = softmax_j(⟨q_i, k_j⟩ + bias_ij) over the allowed j; q is scaled already.

    Long sequences go head by head and `ROWS` queries at a time, forward and backward: what is not asked for (usually probs) is
    never in memory, nor are the logits of more than a few rows.
    """
    slopes = _slopes(spec, q.dtype)
    if q.shape[0] * spec.heads * q.shape[1] ** 2 <= TOGETHER:
        mixed, probs = _rows(spec, slopes, k, v, where.positions, q, where.positions, where.allowed)
        return mixed, probs, _over_heads(probs, 1) / spec.heads, _over_heads(probs, 2)

    def head(sums, operands):
        q, k, v, slope = operands

        @jax.checkpoint
        def row(query):
            return _rows(spec, slope, k, v, where.positions, *(z[:, None] for z in query))

        queries = (jnp.moveaxis(z, 1, 0) for z in (q, where.positions, where.allowed))
        mixed, probs = jax.lax.map(row, tuple(queries), batch_size=ROWS)
        mixed, probs = jnp.moveaxis(mixed[:, :, 0], 0, 1), jnp.moveaxis(probs[:, :, 0, 0], 0, 1)
        return (sums[0] + probs / spec.heads, sums[1] + probs**2), (mixed, probs)

    nothing = jnp.zeros(where.allowed.shape, q.dtype)
    operands = (*(jnp.moveaxis(z, 2, 0)[..., None, :] for z in (q, k, v)), slopes[:, None])
    (mean, squares), (mixed, probs) = jax.lax.scan(head, (nothing, nothing), operands)
    return jnp.moveaxis(mixed[..., 0, :], 0, 2), jnp.moveaxis(probs, 0, 1), mean, squares


def _rows(
    spec: Spec,
    slopes: Float[Array, " H"],
    k: Float[Array, "B n H h"],
    v: Float[Array, "B n H h"],
    positions: Int[Array, "B n"],
    q: Float[Array, "B r H h"],
    queries: Int[Array, "B r"],
    allowed: Bool[Array, "B r n"],
) -> tuple[Float[Array, "B r H h"], Float[Array, "B H r n"]]:
    # Some rows of attention: their positions are `queries`, the keys' are `positions`.
    logits = jnp.einsum("bihd,bjhd->bhij", q, k) + alibi_bias(spec, slopes, queries, positions)
    probs = masked_softmax(logits, allowed[:, None])
    return jnp.einsum("bhij,bjhd->bihd", probs, v), probs


def _over_heads(probs: Float[Array, "B H n n"], power: int) -> Float[Array, "B n n"]:
    # Head after head: XLA's reduction over an inner axis takes 20 times as long on CPUs, and copies its operand.
    first = jnp.zeros((probs.shape[0], *probs.shape[2:]), probs.dtype)
    return jax.lax.fori_loop(0, probs.shape[1], lambda h, total: total + probs[:, h] ** power, first)


def rotate(x: Float[Array, "B n H h"], where: Context) -> Float[Array, "B n H h"]:
    """Rotary embedding, half-split, of the leading coordinates; the rest pass through."""
    half = where.cos.shape[-1]
    cos, sin = where.cos[where.positions][:, :, None], where.sin[where.positions][:, :, None]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)


def alibi_bias(
    spec: Spec, slopes: Float[Array, " H"], queries: Int[Array, "B r"], keys: Int[Array, "B n"]
) -> Float[Array, "B H _ n"] | float:
    """−m_h (i − j), or Falcon's m_h j with bfloat16 rounding (equal to it in the softmax but for the rounding); 0 without ALiBi."""
    if spec.alibi is None:
        return 0.0
    if spec.alibi.rounded:
        product = _bfloat16(slopes[None, :, None] * _bfloat16(keys[:, None, :].astype(slopes.dtype)))
        return product[:, :, None, :] * (spec.scale if spec.alibi.scaled else 1.0)
    distance = (queries[:, :, None] - keys[:, None, :]).astype(slopes.dtype)
    return -slopes[None, :, None, None] * distance[:, None]


def _slopes(spec: Spec, dtype: np.dtype) -> Float[Array, " H"]:
    if spec.alibi is None:
        return jnp.zeros(spec.heads, dtype)
    if spec.alibi.rounded:
        return _bfloat16(jnp.asarray(spec.alibi.slopes(spec.heads), dtype))
    return jnp.asarray(spec.alibi_slopes, dtype)


def _bfloat16(x: Float[Array, "*b"]) -> Float[Array, "*b"]:
    # A pair of casts would not do: XLA may elide it.
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)


def masked_softmax(logits: Float[Array, "*b n"], allowed: Bool[Array, "*c n"]) -> Float[Array, "*b n"]:
    """Softmax over the allowed entries; exactly 0 elsewhere, and 0 in rows without any (finite gradients there too)."""
    logits = jnp.where(allowed, logits, jnp.finfo(logits.dtype).min / 2)
    return jnp.where(allowed, jax.nn.softmax(logits, axis=-1), jnp.zeros((), logits.dtype))


def mean_logits(
    q: Float[Array, "B n H h"], k: Float[Array, "B n H h"], allowed: Bool[Array, "B n n"]
) -> Float[Array, "B H 2"]:
    """Means of ⟨q_i, k_j⟩ over allowed pairs, on the diagonal and strictly below it: Σ_i ⟨q_i, Σ_j k_j⟩, so no logits are formed."""
    real = jnp.diagonal(allowed, axis1=1, axis2=2).astype(q.dtype)
    below = jnp.tril(allowed, -1).astype(q.dtype)
    diagonal = jnp.einsum("bihd,bihd,bi->bh", q, k, real), jnp.sum(real, axis=1)
    lower = jnp.einsum("bihd,bihd->bh", q, jnp.einsum("bij,bjhd->bihd", below, k)), jnp.sum(below, axis=(1, 2))
    return jnp.stack([_mean(*diagonal), _mean(*lower)], axis=-1)


def _mean(total: Float[Array, "B H"], count: Float[Array, " B"]) -> Float[Array, "B H"]:
    return jnp.where(count == 0, jnp.nan, (total.T / jnp.maximum(count, 1))).T
