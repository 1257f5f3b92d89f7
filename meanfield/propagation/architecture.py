"""Architecture: everything the propagation of influence depends on."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import as_array
from ._inputs import Numbers, check_range, floating, is_concrete
from .biases import AbstractBias, ALiBi, DistanceBias, NoBias
from .content import AbstractContent, Diagonal
from .masks import AbstractMask, as_mask


class Architecture(eqx.Module):
    """A transformer as the structural theory of position bias sees it (arXiv 2602.16837).

    Layer t mixes R^(t) = (1 − mixing_t) I + mixing_t Σ_h head_weights_h A^(t,h), where A^(t,h) is the softmax over the keys that the
    mask allows of (content^(t,h)_ij + bias_h(i − j)) / temperature.

    Parameters take mixing's floating dtype.

    Args:
        mixing: λ_t ∈ [0, 1], (T,), first layer first.
        slopes: ALiBi slopes ≥ 0, (H,); None for no position bias.
        diagonal: how far a token's logit with itself stands out: scalar, (T,) or (T, H).
        mask: "causal", "full", "window" (with window=w: itself and the w − 1 before it), "prefix" (with prefix=k: the
            first k see each other), or a mask object.
        head_weights: (H,), ≥ 0, relative (normalised to sum 1); one score, scalar or (1,), goes to every head; default
            equal.
        bias: a position bias in place of the slopes: an object of `biases.py`, or a callable of i − j.
        content: an object of `content.py` in place of `diagonal`.
        temperature: of the softmax, > 0.

    Raises:
        ValueError: when an argument does not fit, naming the argument, its value and the remedy.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> arch.depth, arch.num_heads
        (2, 1)
        >>> print(f"{mf.propagation.profile(arch, 6).sum():.4f}")
        1.0000
    """

    mixing: Float[Array, " T"]
    bias: AbstractBias
    content: AbstractContent
    mask: AbstractMask
    head_weights: Float[Array, " H"]
    temperature: Float[Array, ""]

    def __init__(
        self,
        mixing: Numbers,
        slopes: Numbers | None = None,
        diagonal: Numbers = 0.0,
        mask: str | AbstractMask = "causal",
        window: int | None = None,
        prefix: int = 0,
        head_weights: Numbers | None = None,
        bias: AbstractBias | Callable | None = None,
        temperature: Numbers = 1.0,
        content: AbstractContent | None = None,
    ):
        self.mixing = floating(as_array(mixing, "mixing") if isinstance(mixing, np.ndarray) else mixing)
        if self.mixing.ndim != 1 or self.mixing.size == 0:
            raise ValueError(f"mixing has shape {self.mixing.shape}: give one coefficient per layer, (T,)")
        check_range("mixing", self.mixing, 0.0, 1.0, "a mixing coefficient is a share of the layer's output")
        dtype = self.mixing.dtype
        self.mask = as_mask(mask, window, prefix)
        self.bias = _cast(_bias(slopes, bias, dtype), dtype)
        self.content = _cast(_content(diagonal, content, dtype), dtype)
        self.temperature = floating(temperature, dtype)
        if self.temperature.ndim != 0:
            raise ValueError(f"temperature has shape {self.temperature.shape}: give one number")
        check_range("temperature", self.temperature, 1e-30, np.inf, "a softmax temperature is > 0")
        depth = self.content.depth
        if depth is not None and depth != self.depth:
            raise ValueError(
                f"diagonal or content has {depth} layers, mixing has {self.depth}: give (T,), (T, H) of this T"
            )
        self.head_weights = _head_weights(head_weights, self.bias.num_heads, self.content.num_heads, dtype)

    @property
    def depth(self) -> int:
        """T, the number of layers."""
        return self.mixing.shape[-1]

    @property
    def num_heads(self) -> int:
        """H, the number of heads."""
        return self.head_weights.shape[-1]


def _bias(slopes: Numbers | None, bias: AbstractBias | Callable | None, dtype: np.dtype) -> AbstractBias:
    if bias is not None and slopes is not None:
        raise ValueError(
            f"slopes and bias = {bias!r} are both given: bias stands in place of the slopes, pass slopes=None"
        )
    if bias is None:
        return NoBias() if slopes is None else ALiBi(floating(slopes, dtype))
    if isinstance(bias, AbstractBias):
        return bias
    if callable(bias):
        return DistanceBias(bias)
    raise ValueError(f"bias = {bias!r} is neither a position bias nor a callable of the distance i − j")


def _content(diagonal: Numbers, content: AbstractContent | None, dtype: np.dtype) -> AbstractContent:
    if content is None:
        return Diagonal(floating(diagonal, dtype))
    if not isinstance(content, AbstractContent):
        raise ValueError(f"content = {content!r} must be an AbstractContent: Diagonal, Logits or your own")
    if isinstance(diagonal, (int, float)) and diagonal == 0:
        return content
    raise ValueError("diagonal and content are both given: content stands in place of the diagonal, leave diagonal=0.0")


def _cast(module: eqx.Module, dtype: np.dtype) -> eqx.Module:
    arrays, rest = eqx.partition(module, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(lambda leaf: leaf.astype(dtype), arrays), rest)


def _head_weights(weights: Numbers | None, of_bias: int | None, of_content: int | None, dtype: np.dtype) -> Array:
    """(H,), summing to one, H read off whichever piece knows it."""
    counts = {k for k in (of_bias, of_content) if k is not None and k > 1}
    if len(counts) > 1:
        raise ValueError(
            f"slopes or bias have {of_bias} heads, diagonal or content {of_content}: they must agree (or be 1)"
        )
    heads = counts.pop() if counts else 1
    if weights is None:
        return jnp.full((heads,), 1 / heads, dtype)
    array = jnp.atleast_1d(floating(weights, dtype))
    if array.ndim != 1 or (heads > 1 and array.size not in (1, heads)):
        raise ValueError(
            f"head_weights has shape {array.shape}: give ({heads},), one weight per head, or one score for all"
        )
    check_range("head_weights", array, 0.0, np.inf, "weights of heads are finite and ≥ 0")
    if is_concrete(array) and not np.asarray(array).sum() > 0:
        raise ValueError(f"head_weights = {np.asarray(array)} sum to 0: at least one head must count")
    array = jnp.broadcast_to(array, (max(heads, array.size),))
    return array / array.sum()
