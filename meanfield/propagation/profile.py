"""Profiles: one row of P, or one column, without an n × n matrix wherever the architecture's structure allows it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._products import matmul
from . import _blocks, _layered, _wavefront
from ._inputs import check_index, check_length
from ._recurrence import geometric_sum, row_weights
from .architecture import Architecture
from .attention import check_fits
from .biases import ALiBi, NoBias
from .content import Diagonal
from .masks import Causal, Full, PrefixLM, Window
from .rollout import propagate


def profile(arch: Architecture, length: int, row: int | Array = -1) -> Float[Array, " n"]:
    """p = e_rowᵀ R^(T) … R^(1): how much each of `length` input positions influences position `row` at the top (arXiv 2602.16837).

    ALiBi slopes (or no bias) with diagonal content under a built-in mask are a linear recurrence per head: O(T·H·n) time, O(n) memory
    beyond the layers' carries; everything else builds rows of attention in blocks. Differentiable in every parameter.

    Args:
        length: n.
        row: from the end if negative (may be traced).

    Returns:
        (n,), in mixing's dtype, summing to 1.

    Raises:
        ValueError: when row is out of range, content has another length, or a mask empties a row.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> print(np.round(mf.propagation.profile(arch, 4), 4))
        [0.0404 0.088  0.196  0.6756]
    """
    length, row = _checked(arch, length, row)
    return _profile(arch, row, length, every=False)


def profile_by_depth(arch: Architecture, length: int, row: int | Array = -1) -> Float[Array, "T n"]:
    """(T, n): row k is e_rowᵀ R^(T) … R^(T−k), the influence on `row` of the positions entering the last k + 1 layers.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> print(np.round(mf.propagation.profile_by_depth(arch, 3), 3))
        [[0.045      0.12200001 0.83300006]
         [0.09900001 0.208      0.693     ]]
    """
    length, row = _checked(arch, length, row)
    return _profile(arch, row, length, every=True)


def _checked(arch: Architecture, length: int, index: int | Array, name: str = "row") -> tuple[int, Array]:
    length = check_length(length)
    index = check_index(name, index, length)
    check_fits(arch, length)
    return length, jnp.asarray(index)


@eqx.filter_jit
def _profile(arch: Architecture, row: Array, length: int, every: bool) -> Float[Array, "*T n"]:
    row = jnp.where(row < 0, row + length, row)
    start = (jnp.arange(length) == row).astype(arch.mixing.dtype)
    return pull(arch, start, every)


def column(arch: Architecture, length: int, column: int | Array = 0) -> Float[Array, " n"]:
    """P e_column, (n,): how much input position `column` influences every position at the top.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> print(np.round(mf.propagation.column(arch, 4, 0), 4))
        [1.     0.2509 0.099  0.0404]
    """
    length, column = _checked(arch, length, column, "column")
    return _column(arch, column, length)


@eqx.filter_jit
def _column(arch: Architecture, column: Array, length: int) -> Float[Array, " n"]:
    """The transpose of start ↦ startᵀP, which is linear: the engines run backwards."""
    column = jnp.where(column < 0, column + length, column)
    unit = (jnp.arange(length) == column).astype(arch.mixing.dtype)
    _, transpose = jax.vjp(lambda start: pull(arch, start), jnp.zeros_like(unit))
    return transpose(unit)[0]


def first_token_mass(arch: Architecture, length: int) -> Float[Array, " n"]:
    """P_i0 of every row i, (n,).

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> print(np.round(mf.propagation.first_token_mass(arch, 4), 4))
        [1.     0.2509 0.099  0.0404]
    """
    return column(arch, length, 0)


def diagonal_mass(arch: Architecture, length: int) -> Float[Array, " n"]:
    """P_ii of every row i, (n,): Π_t(1 − λ_t(1 − A^(t)_ii)) in closed form for a causal or windowed ALiBi mask, else read off P.

    Source: theory.md 3; arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> print(np.round(mf.propagation.diagonal_mass(arch, 4), 4))
        [1.         0.74909997 0.6933     0.6756    ]
    """
    length = check_length(length)
    if not (_structured(arch) and isinstance(arch.mask, (Causal, Window))):
        return jnp.diagonal(propagate(arch, length))
    return _diagonal_mass(arch, length)


@eqx.filter_jit
def _diagonal_mass(arch: Architecture, length: int) -> Float[Array, " n"]:
    slopes, diagonal, weights = _parameters(arch)
    reach = arch.mask.width - 1 if isinstance(arch.mask, Window) else length - 1
    sums = geometric_sum(slopes[:, None], jnp.minimum(jnp.arange(length), reach).astype(slopes.dtype))

    def layer(product: Array, x: tuple) -> tuple[Array, None]:
        mix, diag = x
        _, own = row_weights(slopes[:, None], diag[:, None], sums)
        return product * (1 - mix * (1 - matmul(weights, own))), None

    diagonal = jnp.broadcast_to(diagonal, (arch.depth, slopes.shape[0]))
    return jax.lax.scan(layer, jnp.ones(length, slopes.dtype), (arch.mixing, diagonal))[0]


def pull(arch: Architecture, start: Float[Array, " n"], every: bool = False) -> Float[Array, "*T n"]:
    """startᵀR^(T)…R^(1), or with every=True all products on the way, by the cheapest engine that fits the architecture."""
    if not _structured(arch):
        return _blocks.pull(arch, start, every)
    parameters = (start, arch.mixing, *_parameters(arch))
    n = start.shape[0]
    match arch.mask:
        case Causal():
            return _wavefront.pull(*parameters, every=every)
        case Window(width=width):
            return _layered.pull(*parameters, reach=width - 1, prefix=0, every=every)
        case PrefixLM(prefix=prefix):
            return _layered.pull(*parameters, reach=n - 1, prefix=prefix, every=every)
        case _:
            return _layered.pull(*parameters, reach=n - 1, prefix=n, every=every)


def _structured(arch: Architecture) -> bool:
    """Whether pᵀA is a linear recurrence."""
    return (
        isinstance(arch.bias, (ALiBi, NoBias))
        and isinstance(arch.content, Diagonal)
        and isinstance(arch.mask, (Causal, Full, Window, PrefixLM))
    )


def _parameters(arch: Architecture) -> tuple[Float[Array, " H"], Float[Array, "t h"], Float[Array, " H"]]:
    """Slopes (H,) and diagonal (1 or T, 1 or H) after the temperature, and head weights (H,)."""
    slopes = arch.bias.slopes if isinstance(arch.bias, ALiBi) else jnp.zeros((1,), arch.mixing.dtype)
    slopes = jnp.broadcast_to(slopes / arch.temperature, (arch.num_heads,))
    return slopes, arch.content.table / arch.temperature, arch.head_weights
