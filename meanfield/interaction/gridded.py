"""Pallas kernels for sums over pairs: one program per block of rows, which walks over all blocks of the other side.

No n×n array in either direction: the backward kernels recompute tiles and differentiate each inside the kernel.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from .._types import Array, PyTree
from .devices import pad

WARPS, STAGES = 4, 2


class Grid(eqx.Module):
    """Rows of targets × columns of sources in one tile: powers of two, at least 16 (a GPU's matrix unit)."""

    rows: int = eqx.field(static=True, default=64)
    columns: int = eqx.field(static=True, default=64)


def summed(
    tile: Callable, grid: Grid, targets: PyTree[Array], sources: PyTree[Array], parameters: PyTree[Array]
) -> PyTree[Array]:
    """Σ over blocks of sources of tile(targets, sources, parameters): a pytree with the leading axis of the targets.

    `tile` sees blocks of rows of every leaf and may close over no array. Copies of the last row fill up blocks; sources must
    come with a weight per row as first leaf, which is 0 there. Differentiable once, in reverse mode.
    """
    inexact, rest = eqx.partition((targets, sources, parameters), eqx.is_inexact_array)

    @jax.custom_vjp
    def run(inexact, rest):
        targets, sources, parameters = eqx.combine(inexact, rest)
        return over_sources(tile, grid, targets, sources, parameters, jnp.add, 0.0)

    def forward(inexact, rest):
        return run(inexact, rest), (inexact, rest)

    def backward(saved, cotangent):
        return _gradients(tile, grid, *saved, cotangent), None

    run.defvjp(forward, backward)
    return run(inexact, rest)


def over_sources(
    tile: Callable, grid: Grid, targets: PyTree, sources: PyTree, parameters: PyTree, merge: Callable, start: float
) -> PyTree[Array]:
    """merge over all blocks of sources of the tile's leaves, from `start`; not differentiable."""
    n, sources = _length(targets), _muted(sources, grid.columns)
    out = _walk(tile, _filled(targets, grid.rows), sources, parameters, grid.rows, grid.columns, merge, start)
    return jax.tree.map(lambda a: a[:n], out)


def _gradients(tile, grid, inexact, rest, cotangent):
    """Cotangents of targets, sources and parameters, by one kernel over targets and one over sources."""
    n, m = _length(inexact[0]), _length(inexact[1])
    (t, s, p), (ti, si, pi) = inexact, rest
    t, ti = _filled(t, grid.rows), _filled(ti, grid.rows)
    s, si = _muted(s, grid.columns), _filled(si, grid.columns)
    extra = _length(t) - n
    cotangent = jax.tree.map(lambda a: pad(a, extra, 0.0), cotangent)

    def pull_targets(mine, other, parameters):
        t, ti, cotangent = mine
        one = lambda t: tile(eqx.combine(t, ti), eqx.combine(*other), eqx.combine(*parameters))  # noqa: E731
        return jax.vjp(one, t)[1](cotangent)[0]

    def pull_sources(mine, other, parameters):
        s, si = mine
        t, ti, cotangent = other
        both = lambda s, p: tile(eqx.combine(t, ti), eqx.combine(s, si), eqx.combine(p, parameters[1]))  # noqa: E731
        return jax.vjp(both, s, parameters[0])[1](cotangent)

    dt = _walk(pull_targets, (t, ti, cotangent), (s, si), (p, pi), grid.rows, grid.columns)
    ds, dp = _walk(pull_sources, (s, si), (t, ti, cotangent), (p, pi), grid.columns, grid.rows, own=1)
    cut = [jax.tree.map(lambda a, k=k: a[:k], tree) for tree, k in ((dt, n), (ds, m))]
    return (*cut, jax.tree.map(lambda a: jnp.sum(a, axis=0), dp))


def _walk(tile, mine, other, parameters, rows, columns, merge=jnp.add, start=0.0, own=None):
    """merge over blocks of `other` of tile(block of `mine`, block of `other`, parameters), for every block of `mine`.

    The first `own` entries of the result (all, if None) have a row per row of `mine`; the rest one per block.
    """
    blocks = _length(mine) // rows
    leaves, structure = jax.tree.flatten((mine, other, parameters))
    one = (_blocks(mine, rows), _blocks(other, columns), parameters)
    shapes = jax.eval_shape(tile, *one)
    kept, shape_tree = jax.tree.flatten(shapes)
    wide = jax.tree.leaves(jax.tree.map(lambda _: True, shapes if own is None else shapes[:own]))
    per_row = [i < len(wide) for i in range(len(kept))]
    counts = [len(jax.tree.leaves(tree)) for tree in (mine, other, parameters)]

    def kernel(*refs):
        inputs, outputs = refs[: len(leaves)], refs[len(leaves) :]
        own_values = [ref[...] for ref in inputs[: counts[0]]]
        constants = [ref[0] if leaf.ndim == 0 else ref[...] for ref, leaf in _last(inputs, leaves, counts[2])]
        others = inputs[counts[0] : counts[0] + counts[1]]

        def step(j, carry):
            values = [ref[pl.ds(j * columns, columns)] for ref in others]
            new = tile(*jax.tree.unflatten(structure, [*own_values, *values, *constants]))
            return [merge(a, b.astype(a.dtype)) for a, b in zip(carry, jax.tree.leaves(new), strict=True)]

        carry = [jnp.full(s.shape, start, s.dtype) for s in kept]
        for ref, value, whole in zip(
            outputs, jax.lax.fori_loop(0, _length(other) // columns, step, carry), per_row, strict=True
        ):
            if whole or value.ndim:
                ref[...] = value
            else:
                ref[0] = value

    out = pl.pallas_call(
        kernel,
        grid=(blocks,),
        in_specs=[_rows(rows, a) if i < counts[0] else _whole(a) for i, a in enumerate(leaves)],
        out_specs=[_rows(rows, s) if whole else _entry(s) for s, whole in zip(kept, per_row, strict=True)],
        out_shape=[
            jax.ShapeDtypeStruct((blocks * rows, *s.shape[1:]) if whole else (blocks, *s.shape), s.dtype)
            for s, whole in zip(kept, per_row, strict=True)
        ],
        interpret=jax.default_backend() == "cpu",
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=STAGES),
    )(*[a[None] if a.ndim == 0 else a for a in leaves])
    return jax.tree.unflatten(shape_tree, out)


def _last(refs, leaves, count):
    return zip(refs[len(refs) - count :], leaves[len(leaves) - count :], strict=True) if count else ()


def _rows(rows: int, a) -> pl.BlockSpec:
    return pl.BlockSpec((rows, *a.shape[1:]), lambda i: (i, *[0] * (len(a.shape) - 1)))


def _whole(a) -> pl.BlockSpec:
    shape = a.shape or (1,)
    return pl.BlockSpec(shape, lambda i: (0,) * len(shape))


def _entry(s) -> pl.BlockSpec:
    """One block's entry of a result that has one per block."""
    if not s.shape:
        return pl.BlockSpec((1,), lambda i: (i,))
    return pl.BlockSpec((None, *s.shape), lambda i: (i, *[0] * len(s.shape)))


def _blocks(tree, rows: int):
    return jax.tree.map(lambda a: jax.ShapeDtypeStruct((rows, *a.shape[1:]), a.dtype), tree)


def _length(tree) -> int:
    return jax.tree.leaves(tree)[0].shape[0]


def _filled(tree, size: int):
    return jax.tree.map(lambda a: pad(a, -a.shape[0] % size), tree)


def _muted(sources, size: int):
    """Sources filled up to whole blocks; the first leaf, the weights, is 0 on the copies."""
    weights, *others = jax.tree.leaves(sources)
    filled = [pad(weights, -weights.shape[0] % size, 0.0), *(pad(a, -a.shape[0] % size) for a in others)]
    return jax.tree.unflatten(jax.tree.structure(sources), filled)
