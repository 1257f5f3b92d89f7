"""Sums along the order of labels: blocks of sorted tokens, earlier and later blocks through two linear recurrences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._check import is_concrete
from .._types import Array, DType, Float, Int, Labels, PyTree, Real
from .fold import split
from .separable import Split, positions
from .stream import Chain, Pass


class Order(eqx.Module):
    """Tokens sorted by position into blocks; `chain` transports moments between blocks."""

    into: Int[Array, " n"]
    back: Int[Array, " n"]
    chain: Chain
    size: int = eqx.field(static=True)

    def sort(self, tree: PyTree[Array]) -> PyTree[Array]:
        """Leading axis n → (blocks, size), the last block padded by copies of the last token."""
        return split(jax.tree.map(lambda a: a[self.into], tree), self.size)

    def restore(self, tree: PyTree[Array]) -> PyTree[Array]:
        """(blocks, size) → n, in the order of the tokens."""
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[self.back], tree)


def order(parts: Split, labels: Labels, causal: bool, dtype: DType, size: int) -> Order:
    """The order of `labels`. Causal: earlier blocks and, across a boundary, equal labels. Else: decays both ways."""
    position = positions(parts.position, labels)
    size = min(size, position.shape[0])
    into = jnp.argsort(position)
    back = jnp.argsort(into)
    blocks = split(position[into], size)
    first, last = blocks[:, 0], blocks[:, -1]
    rate = sum((f.profile.rate.astype(dtype) for f in parts.decays), start=jnp.zeros((), dtype))

    def decay(distance: Real[Array, "..."]) -> Float[Array, "..."]:
        return jnp.exp(-rate * distance.astype(dtype))

    def same(distance: Real[Array, "..."]) -> Float[Array, "..."]:
        return (distance == 0).astype(dtype)

    # a boundary's label: the last of the block before it (forward), the first of the block after it (backward)
    before = jnp.concatenate([first[:1], last[:-1]])
    after = jnp.concatenate([first[1:], last[-1:]])
    forward = Pass(decay(blocks - before[:, None]), decay(last[:, None] - blocks), decay(last - before))
    later = same if causal else decay
    backward = Pass(later(after[:, None] - blocks), later(blocks - first[:, None]), later(after - first))
    if causal and is_concrete(first, last) and not np.any(np.asarray(first)[1:] == np.asarray(last)[:-1]):
        backward = None  # no tie crosses a boundary
    return Order(into, back, Chain(forward, backward), size)
