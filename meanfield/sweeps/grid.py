"""The points of a sweep: a product of named axes or a list of points, cut into boxes that are computed and stored whole."""

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np


@dataclass(frozen=True)
class Grid:
    """Named axes and how they combine: `listed` False is their product (first axis slowest), True takes them together.

    axes maps a name to a (m,) array of numbers; a listed grid has one dimension, `point`, that all axes share.
    """

    axes: dict[str, np.ndarray]
    listed: bool

    @property
    def dims(self) -> tuple[str, ...]:
        return ("point",) if self.listed else tuple(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = tuple(len(values) for values in self.axes.values())
        return sizes[:1] if self.listed else sizes

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def parameters(self, index: np.ndarray) -> dict[str, np.ndarray]:
        """The values of every axis at the points of flat (row-major) index (k,), cast to what JAX computes in."""
        places = [index] * len(self.axes) if self.listed else np.unravel_index(index, self.shape)
        return {k: v[p].astype(traced_dtype(v)) for (k, v), p in zip(self.axes.items(), places, strict=True)}

    def dims_of(self, axis: str) -> tuple[str, ...]:
        return ("point",) if self.listed else (axis,)


def as_grid(grid: Mapping | Sequence) -> Grid:
    """Reads `{"beta": values, "seed": values}` (their product) or `[{"beta": 1.0, "seed": 0}, …]` (these points)."""
    if callable(grid) or not isinstance(grid, Mapping | Sequence):
        raise ValueError(
            f"grid is a {type(grid).__name__}: pass {{'beta': values, …}} after the function, sweep(fn, grid)"
        )
    if len(grid) == 0:
        raise ValueError("grid is empty: give at least one axis, such as {'beta': [1.0, 2.0]}, or one point")
    listed = not isinstance(grid, Mapping)
    columns = grid if isinstance(grid, Mapping) else _columns(grid)
    axes = {str(name): _axis(str(name), values) for name, values in columns.items()}
    if not axes:
        raise ValueError("grid names no parameter: give points such as {'beta': 1.0}")
    if listed and "point" in axes:
        raise ValueError("a listed grid cannot have a parameter 'point', the name of its dimension: rename it")
    return Grid(axes, listed)


def _columns(points: Sequence[Mapping]) -> dict[str, list]:
    """The values of every parameter over a list of points that name the same ones."""
    names = list(points[0])
    for i, point in enumerate(points):
        if set(point) != set(names):
            raise ValueError(
                f"grid[{i}] has the parameters {sorted(point)}, grid[0] has {sorted(names)}: name the same"
            )
    return {name: [point[name] for point in points] for name in names}


def _axis(name: str, values) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"axis {name!r} of the grid has shape {values.shape}: give a non-empty list of numbers")
    if values.dtype.kind not in "biuf":
        remedy = "sweep once for each value and join the results by xarray.concat"
        raise ValueError(f"axis {name!r} of the grid holds {values.dtype}: parameters are traced numbers; {remedy}")
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"axis {name!r} of the grid has the value {values[~np.isfinite(values)][0]}: give finite numbers"
        )
    dtype = traced_dtype(values)
    if values.dtype.kind in "iu" and not np.array_equal(values.astype(dtype), values):
        raise ValueError(
            f"axis {name!r} of the grid exceeds {dtype}: use smaller numbers or jax.config.update('jax_enable_x64', True)"
        )
    return values


def traced_dtype(values: np.ndarray) -> np.dtype:
    """The dtype in which JAX traces these values: float64 only while x64 is on."""
    return np.dtype(jax.dtypes.canonicalize_dtype(values.dtype))


def check_signature(fn: Callable, grid: Grid) -> None:
    """Refuses, naming it, an axis that fn does not take and an argument of fn that the grid does not give."""
    if not callable(fn):
        raise ValueError(f"fn is a {type(fn).__name__}: pass a function of the axes first, sweep(fn, grid)")
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):  # builtins and some callables have no signature: tracing will say
        return
    named = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for axis in grid.axes:
        if axis not in named and not takes_any:
            raise ValueError(
                f"axis {axis!r} of the grid is no parameter of fn, which takes {sorted(named)}: rename one of them"
            )
    for name, p in named.items():
        if p.default is p.empty and name not in grid.axes:
            raise ValueError(
                f"fn needs {name!r}, which is no axis of the grid {sorted(grid.axes)}: add it or bind it in fn"
            )


@dataclass(frozen=True)
class Boxes:
    """The grid cut into boxes of at most `chunk` points: `edge` is a box's size along each dimension."""

    shape: tuple[int, ...]
    edge: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(-(-n // e) for n, e in zip(self.shape, self.edge, strict=True))

    @property
    def points(self) -> int:
        return math.prod(self.edge)

    def __len__(self) -> int:
        return math.prod(self.counts)

    def place(self, number: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(number, self.counts))

    def slices(self, number: int) -> tuple[slice, ...]:
        starts = (i * e for i, e in zip(self.place(number), self.edge, strict=True))
        return tuple(slice(s, min(s + e, n)) for s, e, n in zip(starts, self.edge, self.shape, strict=True))

    def index(self, number: int) -> np.ndarray:
        """Flat indices of the points of a box, row-major."""
        ranges = [np.arange(s.start, s.stop) for s in self.slices(number)]
        return np.ravel_multi_index(np.meshgrid(*ranges, indexing="ij"), self.shape).ravel()


def cut(shape: tuple[int, ...], chunk: int) -> Boxes:
    """Boxes of at most `chunk` points that fill the last dimensions first and are as equal as they can be."""
    edge, left = [], chunk
    for n in reversed(shape):
        pieces = -(-n // min(n, left))
        edge.append(-(-n // pieces))
        left = left // edge[-1] if pieces == 1 else 1
    return Boxes(shape, tuple(reversed(edge)))


def default_chunk(size: int, bytes_per_point: int, batched: bool) -> int:
    """Points in a box where the user names none: a box is what a killed run may lose, and at most about 64 MB."""
    wanted = min(size, 256) if batched else max(-(-size // 256), min(64, -(-size // 16)))
    return max(1, min(wanted, (64 << 20) // max(1, bytes_per_point)))


def first_difference(stored: Grid, given: Grid) -> str | None:
    """The first way in which two grids differ, in words that name the axis; None where they agree."""
    if stored.listed != given.listed:
        kind = ("a product of the axes", "a list of points of the axes")
        return f"the store holds {kind[stored.listed]} {list(stored.axes)}, the grid is {kind[given.listed]} {list(given.axes)}"
    if odd := [
        name for pair in itertools.zip_longest(stored.axes, given.axes) if pair[0] != pair[1] for name in pair if name
    ]:
        return f"axis {odd[0]!r}: the store has the axes {list(stored.axes)} in this order, the grid has {list(given.axes)}"
    for name, old in stored.axes.items():
        new = given.axes[name]
        if len(old) != len(new):
            return f"axis {name!r} has {len(old)} values in the store and {len(new)} in the grid"
        if not np.array_equal(old, new):
            i = int(np.argmax(old != new))
            return f"axis {name!r} differs first at index {i}: {old[i]} in the store, {new[i]} in the grid"
    return None
