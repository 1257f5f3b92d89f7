"""A sweep on disk: a Zarr group that xarray opens, one chunk file for each variable of each box, and a ledger of checksums.

A box counts as done when the ledger, written last, has the digests of all its files and the files have them too. A kill
at any moment, a truncated file or a full disk therefore costs boxes, never a wrong number.
"""

import glob
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
import xarray as xr
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from .dataset import dims, variable_attributes
from .grid import Boxes, Grid, first_difference
from .status import fill_value

_OURS = ".meanfield"  # a folder of the store that Zarr does not look into
_VERSION = 1
Variables = Mapping[str, tuple[tuple[int, ...], np.dtype]]


class Store:
    """An open store; make one by `create` or `reopen`."""

    def __init__(self, out: Path):
        self.out = out
        self.identity = json.loads((out / _OURS / "identity.json").read_text())
        self.boxes = Boxes(tuple(self.identity["shape"]), tuple(self.identity["edge"]))
        self.variables: Variables = {
            name: (tuple(spec["shape"]), np.dtype(spec["dtype"])) for name, spec in self.identity["variables"].items()
        }
        self._group = zarr.open_group(out, mode="r+", use_consolidated=False)
        self._ledger = out / _OURS / "ledger.jsonl"

    def done(self) -> dict[int, str]:
        """Boxes whose files are all there and whole, with the fingerprint of the code that computed each."""
        entries = {}
        for line in self._ledger.read_text(errors="replace").splitlines() if self._ledger.exists() else ():
            try:
                entry = json.loads(line)
                entries[entry["box"]] = entry
            except (ValueError, KeyError, TypeError):  # a line cut short by a kill or a full disk
                continue
        return {number: entry["code"] for number, entry in entries.items() if self._digests(number) == entry["files"]}

    def write(self, number: int, values: Mapping[str, np.ndarray], code: str) -> None:
        """Writes the variables of a box (each file by rename), then its line in the ledger."""
        place = self.boxes.slices(number)
        sizes = tuple(s.stop - s.start for s in place)
        for name, (shape, dtype) in self.variables.items():
            self._array(name)[place] = values[name].reshape(*sizes, *shape).astype(dtype)
        line = json.dumps({"box": number, "code": code, "files": self._digests(number)})
        with self._ledger.open("a") as ledger:
            ledger.write(f"\n{line}\n")  # the first newline ends a line that an earlier run left cut short
            ledger.flush()
            os.fsync(ledger.fileno())

    def _array(self, name: str) -> zarr.Array:
        return cast(zarr.Array, self._group[name])

    def _digests(self, number: int) -> dict[str, str | None]:
        digests = {}
        for name, (shape, _) in self.variables.items():
            key = "/".join(map(str, (*self.boxes.place(number), *(0 for _ in shape))))
            file = self.out / name / "c" / key
            # Zarr leaves out a chunk that holds nothing but the fill value, as where every point of a box failed
            digests[name] = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() if file.is_file() else None
        return digests

    def check_variables(self, variables: Variables) -> None:
        """Refuses a function that returns other keys, shapes or dtypes than the store holds."""
        for name in (*self.variables, *variables):
            old, new = self.variables.get(name), variables.get(name)
            if old != new:
                told = [f"{v[1]}{list(v[0])}" if v else "nothing" for v in (old, new)]
                remedy = "give another out, or the function and precision that began this one"
                raise ValueError(
                    f"output {name!r}: the store {str(self.out)!r} holds {told[0]}, fn returns {told[1]}: {remedy}"
                )

    def check_metadata(self) -> None:
        """Raises where the description of a variable cannot be read."""
        for name in self.variables:
            self._array(name)

    def update(self, attributes: Mapping) -> None:
        """Replaces attributes of the group, atomically; its consolidated metadata stays."""
        path = self.out / "zarr.json"
        metadata = json.loads(path.read_text())
        metadata["attributes"] |= dict(attributes)
        _write(path, json.dumps(metadata, indent=2))

    def dataset(self) -> xr.Dataset:
        with xr.open_zarr(self.out, chunks=None, decode_times=False) as lazy:
            return lazy.load()


