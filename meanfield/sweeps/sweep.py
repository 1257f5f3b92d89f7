"""Front door: a function over a grid of parameters."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import xarray as xr

from .grid import as_grid, check_signature
from .lock import locked
from .program import Batch
from .run import Run


def sweep(
    fn: Callable,
    grid: Mapping | Sequence,
    out: str | os.PathLike | None = None,
    chunk: int | None = None,
    name: str | None = None,
    *,
    batch: Batch = "auto",
    devices: Sequence[jax.Device] | None = None,
    workers: int | None = None,
    units: Mapping[str, str] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Evaluates `fn(beta=…, seed=…)` at every point of a grid, as one compiled program.

    fn is traced once, with an abstract number for each axis (weakly typed, as a Python number is, so that a point equals
    its solo run). Its outputs become variables with the dimensions of the grid and then `{variable}_{axis}`; `ok` (bool)
    and `status` (int) are always among them. A point failed if fn's own `ok` (without one, a `status` above
    `FlowStatus.STOPPED`) says so or any output is not finite: its `ok` is False and its outputs are NaN, except `status`,
    `t`, `steps`, `accepted` and `rejected`. Other integers and booleans are therefore kept as floats. Status codes from 0
    up are fn's own; -1: an output was not finite (the rows after an early stop are not: return `traj.final`), -2: not
    computed, -3: fn said `ok` False without a code.

    With `out`, a Zarr store is written chunk by chunk, each by rename and with checksums. The same call after a kill, an
    interrupt or a full disk computes what is missing or damaged and reuses the rest (`attrs["computed"]`,
    `attrs["reused"]`, also logged at INFO); where nothing is missing fn is not even traced. `xr.open_zarr(out)` reads it
    at any time. A store belongs to its grid and name, and to one run at a time. A `UserWarning` says that fn's code
    changed since the store was begun.

    Args:
        fn: takes the axes by name, returns a dict of arrays (nested dicts are flattened) or a `Trajectory`, with the
            same keys and shapes at every point.
        grid: `{"beta": values, "seed": values}` for their product or `[{"beta": 1.0, "seed": 0}, …]` for a list of
            points (dimension `point`); finite numbers.
        out: path of the store; None keeps the result in memory only.
        chunk: points that are computed and written together, and what a kill may lose. A batch holds so many points.
            A store keeps the chunks it began with.
        name: part of the identity of the store.
        batch: "loop" computes one point after another, on `workers` threads; "vmap" a chunk at once; "auto": "loop" on
            CPUs, where one stiff point would hold up its batch, "vmap" elsewhere.
        devices: several share each chunk evenly; default: JAX's default device.
        workers: threads over the one compiled program; default: the cores of this process on a CPU, else 1.
        units: units by variable or axis, "1" where absent.
        progress: a bar with the points done and the time left; default: on a terminal, after a second.

    Returns:
        An `xarray.Dataset` with attributes `config`, `versions`, `seed`, `dtype`, `wall_time` and `compile_time` (s),
            `compiles`, `computed`, `reused`.

    Raises:
        ValueError: when fn does not take an axis, an output is ragged or unnamed, or a store is of another grid or
            name, or held by another run.

    Examples:
        >>> grid = {"beta": [0.0, 1.0], "seed": [0, 1, 2]}
        >>> ds = mf.sweep(lambda beta, seed: {"growth": jnp.exp(beta) + seed}, grid)
        >>> ds.growth.dims, ds.growth.shape, bool(ds.ok.all())
        (('beta', 'seed'), (2, 3), True)
    """
    begin = time.perf_counter()
    points = as_grid(grid)
    check_signature(fn, points)
    if chunk is not None and (chunk != int(chunk) or chunk < 1):
        raise ValueError(f"chunk={chunk}: a number of points, 1 or more")
    if workers is not None and workers < 1:
        raise ValueError(f"workers={workers}: a number of threads, 1 or more")
    run = Run(fn, points, chunk, name, batch, devices, workers, dict(units or {}), progress)
    if out is None:
        return run.in_memory(begin)
    path = Path(out).absolute()
    with locked(path):
        return run.in_store(path, begin)
