"""Shared parts of every family, in flax: linear maps in the checkpoints' layout (out, in), norms, MLPs, attention."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Bool, Float, Int
from .spec import Spec

_ACTIVATIONS = {
    "gelu": lambda z: jax.nn.gelu(z, approximate=False),
    "gelu_new": jax.nn.gelu,
    "gelu_pytorch_tanh": jax.nn.gelu,
    "gelu_fast": jax.nn.gelu,
    "silu": jax.nn.silu,
    "swish": jax.nn.silu,
    "relu": jax.nn.relu,
}
ACTIVATIONS = tuple(_ACTIVATIONS)


def activation(name: str):
    """The activation of that name in Hugging Face's spelling ("gelu" is the exact one, "gelu_new" the tanh form)."""
    return _ACTIVATIONS[name]


class Context(NamedTuple):
    """What every block sees besides the stream: positions (B, n), allowed pairs (B, n, n), rotary tables (n, dim/2) by position."""

    positions: Int[Array, "B n"]
    allowed: Bool[Array, "B n n"]
    cos: Float[Array, "n f"] | None
    sin: Float[Array, "n f"] | None


def context(spec: Spec, mask: Bool[Array | np.ndarray, "B n"], dtype: np.dtype) -> Context:
    """Positions count real tokens only, so that left padding changes nothing."""
    n = mask.shape[1]
    positions = jnp.maximum(jnp.cumsum(mask.astype(jnp.int32), axis=1, dtype=jnp.int32) - 1, 0)
    i = np.arange(n)
    causal = i[:, None] >= i[None, :]
    if spec.window is not None:
        causal &= i[:, None] - i[None, :] < spec.window
    allowed = jnp.asarray(causal) & mask[:, None, :] & mask[:, :, None]
    if spec.rotary is None:
        return Context(positions, allowed, None, None)
    angles = i[:, None] * spec.rotary.frequencies()
    return Context(positions, allowed, jnp.asarray(np.cos(angles), dtype), jnp.asarray(np.sin(angles), dtype))


class Linear(nn.Module):
    """y = x Wᵀ + b with W (features, in), as checkpoints store it."""

    features: int
    bias: bool

    @nn.compact
    def __call__(self, x):
        weight = self.param("weight", nn.initializers.normal(0.02), (self.features, x.shape[-1]), x.dtype)
        y = x @ weight.astype(x.dtype).T
        if self.bias:
            y = y + self.param("bias", nn.initializers.zeros_init(), (self.features,), x.dtype).astype(x.dtype)
        return y


class Norm(nn.Module):
    """LayerNorm (x − mean)/√(var + eps) γ + b, or RMSNorm x/√(mean x² + eps) γ."""

    spec: Spec

    @nn.compact
    def __call__(self, x):
        gain = self.param("scale", nn.initializers.ones_init(), (x.shape[-1],), x.dtype).astype(x.dtype)
        y = centred(self.spec, x) / norm_scale(self.spec, x)[..., None] * gain
        if self.spec.norm_bias:
            y = y + self.param("bias", nn.initializers.zeros_init(), (x.shape[-1],), x.dtype).astype(x.dtype)
        return y


def centred(spec: Spec, x: Float[Array, "*b D"]) -> Float[Array, "*b D"]:
    """What a norm divides: x, less its mean for LayerNorm."""
    return x - jnp.mean(x, axis=-1, keepdims=True) if spec.norm == "layer" else x


def norm_scale(spec: Spec, x: Float[Array, "*b D"]) -> Float[Array, "*b"]:
    """r = √(mean x² + eps) (of the centred x for LayerNorm): what the norm divides by."""
    return jnp.sqrt(jnp.mean(centred(spec, x) ** 2, axis=-1) + spec.eps)


class MLP(nn.Module):
    """W_down f(W_up x), or gated W_down (f(W_gate x) ∘ W_up x)."""

    spec: Spec

    @nn.compact
    def __call__(self, x):
        spec = self.spec
        up = Linear(spec.hidden, spec.mlp_bias, name="up")(x)
        if spec.gated:
            up = activation(spec.activation)(Linear(spec.hidden, spec.mlp_bias, name="gate")(x)) * up
        else:
            up = activation(spec.activation)(up)
        return Linear(spec.dim, spec.mlp_bias, name="down")(up)


class Heads(NamedTuple):
    """Inside of one attention: q, k, v (B, n, H, head_dim) with grouped heads repeated; scores, the scaled logits without additive
    bias, and probs, (B, H, n, n)."""

    q: Float[Array, "B n H h"]
    k: Float[Array, "B n H h"]
    v: Float[Array, "B n H h"]
    scores: Float[Array, "B H n n"]
    probs: Float[Array, "B H n n"]


class Attention(nn.Module):
    """Causal attention with grouped queries; returns the attention contribution a and its Heads."""

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
        scores = jnp.einsum("bihd,bjhd->bhij", q, k) * scale
        probs = masked_softmax(scores + alibi_bias(spec, where.positions, x.dtype), where.allowed[:, None])
        mixed = jnp.einsum("bhij,bjhd->bihd", probs, v)
        out = Linear(spec.dim, spec.out_bias, name="out")(mixed.reshape(*x.shape[:2], -1))
        return out, Heads(q, k, v, scores, probs)

    def _project(self, x, name: str, heads: int):
        y = Linear(heads * self.spec.head_dim, self.spec.qkv_bias, name=name)(x)
        if self.spec.clip is not None:
            y = jnp.clip(y, -self.spec.clip, self.spec.clip)
        return y.reshape(*x.shape[:2], heads, self.spec.head_dim)


def rotate(x: Float[Array, "B n H h"], where: Context) -> Float[Array, "B n H h"]:
    """Rotary embedding, half-split, of the leading coordinates; the rest pass through."""
    half = where.cos.shape[-1]
    cos, sin = where.cos[where.positions][:, :, None], where.sin[where.positions][:, :, None]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)


def alibi_bias(spec: Spec, positions: Int[Array, "B n"], dtype: np.dtype) -> Float[Array, "B H _ n"] | float:
    """−m_h (i − j), or Falcon's m_h j with bfloat16 rounding (equal to it in the softmax but for the rounding)."""
    if spec.alibi is None:
        return 0.0
    if spec.alibi.rounded:
        slopes = _bfloat16(jnp.asarray(spec.alibi.slopes(spec.heads), dtype))
        product = _bfloat16(slopes[None, :, None] * _bfloat16(positions[:, None, :].astype(dtype)))
        return product[:, :, None, :] * (spec.scale if spec.alibi.scaled else 1.0)
    distance = (positions[:, :, None] - positions[:, None, :]).astype(dtype)
    return -jnp.asarray(spec.alibi_slopes, dtype)[None, :, None, None] * distance[:, None]


def _bfloat16(x: Float[Array, "*b"]) -> Float[Array, "*b"]:
    # A pair of casts would not do: XLA may elide it.
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)


def masked_softmax(logits: Float[Array, "*b n"], allowed: Bool[Array, "*c n"]) -> Float[Array, "*b n"]:
    """Softmax over the allowed entries; exactly 0 elsewhere, and 0 in rows without any (finite gradients there too)."""
    logits = jnp.where(allowed, logits, jnp.finfo(logits.dtype).min / 2)
    return jnp.where(allowed, jax.nn.softmax(logits, axis=-1), jnp.zeros((), logits.dtype))