def reopen(out: Path, grid: Grid, name: str | None) -> Store | None:
    """The store at `out`, None where there is none; refused where it is of another grid or name, or no store of a sweep."""
    _sweep_up(out)
    if not out.exists():
        return None
    if not (out / _OURS / "identity.json").is_file():
        raise ValueError(f"out={str(out)!r} exists and is no store of a sweep: give another path")
    try:
        store = Store(out)
        store.check_metadata()
        stored = Grid({k: np.asarray(store._array(k)[...]) for k in store.identity["axes"]}, store.identity["listed"])
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(
            f"out={str(out)!r}: the description of the store is damaged ({error}): give another path"
        ) from error
    if store.identity["version"] != _VERSION:
        raise ValueError(
            f"out={str(out)!r} has format {store.identity['version']}, this is {_VERSION}: give another path"
        )
    if store.identity["name"] != name:
        raise ValueError(
            f"out={str(out)!r} is the store of name={store.identity['name']!r}, not {name!r}: give another out"
        )
    if difference := first_difference(stored, grid):
        raise ValueError(f"out={str(out)!r} is the store of another grid; {difference}: give another out")
    return store


def create(
    out: Path,
    grid: Grid,
    name: str | None,
    boxes: Boxes,
    variables: Variables,
    units: Mapping[str, str],
    attributes: Mapping,
) -> Store:
    """Makes the empty store beside `out` and moves it there whole. What is not computed yet reads as NaN and status -2."""
    identity = {
        "version": _VERSION, "name": name, "axes": list(grid.axes), "listed": grid.listed,
        "shape": boxes.shape, "edge": boxes.edge,
        "variables": {k: {"shape": shape, "dtype": dtype.str} for k, (shape, dtype) in variables.items()},
    }  # fmt: skip
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".new", dir=out.parent))
    try:
        _skeleton(made, grid, boxes, variables, units, attributes)
        (made / _OURS).mkdir()
        (made / _OURS / "identity.json").write_text(json.dumps(identity, indent=2))
        made.chmod(0o755)  # mkdtemp's is private
        made.rename(out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return Store(out)


def _skeleton(
    path: Path, grid: Grid, boxes: Boxes, variables: Variables, units: Mapping[str, str], attributes: Mapping
) -> None:
    listed = {"coordinates": " ".join(grid.axes)} if grid.listed else {}
    group = zarr.create_group(path, zarr_format=3, attributes={**attributes, **listed})
    codecs = [ZstdCodec(), Crc32cCodec()]  # the checksum: a damaged chunk is an error in xarray too
    for name, values in grid.axes.items():
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=values.shape, dimension_names=grid.dims_of(name),
            attributes=variable_attributes(name, units), compressors=codecs,
            fill_value=np.zeros((), values.dtype).item(),
        )  # fmt: skip
        array[...] = values
    for name, (shape, dtype) in variables.items():
        group.create_array(
            name, shape=(*boxes.shape, *shape), dtype=dtype, chunks=(*boxes.edge, *(max(1, n) for n in shape)), compressors=codecs,
            dimension_names=dims(grid, name, shape), attributes=variable_attributes(name, units),
            fill_value=fill_value(name, dtype),
        )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Consolidated metadata", UserWarning)
        zarr.consolidate_metadata(group.store)


def _sweep_up(out: Path) -> None:
    """Removes what a killed run left half made; the caller holds the lock, so that nobody is making it now."""
    for left in out.parent.glob(f".{glob.escape(out.name)}.*.new"):
        shutil.rmtree(left, ignore_errors=True)
    for left in out.rglob("*.partial") if out.is_dir() else ():
        left.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)
