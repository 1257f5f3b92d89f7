"""Front door: a function over a grid of parameters."""

import contextlib
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from . import dataset, status
from .executor import execute
from .fingerprint import fingerprint
from .grid import Boxes, Grid, as_grid, check_signature, cut, default_chunk
from .lock import locked
from .program import Batch, Traced, build, choose_batch, choose_devices, trace
from .store import Store, create, reopen

_log = logging.getLogger(__name__)
_LOOP_CAPACITY = 32  # most points in one call of the counted loop; it takes fewer where they are slow


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
    at any time. A store belongs to its grid and name, and to one run at a time.

    **Arguments:**

    - `fn`: takes the axes by name, returns a dict of arrays (nested dicts are flattened) or a `Trajectory`, with the same keys and shapes at every point.
    - `grid`: `{"beta": values, "seed": values}` for their product or `[{"beta": 1.0, "seed": 0}, …]` for a list of points
      (dimension `point`); finite numbers.
    - `out`: path of the store; None keeps the result in memory only.
    - `chunk`: points that are computed and written together, and what a kill may lose. A batch holds so many points.
      A store keeps the chunks it began with.
    - `name`: part of the identity of the store.
    - `batch`: "loop" computes one point after another, on `workers` threads; "vmap" a chunk at once; "auto": "loop" on CPUs, where
      one stiff point would hold up its batch, "vmap" elsewhere.
    - `devices`: several share each chunk evenly; default: JAX's default device.
    - `workers`: threads over the one compiled program; default: the cores of this process on a CPU, else 1.
    - `units`: units by variable or axis, "1" where absent.
    - `progress`: a bar with the points done and the time left; default: on a terminal, after a second.

    **Returns:** an `xarray.Dataset` with attributes `config`, `versions`, `seed`, `dtype`, `wall_time` (s), `compiles`, `computed`, `reused`.

    **Raises:** `ValueError` for an axis that fn does not take, a ragged or unnamed output, a store of another grid or
    name, or one that another run holds; a `UserWarning` says that fn's code changed since the store was begun.
    """
    begin = time.perf_counter()
    points = as_grid(grid)
    check_signature(fn, points)
    if chunk is not None and (chunk != int(chunk) or chunk < 1):
        raise ValueError(f"chunk={chunk}: a number of points, 1 or more")
    if workers is not None and workers < 1:
        raise ValueError(f"workers={workers}: a number of threads, 1 or more")
    plan = _Plan(fn, points, chunk, name, batch, devices, workers, dict(units or {}), progress)
    if out is None:
        return plan.in_memory(begin)
    path = Path(out).absolute()
    with locked(path):
        return plan.in_store(path, begin)


class _Plan:
    """The arguments of one call, and the two ways of keeping what it computes."""

    def __init__(self, fn, grid: Grid, chunk, name, batch: Batch, devices, workers, units, progress):
        self.fn, self.grid, self.chunk, self.name, self.units, self.progress = fn, grid, chunk, name, units, progress
        self.devices = choose_devices(devices)
        self.batch = choose_batch(batch, self.devices)
        on_cpu = self.devices[0].platform == "cpu" and len(self.devices) == 1
        self.workers = (workers or len(os.sched_getaffinity(0))) if on_cpu else 1

    def in_memory(self, begin: float) -> xr.Dataset:
        traced = trace(self.fn, self.grid)
        boxes = self._boxes(traced)
        arrays = {
            name: np.full((*self.grid.shape, *shape), status.fill_value(name, dtype), dtype)
            for name, (shape, dtype) in status.variables(traced.outputs).items()
        }

        def keep(number: int, values: Mapping[str, np.ndarray]) -> None:
            place = boxes.slices(number)
            for name, array in arrays.items():
                array[place] = values[name].reshape(array[place].shape)

        self._compute(traced, boxes, list(range(len(boxes))), keep)
        run = self._attributes(boxes) | _account(self.grid.size, 0, 1, begin)
        return dataset.build(self.grid, arrays, self.units, run)

    def in_store(self, out: Path, begin: float) -> xr.Dataset:
        code = fingerprint(self.fn)
        store = reopen(out, self.grid, self.name)
        done = store.done() if store else {}
        if store and (old := sum(len(store.boxes.index(n)) for n, by in done.items() if by != code)):
            remedy = "they are reused; give another out or name to compute them anew"
            warnings.warn(
                f"the code of fn changed since {old} points of {str(out)!r} were computed: {remedy}", stacklevel=3
            )
        if store and len(done) == len(store.boxes):
            _log.info("%s: computed 0, reused %d points", out, self.grid.size)
            return store.dataset().assign_attrs(_account(0, self.grid.size, 0, begin))
        traced = trace(self.fn, self.grid)
        variables = status.variables(traced.outputs)
        if store is None:
            boxes = self._boxes(traced)
            store = create(out, self.grid, self.name, boxes, variables, self.units, self._attributes(boxes))
        store.check_variables(variables)
        missing = [number for number in range(len(store.boxes)) if number not in done]
        computed = sum(len(store.boxes.index(number)) for number in missing)
        self._compute_into(store, traced, missing, code)
        account = _account(computed, self.grid.size - computed, 1, begin)
        store.update(account)
        _log.info("%s: computed %d, reused %d points", out, computed, self.grid.size - computed)
        return store.dataset()

    def _compute_into(self, store: Store, traced: Traced, missing: Sequence[int], code: str) -> None:
        kept = 0

        def keep(number: int, values: Mapping[str, np.ndarray]) -> None:
            nonlocal kept
            store.write(number, values, code)
            kept += len(store.boxes.index(number))

        try:
            self._compute(traced, store.boxes, missing, keep)
        except (KeyboardInterrupt, OSError, jax.errors.JaxRuntimeError) as error:
            left = sum(len(store.boxes.index(number)) for number in missing) - kept
            error.add_note(
                f"{self.grid.size - left} of {self.grid.size} points are safe in {str(store.out)!r}: the same call goes on from there"
            )
            raise

    def _compute(self, traced: Traced, boxes: Boxes, numbers: Sequence[int], keep: Callable) -> None:
        share = -(-boxes.points // self.workers)
        capacity = min(boxes.points, _LOOP_CAPACITY) if self.batch == "loop" and len(self.devices) == 1 else share
        program = build(traced, self.grid, capacity, self.batch, self.devices)
        todo = sum(len(boxes.index(number)) for number in numbers)
        with self._bar(todo) as bar:
            results = execute(program, self.grid, boxes, numbers, self.workers, bar.update)
            with contextlib.closing(results):
                for number, outputs in results:
                    keep(number, status.finish(outputs))

    def _bar(self, todo: int) -> tqdm:
        shown = sys.stdout.isatty() and sys.stderr.isatty() if self.progress is None else self.progress
        total, label = self.grid.size, self.name or "sweep"
        return tqdm(
            total=total, initial=total - todo, desc=label, unit="point", disable=not shown, delay=1, dynamic_ncols=True
        )

    def _boxes(self, traced: Traced) -> Boxes:
        chunk = self.chunk or default_chunk(self.grid.size, traced.bytes_per_point, self.batch == "vmap")
        return cut(self.grid.shape, int(chunk))

    def _attributes(self, boxes: Boxes) -> dict:
        config = {
            "function": getattr(self.fn, "__qualname__", type(self.fn).__name__),
            "axes": {name: len(values) for name, values in self.grid.axes.items()},
            "grid": "list of points" if self.grid.listed else "product",
            "chunk": boxes.points,
            "batch": self.batch,
            "workers": self.workers,
            "devices": [str(device) for device in self.devices],
        }
        return dataset.attributes(self.grid, self.name, config)


def _account(computed: int, reused: int, compiles: int, begin: float) -> dict:
    wall_time = round(time.perf_counter() - begin, 3)
    return {"computed": computed, "reused": reused, "compiles": compiles, "wall_time": wall_time}
