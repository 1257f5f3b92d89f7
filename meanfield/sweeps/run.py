"""One call of a sweep: what is computed, on what, and where it is kept."""

import contextlib
import logging
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from .._machine import cores
from . import dataset, status
from .executor import execute
from .fingerprint import fingerprint
from .grid import Boxes, Grid, cut, default_chunk
from .program import Batch, Traced, build, choose_batch, choose_devices, trace
from .store import Store, create, reopen

_log = logging.getLogger(__name__)
_LOOP_CAPACITY = 32  # most points in one call of the counted loop; it takes fewer where they are slow


class Run:
    """The arguments of one call, and the two ways of keeping what it computes."""

    def __init__(
        self,
        fn: Callable,
        grid: Grid,
        chunk: int | None,
        name: str | None,
        batch: Batch,
        devices: Sequence[jax.Device] | None,
        workers: int | None,
        units: Mapping[str, str],
        progress: bool | None,
    ):
        self.fn, self.grid, self.chunk, self.name, self.units, self.progress = fn, grid, chunk, name, units, progress
        self.devices = choose_devices(devices)
        self.batch = choose_batch(batch, self.devices)
        on_cpu = self.devices[0].platform == "cpu" and len(self.devices) == 1
        self.workers = (workers or cores()) if on_cpu else 1
        self.compile_time = 0.0

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
        run = self._attributes(boxes) | self._account(self.grid.size, 0, 1, begin)
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
            return store.dataset().assign_attrs(self._account(0, self.grid.size, 0, begin))
        traced = trace(self.fn, self.grid)
        variables = status.variables(traced.outputs)
        if store is None:
            boxes = self._boxes(traced)
            store = create(out, self.grid, self.name, boxes, variables, self.units, self._attributes(boxes))
        store.check_variables(variables)
        missing = [number for number in range(len(store.boxes)) if number not in done]
        computed = sum(len(store.boxes.index(number)) for number in missing)
        self._compute_into(store, traced, missing, code)
        account = self._account(computed, self.grid.size - computed, 1, begin)
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
        begin = time.perf_counter()
        program = build(traced, self.grid, capacity, self.batch, self.devices)
        self.compile_time = time.perf_counter() - begin
        todo = sum(len(boxes.index(number)) for number in numbers)
        with self._bar(todo) as bar:
            results = execute(program, self.grid, boxes, numbers, self.workers, bar.update)
            with contextlib.closing(results):
                for number, outputs in results:
                    keep(number, status.finish(outputs))

    def _bar(self, todo: int) -> tqdm:
        shown = sys.stdout.isatty() and sys.stderr.isatty() if self.progress is None else self.progress
        total, label = self.grid.size, (self.name or "sweep")[:24]
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

    def _account(self, computed: int, reused: int, compiles: int, begin: float) -> dict:
        times = {"wall_time": time.perf_counter() - begin, "compile_time": self.compile_time}
        return {"computed": computed, "reused": reused, "compiles": compiles} | {
            k: round(v, 3) for k, v in times.items()
        }
