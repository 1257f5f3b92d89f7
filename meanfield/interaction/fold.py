"""Folding a function of two blocks over all pairs of blocks: dense for few tokens, in tiles above, never n×n."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from .._types import Array, PyTree
from .devices import shared_out


class Tiling(eqx.Module):
    """Rows × columns of one tile, None is one tile for all (dense); targets shared out over `mesh` if there is one."""

    rows: int | None = eqx.field(static=True, default=None)
    columns: int | None = eqx.field(static=True, default=None)
    mesh: Mesh | None = eqx.field(static=True, default=None)


def add(a: PyTree[Array], b: PyTree[Array]) -> PyTree[Array]:
    """Leafwise a + b, the merge of plain sums."""
    return jax.tree.map(jnp.add, a, b)


def fold(
    tile: Callable[[PyTree, PyTree], PyTree[Array]],
    targets: PyTree[Array],
    sources: PyTree[Array],
    mute: Callable[[PyTree, Array], PyTree],
    tiling: Tiling,
    merge: Callable[[PyTree, PyTree], PyTree] = add,
    empty: Callable[[PyTree], PyTree] | None = None,
) -> PyTree[Array]:
    """The merge over all source blocks of `tile(targets, sources)`, leading axis n of the targets.

    Blocks that do not fill up are padded by copies of the last row, which `mute(sources, real)` gives no weight.
    `empty` turns the zeros of a result into the neutral element of `merge` (zeros by default). The backward pass
    recomputes tiles: memory is O(n) in both directions (`jax.checkpoint` around each row of tiles and each tile).
    """
    if tiling.mesh is not None:
        local = Tiling(tiling.rows, tiling.columns)
        return shared_out(lambda t, s: fold(tile, t, s, mute, local, merge, empty), tiling.mesh, targets, sources)
    if tiling.rows is None or tiling.columns is None:
        return tile(targets, sources)
    n, m = _length(targets), _length(sources)
    rows, columns = min(tiling.rows, n), min(tiling.columns, m)
    source_blocks = split(sources, columns)
    real = (jnp.arange(_length(source_blocks) * columns) < m).reshape(-1, columns)
    source_blocks = jax.vmap(mute)(source_blocks, real)

    @jax.checkpoint
    def row(target_block, source_blocks):
        step = jax.checkpoint(lambda carry, block: merge(carry, tile(target_block, block)), prevent_cse=False)
        first = jax.tree.map(lambda a: a[0], source_blocks)
        shape = jax.eval_shape(tile, target_block, first)
        zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shape)
        start = zeros if empty is None else empty(zeros)
        return jax.lax.scan(lambda carry, block: (step(carry, block), None), start, source_blocks)[0]

    out = jax.lax.map(lambda block: row(block, source_blocks), split(targets, rows))
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:n], out)


def _length(tree) -> int:
    return jax.tree.leaves(tree)[0].shape[0]


def split(tree: PyTree[Array], size: int) -> PyTree[Array]:
    """Leading axis n → (blocks, size), padded by copies of the last row."""

    def one(a):
        extra = -a.shape[0] % size
        if extra:
            a = jnp.concatenate([a, jnp.broadcast_to(a[-1:], (extra, *a.shape[1:]))])
        return a.reshape(-1, size, *a.shape[1:])

    return jax.tree.map(one, tree)
