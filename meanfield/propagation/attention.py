"""Attention matrices of an architecture, in rows: the general form every fast path is tested against."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ._inputs import check_index, check_length, is_concrete
from .architecture import Architecture
from .biases import ALiBi, NoBias
from .masks import Causal, Full, PrefixLM, Window


def attention(arch: Architecture, layer: int | Array, length: int) -> Float[Array, "n n"]:
    """Σ_h head_weights_h softmax_j≤allowed[(content_ij + bias_h(i − j))/temperature], (length, length).

    Args:
        layer: 0 … T − 1 (negative: from the end).
        length: n.

    Raises:
        ValueError: when layer or length is another, and when a mask empties a row.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> print(np.round(mf.propagation.attention(arch, layer=0, length=3), 3))
        [[1.         0.         0.        ]
         [0.26900002 0.731      0.        ]
         [0.09       0.245      0.665     ]]
    """
    length = check_length(length)
    layer = check_index("layer", layer, arch.depth)
    check_fits(arch, length)
    return _attention(arch, jnp.asarray(layer), length)


@eqx.filter_jit
def _attention(arch: Architecture, layer: Int[Array, ""], length: int) -> Float[Array, "n n"]:
    return attention_rows(arch, layer, jnp.arange(length), length)


def attention_rows(
    arch: Architecture, layer: Int[Array, ""], rows: Int[Array, " r"], length: int
) -> Float[Array, "r n"]:
    """The rows `rows` of the head-averaged attention of one layer, one head at a time."""
    i, j = jnp.broadcast_arrays(rows[:, None], jnp.arange(length)[None, :])
    dtype = arch.mixing.dtype
    bias = arch.bias((i - j).astype(dtype))
    bias = jnp.broadcast_to(bias, (1,) * (3 - bias.ndim) + bias.shape)
    content = arch.content(layer, i, j)
    allowed = arch.mask(i, j)

    def head(total: Array, x: tuple) -> tuple[Array, None]:
        h, weight = x
        logits = bias[jnp.minimum(h, bias.shape[0] - 1)] + content[jnp.minimum(h, content.shape[0] - 1)]
        logits = jnp.where(allowed, logits.astype(dtype) / arch.temperature, -jnp.inf)
        return total + weight * jax.nn.softmax(logits, axis=-1), None

    total, _ = jax.lax.scan(head, jnp.zeros(i.shape, dtype), (jnp.arange(arch.num_heads), arch.head_weights))
    return total


def check_fits(arch: Architecture, length: int) -> None:
    """Refuses content of another length, a bias of a wrong shape, and a mask that leaves a row without a key."""
    if not isinstance(arch, Architecture):
        raise ValueError(f"arch is {arch!r}: pass an Architecture; a published model is pp.preset(name)")
    fits = arch.content.length
    if fits is not None and fits != length:
        raise ValueError(
            f"length = {length}, but the content logits are for {fits} tokens: ask for {fits} or give others"
        )
    own = isinstance(arch.bias, (ALiBi, NoBias))  # known to fit, and their profiles take milliseconds
    shape = (2, 3) if own else jax.eval_shape(arch.bias, jax.ShapeDtypeStruct((2, 3), arch.mixing.dtype)).shape
    if shape not in ((2, 3), (1, 2, 3), (arch.num_heads, 2, 3)):
        raise ValueError(
            f"bias maps distances of shape (2, 3) to {shape}: return one logit per distance, or (H, *shape)"
        )
    if isinstance(arch.mask, (Causal, Full, Window, PrefixLM)):
        return
    with jax.ensure_compile_time_eval():
        for first in range(0, length, 1024):
            rows = jnp.arange(first, min(first + 1024, length))
            seen = arch.mask(rows[:, None], jnp.arange(length)[None, :])
            seen = jnp.broadcast_to(seen, (rows.shape[0], length)).any(-1)
            if is_concrete(seen) and not np.asarray(seen).all():
                row = first + int(np.argmin(np.asarray(seen)))
                raise ValueError(
                    f"mask leaves row {row} of {length} without a key: let every token see at least itself"
                )
