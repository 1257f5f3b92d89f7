"""What a decoder-only language model is made of, independent of where its weights come from."""

import dataclasses
import math
from typing import Literal

import numpy as np

Wiring = Literal["sequential", "parallel", "parallel-shared", "post-norm"]


@dataclasses.dataclass(frozen=True)
class Alibi:
    """Linear position bias −m_h (i − j).

    `bias_max` b sets the slopes m_h = 2^{−b (h+1)/H} (H a power of two). `scaled`: the bias is divided by √head_dim with
    the logits (Falcon). `rounded`: slope and slope·j are rounded to bfloat16, as Falcon's own code does.
    """

    bias_max: float | int = 8.0
    scaled: bool = False
    rounded: bool = False

    def slopes(self, heads: int) -> np.ndarray:
        """Positive slopes (heads,), in float64."""
        power = 2 ** math.ceil(math.log2(heads))
        slopes = 2.0 ** (-self.bias_max * np.arange(1, power + 1) / power)
        if power != heads:
            slopes = np.concatenate([slopes[1::2], slopes[::2]])[:heads]
        return slopes


@dataclasses.dataclass(frozen=True)
class Rotary:
    """Rotary embedding of the first `dim` coordinates of a head, half-split; angle = position · base^{−2k/dim}.

    `scaling`: ("default",), ("linear", factor) or ("llama3", factor, low, high, original_length); `factors` divide the
    frequencies one by one (the `rope_freqs` tensor of GGUF files).
    """

    dim: int
    base: float | int = 10000.0
    scaling: tuple = ("default",)
    factors: tuple[float, ...] | None = None

    def frequencies(self) -> np.ndarray:
        """Angular frequencies (dim // 2,), in float64."""
        omega = self.base ** (-np.arange(0, self.dim, 2) / self.dim)
        if self.factors is not None:
            return omega / np.asarray(self.factors)
        if self.scaling[0] == "linear":
            return omega / self.scaling[1]
        if self.scaling[0] == "llama3":
            _, factor, low, high, length = self.scaling
            turns = length * omega / (2 * np.pi)
            smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
            return (1 - smooth) * omega / factor + smooth * omega
        return omega


@dataclasses.dataclass(frozen=True)
class Spec:
    """Sizes and conventions of a model; everything that shapes its computation, nothing learned.

    `wiring`: "sequential" x + a, then + m(norm(x + a)); "parallel" x + a + m(norm₂ x); "parallel-shared" x + a + m(norm₁ x);
    "post-norm" BLOOM's apply_residual_connection_post_layernorm. `hidden` is the width of the MLP. `scale` multiplies q·k,
    over (layer + 1) where `scale_by_depth`. `clip` clamps q, k, v. `window`: self and window − 1 previous tokens.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> spec.layers, spec.alibi_slopes.shape
        (2, (2,))
    """

    family: str
    vocab: int
    layers: int
    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    eps: float
    scale: float
    norm: Literal["layer", "rms"] = "layer"
    norm_bias: bool = True
    activation: str = "gelu"
    gated: bool = False
    qkv_bias: bool = True
    out_bias: bool = True
    mlp_bias: bool = True
    wiring: Wiring = "sequential"
    alibi: Alibi | None = None
    rotary: Rotary | None = None
    positions: int | None = None
    embedding_norm: bool = False
    tied: bool = True
    clip: float | None = None
    window: int | None = None
    scale_by_depth: bool = False

    @property
    def group(self) -> int:
        """Query heads that share one key and value head."""
        return self.heads // self.kv_heads

    @property
    def alibi_slopes(self) -> np.ndarray | None:
        """Slopes as they enter the softmax (Falcon's 1/√head_dim included), or None."""
        if self.alibi is None:
            return None
        slopes = self.alibi.slopes(self.heads)
        return slopes * self.scale if self.alibi.scaled else slopes
