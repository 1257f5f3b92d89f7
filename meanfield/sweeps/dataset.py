"""The labelled result of a sweep: dimensions, coordinates, units, and how it was made."""

import importlib.metadata
import json
import platform
from collections.abc import Mapping

import jax
import numpy as np
import xarray as xr

from ..trajectory import FlowStatus
from .grid import Grid
from .status import FLAGS

_PACKAGES = ("meanfield", "jax", "jaxlib", "diffrax", "equinox", "numpy", "xarray", "zarr")


def dims(grid: Grid, name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Dimensions of a variable: those of the grid, then `{variable}_{axis}` for its own."""
    return (*grid.dims, *(f"{name}_{axis}" for axis in range(len(shape))))


def variable_attributes(name: str, units: Mapping[str, str]) -> dict:
    """Units of a variable ("1", a pure number, where the user says nothing) and the meaning of status codes."""
    attributes: dict = {"units": units.get(name, "1")}
    if name == "status":
        meanings = {code.value: code.name.lower() for code in FlowStatus} | FLAGS
        attributes |= {"flag_values": list(meanings), "flag_meanings": " ".join(meanings.values())}
        attributes["comment"] = "0 and above are fn's own codes, here named as those of mf.flow"
    return attributes


def build(grid: Grid, arrays: Mapping[str, np.ndarray], units: Mapping[str, str], attributes: Mapping) -> xr.Dataset:
    """The Dataset of a sweep that was kept in memory."""
    own = len(grid.shape)
    data = {
        name: (dims(grid, name, value.shape[own:]), value, variable_attributes(name, units))
        for name, value in arrays.items()
    }
    coordinates = {name: (grid.dims_of(name), v, variable_attributes(name, units)) for name, v in grid.axes.items()}
    return xr.Dataset(data, coordinates, dict(attributes))


def attributes(grid: Grid, name: str | None, config: Mapping) -> dict:
    """What identifies a run: name, configuration, versions, seeds and the dtype of floats (JSON where it is nested)."""
    versions = {"python": platform.python_version()} | {p: v for p in _PACKAGES if (v := _version(p))}
    seeds = grid.axes.get("seed")
    return {
        "name": name or "",
        "config": json.dumps(dict(config)),
        "versions": json.dumps(versions),
        "seed": json.dumps(None if seeds is None else np.unique(seeds).tolist()),
        "dtype": str(np.dtype(jax.dtypes.canonicalize_dtype(np.float64))),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
