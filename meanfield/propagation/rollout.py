"""Rollout of attention with residuals: P = R^(T) … R^(1), R^(t) = (1 − λ_t) I + λ_t A^(t)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._products import matmul
from ._inputs import Numbers, check_length, check_range, floating, is_concrete
from .architecture import Architecture
from .attention import attention_rows, check_fits


def rollout(attention: Numbers, mixing: Numbers, normalize: bool = False) -> Float[Array, "n n"]:
    """P = R^(T) … R^(1), R^(t) = (1 − mixing_t) I + mixing_t attention_t (arXiv 2005.00928, 2602.16837).

    Args:
        attention: (T, n, n), first layer first, rows summing to 1 (rows of zeros are padding).
        mixing: (T,) in [0, 1].
        normalize: divide each row of every R^(t) by its sum, for attention whose rows do not sum to 1.

    Raises:
        ValueError: when shapes are others, mixing is outside [0, 1], attention is negative, or rows do not sum to 1
            while normalize=False.

    Examples:
        >>> a = np.float32([[[1, 0], [0.5, 0.5]]])
        >>> print(mf.propagation.rollout(a, [0.5]))
        [[1.   0.  ]
         [0.25 0.75]]
    """
    attention = floating(attention)
    mixing = floating(mixing, attention.dtype)
    if attention.ndim != 3 or attention.shape[1] != attention.shape[2]:
        raise ValueError(f"attention has shape {attention.shape}: give (T, n, n); average heads first, see fuse_heads")
    if mixing.shape != attention.shape[:1]:
        raise ValueError(
            f"mixing has shape {mixing.shape}, attention {attention.shape[0]} layers: give one coefficient each"
        )
    check_range("mixing", mixing, 0.0, 1.0, "a mixing coefficient is a share of the layer's output")
    check_range("attention", attention, 0.0, np.inf, "attention is non-negative")
    if is_concrete(attention) and not normalize:
        sums = np.asarray(attention.sum(-1))
        off = (np.abs(sums - 1) > 1e-2) & (sums != 0)
        if off.any():
            t, i = (int(k) for k in np.argwhere(off)[0])
            raise ValueError(
                f"attention[{t}] row {i} sums to {sums[t, i]:.4g}, not 1: normalise its rows, or normalize=True"
            )
    return _rollout(attention, mixing, normalize)


@eqx.filter_jit
def _rollout(attention: Float[Array, "T n n"], mixing: Float[Array, " T"], normalize: bool) -> Float[Array, "n n"]:
    identity = jnp.eye(attention.shape[-1], dtype=attention.dtype)

    def layer(product: Array, x: tuple) -> tuple[Array, None]:
        a, mix = x
        residual = (1 - mix) * identity + mix * a
        if normalize:
            residual = normalize_rows(residual)
        return matmul(residual, product), None

    return jax.lax.scan(layer, identity, (attention, mixing))[0]


def propagate(arch: Architecture, length: int) -> Float[Array, "n n"]:
    """P (length, length) of an architecture: row i is how much each input position influences position i at the top.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> print(np.round(mf.propagation.propagate(arch, 3), 3))
        [[1.         0.         0.        ]
         [0.25100002 0.749      0.        ]
         [0.09900001 0.208      0.693     ]]
    """
    length = check_length(length)
    check_fits(arch, length)
    return _propagate(arch, length)


@eqx.filter_jit
def _propagate(arch: Architecture, length: int) -> Float[Array, "n n"]:
    identity = jnp.eye(length, dtype=arch.mixing.dtype)
    rows = jnp.arange(length)
    every = attention_rows(arch, jnp.asarray(0), rows, length) if arch.content.depth is None else None

    def layer(product: Array, x: tuple) -> tuple[Array, None]:
        t, mix = x
        a = every if every is not None else attention_rows(arch, t, rows, length)
        return (1 - mix) * product + mix * matmul(a, product), None

    return jax.lax.scan(layer, identity, (jnp.arange(arch.depth), arch.mixing))[0]


def normalize_rows(matrix: Numbers) -> Float[Array, "*batch n m"]:
    """Each row over its own sum; rows of zeros stay zero, with finite gradients.

    Source: arXiv 2005.00928.

    Examples:
        >>> print(mf.propagation.normalize_rows([[1.0, 3.0], [0.0, 0.0]]))
        [[0.25 0.75]
         [0.   0.  ]]
    """
    matrix = floating(matrix)
    sums = matrix.sum(-1, keepdims=True)
    return jnp.where(sums > 0, matrix / jnp.where(sums > 0, sums, 1), 0)


def fuse_heads(attention: Numbers, how: str = "mean") -> Float[Array, "*batch n n"]:
    """One matrix from the heads of (…, H, n, n): their mean, or their elementwise "max" or "min" with rows normalised again.

    Source: arXiv 2005.00928.

    Examples:
        >>> heads = np.float32([[[1, 0], [1, 0]], [[1, 0], [0, 1]]])
        >>> print(mf.propagation.fuse_heads(heads)[1])
        [0.5 0.5]
    """
    attention = floating(attention)
    if attention.ndim < 3:
        raise ValueError(
            f"attention has shape {attention.shape}: give heads in the third axis from the end, (…, H, n, n)"
        )
    if how not in ("mean", "max", "min"):
        raise ValueError(f"how = {how!r} is unknown: use 'mean', 'max' or 'min'")
    if how == "mean":
        return attention.mean(-3)
    return normalize_rows(attention.max(-3) if how == "max" else attention.min(-3))


def discard_small(attention: Numbers, threshold: float) -> Float[Array, "*batch m n"]:
    """Entries ≤ threshold set to 0; roll the result out with normalize=True.

    Source: arXiv 2005.00928.

    Examples:
        >>> print(mf.propagation.discard_small([[0.75, 0.125, 0.125]], threshold=0.2))
        [[0.75 0.   0.  ]]
    """
    attention = floating(attention)
    return jnp.where(attention > threshold, attention, 0)
