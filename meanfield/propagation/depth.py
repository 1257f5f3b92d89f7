"""Depth: how fast influence collapses onto the first token, and which shape a profile takes over a grid of architectures."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..theory.propagation import recency_boundary
from ._inputs import Numbers, check_index, check_length, floating
from .architecture import Architecture
from .attention import check_fits
from .content import at_layer
from .measures import u_shape
from .profile import pull

FLAT, PRIMACY, RECENCY, U_SHAPED = 0, 1, 2, 3


def first_token_mass_by_depth(arch: Architecture, length: int, row: int = -1) -> Float[Array, " T"]:
    """P^(t)_row,0 for t = 1 … T, (T,): mass on the first token if the network stopped after its first t layers.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> print(np.round(mf.propagation.first_token_mass_by_depth(arch, 4), 4))
        [0.016  0.0404]
    """
    length = check_length(length)
    row = check_index("row", row, length)
    check_fits(arch, length)
    return _first_by_depth(arch, jnp.asarray(row), length)


@eqx.filter_jit
def _first_by_depth(arch: Architecture, row: Array, length: int) -> Float[Array, " T"]:
    """One layer at a time, v ← R^(t)v from v = e_0, by transposing the profile's engine on a one-layer architecture."""

    def layer(v: Array, x: tuple) -> tuple[Array, Array]:
        t, mix = x
        one = eqx.tree_at(lambda a: (a.mixing, a.content), arch, (mix[None], at_layer(arch.content, t)))
        _, transpose = jax.vjp(lambda start: pull(one, start), jnp.zeros_like(v))
        (v,) = transpose(v)
        return v, v[row]

    start = (jnp.arange(length) == 0).astype(arch.mixing.dtype)
    return jax.lax.scan(layer, start, (jnp.arange(arch.depth), arch.mixing))[1]


def collapse_depth(arch: Architecture, length: int, share: float = 0.5, row: int = -1) -> Int[Array, ""]:
    """The first depth t ≤ T at which the row's mass on the first token reaches `share`; T + 1 when it does not.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture(np.ones(12, np.float32))  # uniform attention without residuals
        >>> int(mf.propagation.collapse_depth(arch, 64, share=0.9))
        9
    """
    if not 0 < share <= 1:
        raise ValueError(f"share = {share} must be in (0, 1]: a share of the row's mass")
    mass = first_token_mass_by_depth(arch, length, row)
    return jnp.where(mass.max() >= share, jnp.argmax(mass >= share) + 1, arch.depth + 1)


class PhaseMap(eqx.Module):
    """Shapes over a grid: `shape[i, j]` for rows[i] and columns[j] is one of FLAT, PRIMACY, RECENCY, U_SHAPED.

    `rise` is how much the smooth part grows per step at its end, relative to itself; by the closed form of the continuum it is positive
    where rows[i] < `boundary[j]`.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> found = mf.propagation.phase_map([0.1, 2.0], [1.0, 8.0], depth=4, length=32)
        >>> found.shape.shape, found.boundary.shape
        ((2, 2), (2,))
    """

    rows: Float[Array, " r"]
    columns: Float[Array, " c"]
    shape: Int[Array, "r c"]
    first: Float[Array, "r c"]
    last: Float[Array, "r c"]
    rise: Float[Array, "r c"]
    boundary: Float[Array, " c"]


def classify(p: Numbers) -> Int[Array, "*batch"]:
    """FLAT, PRIMACY, RECENCY or U_SHAPED: which of the ends stand above the mean of the middle third.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> bool(mf.propagation.classify([0.5, 0.1, 0.1, 0.1, 0.1, 0.5]) == mf.propagation.depth.U_SHAPED)
        True
    """
    shape = u_shape(p)
    return shape.start_above_middle.astype(int) * PRIMACY + shape.end_above_middle.astype(int) * RECENCY


def phase_map(total_mixing: Numbers, decay: Numbers, depth: int = 32, length: int = 256) -> PhaseMap:
    """Shapes over Σλ_t (rows) and αn (columns) for one ALiBi slope α = decay/n and equal λ_t, and where its end rises.

    The boundary is `theory.recency_boundary` of this depth: Σλ = 2(1 − e^{−αn}) for many layers.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> found = mf.propagation.phase_map([0.1, 2.0], [1.0, 8.0], depth=4, length=32)
        >>> print(np.round(found.boundary, 4))
        [1.1859 1.5997]
    """
    decay = floating(decay)
    slopes = decay[:, None] / check_length(length)
    weights = jnp.ones_like(slopes)
    return _phase_map(total_mixing, decay, slopes, weights, depth, length)


def head_mixture_map(
    total_mixing: Numbers, share: Numbers, decay: float, depth: int = 32, length: int = 256
) -> PhaseMap:
    """Shapes over Σλ_t (rows) and the share of uniform heads (columns); the other heads have slope decay/n.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> mf.propagation.head_mixture_map([0.1, 2.0], [0.0, 0.5, 1.0], decay=8.0, depth=4, length=32).shape.shape
        (2, 3)
    """
    share = floating(share)
    if not bool(((share >= 0) & (share <= 1)).all()):
        raise ValueError(f"share = {np.asarray(share)} must lie in [0, 1]: the weight of the uniform heads")
    slopes = jnp.broadcast_to(jnp.asarray([0.0, decay / check_length(length)]).astype(share.dtype), (share.shape[0], 2))
    return _phase_map(total_mixing, share, slopes, jnp.stack([share, 1 - share], axis=1), depth, length)


def _phase_map(total: Numbers, columns: Array, slopes: Array, weights: Array, depth: int, length: int) -> PhaseMap:
    total = floating(total, columns.dtype)
    if not bool(((total >= 0) & (total <= depth)).all()):
        raise ValueError(f"total_mixing = {np.asarray(total)} must lie in [0, depth = {depth}]: Σλ of {depth} layers")
    shape, first, last, rise = _grid(total, slopes, weights, depth, length)
    boundary = jax.vmap(lambda decays, weights: recency_boundary(decays, weights, depth))(slopes * length, weights)
    return PhaseMap(total, columns, shape, first, last, rise, boundary)


@eqx.filter_jit
def _grid(total: Array, slopes: Array, weights: Array, depth: int, length: int) -> tuple[Array, Array, Array, Array]:
    def point(total: Array, slopes: Array, weights: Array) -> tuple[Array, Array, Array, Array]:
        mixing = jnp.broadcast_to(total / depth, (depth,))
        arch = Architecture(mixing, slopes, head_weights=weights)
        start = jnp.zeros(length, mixing.dtype).at[-1].set(1)
        p = pull(arch, start)
        # The atom Π(1 − λ_t) at the last token is apart from the smooth part, whose slope the closed form is about.
        mass = p[-2] + p[-4]
        rise = jnp.where(mass > 0, (p[-2] - p[-4]) / jnp.where(mass > 0, mass, 1), 0)
        return classify(p), p[0], p[-1], rise

    columns = jax.vmap(point, in_axes=(None, 0, 0))
    return jax.lax.map(lambda t: columns(t, slopes, weights), total)
