"""Content: what the tokens themselves add to the attention logits, coarsely. Subclass `AbstractContent` for your own."""

import abc

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._types import AnyArray
from ._inputs import Numbers, check_range, floating


class AbstractContent(eqx.Module):
    """content(layer, i, j): logits of layer `layer` for broadcast positions i, j; shape (1, *shape) or (H, *shape).

    Examples:
        >>> mf.propagation.Diagonal([1.0, 2.0]).depth  # a content knows its depth, heads and length, or None
        2
    """

    @abc.abstractmethod
    def __call__(
        self, layer: Int[Array, ""] | int, i: Int[AnyArray, "..."], j: Int[AnyArray, "..."]
    ) -> Float[Array, "h ..."]:
        """The logits of one layer."""

    @property
    @abc.abstractmethod
    def depth(self) -> int | None:
        """T, or None where every layer has the same content."""

    @property
    @abc.abstractmethod
    def num_heads(self) -> int | None:
        """H, or None where every head has the same content."""

    @property
    @abc.abstractmethod
    def length(self) -> int | None:
        """The only context length it fits, or None for any."""


class Diagonal(AbstractContent):
    """base + diagonal δ_ij: a token's logit with itself stands out by `diagonal`; base cancels in the softmax.

    Args:
        diagonal: scalar, (T,), or (T, H) with T or H possibly 1.
        base: scalar.

    Examples:
        >>> i, j = jnp.indices((2, 2))
        >>> print(mf.propagation.Diagonal(1.5)(0, i, j)[0])
        [[1.5 0. ]
         [0.  1.5]]
    """

    diagonal: Float[Array, "*shape"]
    base: Float[Array, ""]

    def __init__(self, diagonal: Numbers, base: Numbers = 0.0):
        self.diagonal = floating(diagonal)
        self.base = floating(base, self.diagonal.dtype)
        if self.diagonal.ndim > 2:
            raise ValueError(f"diagonal has shape {self.diagonal.shape}: give a scalar, (T,) or (T, H)")
        check_range("diagonal", self.diagonal, -np.inf, np.inf, "content logits must be finite")

    @property
    def table(self) -> Float[Array, "T H"]:
        """diagonal as (T, H), with 1 where layers or heads share it."""
        return self.diagonal.reshape(self.diagonal.shape + (1,) * (2 - self.diagonal.ndim))

    def __call__(
        self, layer: Int[Array, ""] | int, i: Int[AnyArray, "..."], j: Int[AnyArray, "..."]
    ) -> Float[Array, "h ..."]:
        """base + diagonal[layer] δ_ij."""
        table = self.table
        row = table[0] if table.shape[0] == 1 else table[layer]
        same = i == j
        return self.base + jnp.where(same, row.reshape((-1,) + (1,) * same.ndim), 0)

    @property
    def depth(self) -> int | None:
        """T, or None for one row."""
        return None if self.table.shape[0] == 1 else self.table.shape[0]

    @property
    def num_heads(self) -> int | None:
        """H, or None for one column."""
        return None if self.table.shape[1] == 1 else self.table.shape[1]

    @property
    def length(self) -> int | None:
        """None: fits any context."""
        return None


class Logits(AbstractContent):
    """Full logits, for instance measured ones: matrix (n, n), (T, n, n) or (T, H, n, n), before mask and position bias.

    Examples:
        >>> content = mf.propagation.Logits(np.zeros((2, 3, 4, 4), np.float32))
        >>> content.depth, content.num_heads, content.length
        (2, 3, 4)
    """

    matrix: Float[Array, "T H n n"]

    def __init__(self, matrix: Numbers):
        matrix = floating(matrix)
        if matrix.ndim not in (2, 3, 4) or matrix.shape[-1] != matrix.shape[-2]:
            raise ValueError(f"content logits have shape {matrix.shape}: give (n, n), (T, n, n) or (T, H, n, n)")
        check_range("content logits", matrix, -np.inf, np.inf, "logits must be finite; leave masking to the mask")
        leading = {2: (1, 1), 3: (matrix.shape[0], 1), 4: matrix.shape[:2]}[matrix.ndim]
        self.matrix = matrix.reshape(leading + matrix.shape[-2:])

    def __call__(
        self, layer: Int[Array, ""] | int, i: Int[AnyArray, "..."], j: Int[AnyArray, "..."]
    ) -> Float[Array, "h ..."]:
        """matrix[layer, :, i, j]."""
        matrix = self.matrix[0] if self.matrix.shape[0] == 1 else self.matrix[layer]
        return matrix[:, i, j]

    @property
    def depth(self) -> int | None:
        """T, or None for one layer's logits."""
        return None if self.matrix.shape[0] == 1 else self.matrix.shape[0]

    @property
    def num_heads(self) -> int | None:
        """H, or None for one head's logits."""
        return None if self.matrix.shape[1] == 1 else self.matrix.shape[1]

    @property
    def length(self) -> int | None:
        """n."""
        return self.matrix.shape[-1]


class OneLayer(AbstractContent):
    """Layer `layer` of another content, for every layer."""

    content: AbstractContent
    layer: Int[Array, ""]

    def __call__(
        self, layer: Int[Array, ""] | int, i: Int[AnyArray, "..."], j: Int[AnyArray, "..."]
    ) -> Float[Array, "h ..."]:
        """content(self.layer, i, j)."""
        return self.content(self.layer, i, j)

    @property
    def depth(self) -> int | None:
        """None: one layer."""
        return None

    @property
    def num_heads(self) -> int | None:
        """As the content it is taken from."""
        return self.content.num_heads

    @property
    def length(self) -> int | None:
        """As the content it is taken from."""
        return self.content.length


def at_layer(content: AbstractContent, layer: Int[Array, ""]) -> AbstractContent:
    """The content of one layer; a diagonal stays a diagonal."""
    if isinstance(content, Diagonal):
        table = content.table
        return Diagonal(table if table.shape[0] == 1 else table[layer][None], content.base)
    return OneLayer(content, layer)
