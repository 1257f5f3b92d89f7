"""Clusters at a tolerance: connected components of tokens closer than an angle, exactly and without an n×n array."""

import jax
import jax.numpy as jnp
import numpy as np

from .. import _check
from .._types import Array, Float, Int, ScalarLike, Tokens
from ._inputs import Clouds, points

TOLERANCES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


def count_clusters(
    x: Clouds, tolerances: Float[Array, " k"] | np.ndarray | tuple | list | float = TOLERANCES
) -> Int[Array, "*batch k"] | Int[Array, "*batch"]:
    """Number of clusters at each tolerance: tokens linked by chains of steps of at most that angle are one cluster.

    Works under `jit` and `vmap` (as a call to the host); there tokens that are not finite count −1.

    Args:
        x: tokens (…, n, d), unit rows; leading axes are times or seeds.
        tolerances: angles in radians, (k,) or one number; report a range, a count at one tolerance can mislead.

    Returns:
        Integers (…, k), or (…) for one tolerance.

    Raises:
        ValueError: when tokens are not finite (outside `jit` and `vmap`), or tolerances are outside (0, π].

    Examples:
        >>> x = np.float32([[1, 0], [np.cos(0.1), np.sin(0.1)], [-1, 0]])
        >>> mf.observables.count_clusters(x, (0.01, 0.2)).tolist()
        [3, 2]
    """
    tolerances = np.asarray(tolerances, np.float64)
    if not (np.isfinite(tolerances).all() and (tolerances > 0).all() and (tolerances <= np.pi).all()):
        raise ValueError(f"tolerances={tolerances}: pass angles in (0, π], in radians")
    x = points(x)

    def count(values):
        values = np.asarray(values)
        flat = values.reshape(-1, *values.shape[-2:])
        counts = [_count(one, tolerances) if np.isfinite(one).all() else np.full(tolerances.shape, -1) for one in flat]
        return np.asarray(counts, np.int32).reshape(values.shape[:-2] + tolerances.shape)

    if _check.is_concrete(x):
        return jnp.asarray(count(x))
    shape = jax.ShapeDtypeStruct(x.shape[:-2] + tolerances.shape, jnp.int32)
    return jax.pure_callback(count, shape, x, vmap_method="expand_dims")


def merge_angles(x: Tokens) -> Float[np.ndarray, " n-1"]:
    """The n − 1 angles, increasing, at which clusters merge as the tolerance grows (single linkage).

    They are the edges of the minimum spanning tree, found by Borůvka's rounds over k-d trees: O(n log² n) time in low
    dimension and O(n) memory (in high dimension the trees help less, down to O(n²) time). `x` (n, d) unit rows.

    Examples:
        >>> x = np.float32([[1, 0], [0, 1], [-1, 0]])
        >>> print(np.round(mf.observables.merge_angles(x), 4))
        [1.5708 1.5708]
    """
    return _angles(_spanning_tree(_one_state(x))[1])


def cluster_labels(x: Tokens, tolerance: ScalarLike) -> Int[np.ndarray, " n"]:
    """The cluster 0, 1, … of every token at one tolerance (radians), numbered by first appearance.

    Examples:
        >>> x = np.float32([[1, 0], [-1, 0], [1, 0]])
        >>> print(mf.observables.cluster_labels(x, 0.1))
        [0 1 0]
    """
    x = _one_state(x)
    edges, chords = _spanning_tree(x)
    labels = _components(len(x), edges[_angles(chords) <= float(tolerance)])
    first, order = np.unique(labels, return_index=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(order)] = np.arange(len(first))
    return rank[labels]


def _one_state(x) -> np.ndarray:
    x = _check.tokens(x)
    if not _check.is_concrete(x):
        raise ValueError("cluster trees are found on the host: call this outside jit, or use count_clusters inside")
    return np.asarray(x, np.float64)


def _count(x: np.ndarray, tolerances: np.ndarray) -> np.ndarray:
    heights = _angles(_spanning_tree(np.asarray(x, np.float64))[1])
    return np.asarray(1 + len(heights) - np.searchsorted(heights, tolerances, side="right"))


def _angles(chords: np.ndarray) -> np.ndarray:
    return 2 * np.arcsin(np.minimum(chords / 2, 1))


def _spanning_tree(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges (n − 1, 2) of the Euclidean minimum spanning tree and their lengths, shortest first."""
    n = len(x)
    labels = np.arange(n)
    edges, lengths = np.empty((0, 2), np.int64), np.empty(0)
    while len(edges) < n - 1:
        near, distance = _nearest_foreign(x, labels)
        # the shortest edge out of every component
        order = np.lexsort((distance, labels))
        best = order[np.concatenate([[True], np.diff(labels[order]) > 0])]
        new = _without_cycles(labels, np.stack([best, near[best]], axis=1), distance[best])
        edges, lengths = np.concatenate([edges, new]), np.concatenate([lengths, _chord(x, new)])
        labels = _components(n, edges)
    order = np.argsort(lengths, kind="stable")
    return edges[order], lengths[order]


def _nearest_foreign(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every token the nearest one of another component: two components differ in some bit of their number, so a tree
    of the tokens with that bit 0 asked by those with bit 1, and the reverse, over all bits, misses none."""
    from scipy.spatial import cKDTree

    near, distance = np.full(len(x), -1), np.full(len(x), np.inf)
    for bit in range(int(labels.max()).bit_length()):
        side = (labels >> bit) & 1
        for source in (0, 1):
            here, there = np.flatnonzero(side == source), np.flatnonzero(side != source)
            if len(here) and len(there):
                found, index = cKDTree(x[there]).query(x[here], workers=-1 if len(x) > 20_000 else 1)
                better = found < distance[here]
                near[here[better]], distance[here[better]] = there[index[better]], found[better]
    return near, distance


def _without_cycles(labels: np.ndarray, edges: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The candidate edges that form a forest over components (both ends can name one edge; ties can close a cycle)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    ends = np.sort(labels[edges], axis=1)
    order = np.lexsort((np.arange(len(edges)), lengths))
    _, first = np.unique(ends[order], axis=0, return_index=True)
    kept = order[np.sort(first)]
    rank = np.arange(1, len(kept) + 1, dtype=float)  # positive and distinct: zero lengths are edges too
    size = int(labels.max()) + 1
    forest = minimum_spanning_tree(coo_array((rank, (ends[kept, 0], ends[kept, 1])), shape=(size, size)).tocsr())
    return edges[kept[forest.data.astype(int) - 1]]


def _components(n: int, edges: np.ndarray) -> np.ndarray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _chord(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x[edges[:, 0]] - x[edges[:, 1]], axis=1)
