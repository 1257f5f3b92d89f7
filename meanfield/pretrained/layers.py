"""Shared parts of every family, in flax: linear maps in the checkpoints' layout (out, in), norms, MLPs; what all blocks see."""

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
