"""Position biases: what the distance i − j adds to an attention logit. Each is an object; any callable of i − j is one."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._types import AnyArray
from ._inputs import Numbers, check_range, floating


class AbstractBias(eqx.Module):
    """bias(distance) for distance = i − j (signed, floating): the shape of distance, or (H, *distance.shape).

    Examples:
        >>> print(mf.propagation.ALiBi([0.5])(jnp.arange(3.0)))  # a bias of every distance i − j
        [[-0.  -0.5 -1. ]]
    """

    @abc.abstractmethod
    def __call__(self, distance: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """The logit added at i − j = distance."""

    @property
    @abc.abstractmethod
    def num_heads(self) -> int | None:
        """H, or None for a bias that every head shares."""


class NoBias(AbstractBias):
    """0: position enters through the mask only.

    Examples:
        >>> print(mf.propagation.NoBias()(jnp.arange(3.0)))
        [0. 0. 0.]
    """

    def __call__(self, distance: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """0."""
        return jnp.zeros_like(distance)

    @property
    def num_heads(self) -> int | None:
        """None: every head is alike."""
        return None


class ALiBi(AbstractBias):
    """−slopes_h |i − j| (arXiv 2108.12409).

    Args:
        slopes: (H,), finite and ≥ 0.

    Raises:
        ValueError: when a slope is negative.

    Examples:
        >>> print(mf.propagation.ALiBi([0.5, 0.25])(jnp.arange(3.0)))
        [[-0.   -0.5  -1.  ]
         [-0.   -0.25 -0.5 ]]
    """

    slopes: Float[Array, " H"]

    def __init__(self, slopes: Numbers):
        self.slopes = jnp.atleast_1d(floating(slopes))
        if self.slopes.ndim != 1 or self.slopes.size == 0:
            raise ValueError(f"slopes has shape {self.slopes.shape}: give one slope per head, (H,)")
        check_range(
            "slopes", self.slopes, 0.0, np.inf, "ALiBi slopes are finite and ≥ 0; a penalty grows with distance"
        )

    def __call__(self, distance: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """−slopes_h |distance|."""
        return -self.slopes.reshape((-1,) + (1,) * distance.ndim) * jnp.abs(distance)

    @property
    def num_heads(self) -> int | None:
        """H."""
        return self.slopes.shape[0]


class RotaryDecay(AbstractBias):
    """log (2/dim)|Σ_{k<dim/2} exp(i·distance·base^{−2k/dim})|, floored at −30: a model of RoPE's long-term decay, not RoPE.

    Source: arXiv 2104.09864.

    Examples:
        >>> print(np.round(mf.propagation.RotaryDecay(dim=8)(jnp.asarray([0.0, 1.0, 10.0])), 3))
        [ 0.         -0.08800001 -0.83000004]
    """

    base: float = eqx.field(static=True, default=10000.0)
    dim: int = eqx.field(static=True, default=128)

    def __check_init__(self):
        if self.dim < 2 or self.dim % 2:
            raise ValueError(f"dim = {self.dim} must be even and ≥ 2: RoPE rotates pairs of coordinates")
        if not self.base > 0:
            raise ValueError(f"base = {self.base} must be > 0; RoPE's own is 10000")

    def __call__(self, distance: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """The logarithm of the mean rotation's modulus."""
        frequencies = jnp.asarray(self.base ** (-2.0 * np.arange(self.dim // 2) / self.dim), distance.dtype)
        angles = distance[..., None] * frequencies
        square = jnp.mean(jnp.cos(angles), -1) ** 2 + jnp.mean(jnp.sin(angles), -1) ** 2
        floor = float(np.exp(-60.0))  # of the squared modulus
        return 0.5 * jnp.log(jnp.maximum(square, floor))

    @property
    def num_heads(self) -> int | None:
        """None: every head is alike."""
        return None


class T5Buckets(AbstractBias):
    """table[h, bucket(i − j)] with T5's causal buckets (arXiv 1910.10683).

    Of B buckets the first B/2 hold the distances 0, 1, …, B/2 − 1, the others are spaced by logarithm up to max_distance; farther
    tokens, and tokens ahead (distance < 0), share the last and the first bucket.

    Args:
        table: (H, B), B even (32 in T5).
        max_distance: 128 in T5.

    Examples:
        >>> bias = mf.propagation.T5Buckets(np.arange(8.0, dtype=np.float32)[None], max_distance=16)
        >>> print(bias.bucket(jnp.asarray([0.0, 1.0, 3.0, 4.0, 100.0])))
        [0 1 3 4 7]
    """

    table: Float[Array, "H B"]
    max_distance: int = eqx.field(static=True)

    def __init__(self, table: Numbers, max_distance: int = 128):
        self.table = floating(table)
        self.max_distance = max_distance
        if self.table.ndim != 2 or self.table.shape[1] < 2 or self.table.shape[1] % 2:
            raise ValueError(
                f"table has shape {self.table.shape}: give (heads, buckets) with an even number of buckets"
            )
        if max_distance <= self.table.shape[1] // 2:
            raise ValueError(f"max_distance = {max_distance} must exceed buckets/2 = {self.table.shape[1] // 2}")
        check_range("table", self.table, -np.inf, np.inf, "biases must be finite")

    def bucket(self, distance: Float[AnyArray, "..."]) -> Array:
        """The bucket of each distance, int."""
        buckets = self.table.shape[1]
        exact = buckets // 2
        behind = jnp.maximum(jnp.round(distance), 0)
        far = jnp.log(jnp.maximum(behind, exact) / exact) / np.log(self.max_distance / exact) * (buckets - exact)
        # An exact power of the ratio must not fall into the bucket below by rounding.
        far = exact + jnp.floor(far + 64 * jnp.finfo(distance.dtype).eps).astype(int)
        return jnp.where(behind < exact, behind.astype(int), jnp.minimum(far, buckets - 1))

    def __call__(self, distance: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """table[h, bucket(distance)]."""
        return self.table[:, self.bucket(distance)]

    @property
    def num_heads(self) -> int | None:
        """H."""
        return self.table.shape[0]


class DistanceBias(AbstractBias):
    """Any callable pytree of i − j that returns one number per distance (every head shares it).

    Examples:
        >>> print(mf.propagation.DistanceBias(lambda distance: -jnp.sqrt(distance))(jnp.asarray([0.0, 4.0])))
        [-0. -2.]
    """

    fn: object

    def __call__(self, distance: Float[AnyArray, "..."]) -> Float[Array, "..."]:
        """fn(distance)."""
        return self.fn(distance)

    @property
    def num_heads(self) -> int | None:
        """None: every head is alike."""
        return None


def alibi_slopes(num_heads: int, convention: str = "checkpoint", bias_max: float = 8.0) -> Float[Array, " H"]:
    """ALiBi's slopes of `num_heads` heads, (H,).

    For H a power of two slopes_h = 2^{−bias_max (h+1)/H}. Otherwise, with c the largest power of two below H: the slopes of c heads,
    then of 2c heads those at places 1, 3, 5, … (1-based), H − c of them. convention="published" applies the first formula to every H,
    as the tables of arXiv 2602.16837 do. bias_max is MPT's `alibi_bias_max`.

    Examples:
        >>> print(mf.propagation.alibi_slopes(4))
        [0.25       0.0625     0.015625   0.00390625]
    """
    if isinstance(num_heads, bool) or not isinstance(num_heads, int) or num_heads < 1:
        raise ValueError(f"num_heads = {num_heads!r} must be an integer ≥ 1")
    if convention not in ("checkpoint", "published"):
        raise ValueError(f"convention = {convention!r} is unknown: use 'checkpoint' or 'published'")
    if not bias_max > 0:
        raise ValueError(f"bias_max = {bias_max} must be > 0 (8 in BLOOM and Falcon, `alibi_bias_max` in MPT)")
    c = num_heads if convention == "published" else 2 ** (num_heads.bit_length() - 1)
    first = 2.0 ** (-bias_max * np.arange(1, c + 1) / c)
    others = 2.0 ** (-bias_max * np.arange(1, 2 * c + 1, 2) / (2 * c))
    return jnp.asarray(np.concatenate([first, others[: num_heads - c]]).astype(jnp.zeros(()).dtype))
