"""`meanfield sweep FILE.toml`: a parameter grid from a file."""

import json
import pathlib
import sys
import tomllib
from dataclasses import dataclass, fields
from typing import Annotated, Literal

import jax
import numpy as np
import tyro

from . import plot
from .sweeps import sweep as run_sweep
from .sweeps.model import Model

EXAMPLE = """\
name = "phase-diagram"

[model]
dynamics = "SA"                          # USA or SA
kernel = "ExpDot(beta, shift=1)"         # Dot ExpDot RoPE Toeplitz Cosine ExponentialDecay Gaussian, + - *, axes by name
labels = "circle"                        # circle, interval, positions
tokens = 64
dim = 3
end = 20.0                               # last time; an expression such as "10 * beta" too
saves = 21
outputs = ["order", "energy", "clusters"]  # also x, dimension, collapse_time

[grid]
beta = { start = 0.5, stop = 8.0, num = 16 }  # spacing = "log" for equal ratios; or a list of numbers
seed = { count = 8 }                          # 0 … 7

[[figure]]
variable = "order"
x = "beta"
"""


@dataclass(frozen=True)
class SweepOptions:
    """Where the sweep is described and where its results go."""

    file: Annotated[pathlib.Path | None, tyro.conf.Positional] = None
    """Description of the sweep (TOML)."""
    out: pathlib.Path | None = None
    """Folder of the results; default: runs/ and the name of the file."""
    chunk: int | None = None
    """Points computed and written together: what a kill may lose."""
    workers: int | None = None
    """Threads; default: one per core."""
    seed: int | None = None
    """A single seed in place of the grid's."""
    dtype: Literal["float64", "float32"] = "float64"
    """Floating precision."""
    example: bool = False
    """Print an example of a file and stop."""


def sweep(options: Annotated[SweepOptions, tyro.conf.arg(name="")]) -> int:
    """Run a parameter grid from a TOML file into a Zarr store and figures; the same command goes on after a kill.

    The store is OUT/sweep.zarr (xarray.open_zarr reads it), each figure a PNG with its numbers beside it. `--example`
    prints a file to begin from.
    """
    if options.example:
        sys.stdout.write(EXAMPLE)
        return 0
    if options.file is None:
        raise ValueError("FILE.toml is missing: give one, or begin from `meanfield sweep --example > sweep.toml`")
    config = _read(options.file)
    axes = {name: _axis(name, values) for name, values in config["grid"].items()}
    if options.seed is not None:
        axes["seed"] = np.array([options.seed])
    model = _model(config["model"])
    out = options.out or pathlib.Path("runs") / options.file.stem
    with jax.enable_x64(options.dtype == "float64"):
        model.check(axes)
        name = f"{config.get('name', options.file.stem)}: {model}"  # another model is refused in the same store
        ds = run_sweep(model, axes, out / "sweep.zarr", options.chunk, name, workers=options.workers)
    for i, figure in enumerate(config.get("figure", [])):
        _figure(ds, dict(figure), out, i)
    failed = int((~ds["ok"]).sum())
    sys.stdout.write(
        f"computed {ds.attrs['computed']}, reused {ds.attrs['reused']}, failed {failed} of {ds['ok'].size} points\n"
    )
    sys.stdout.write(f"written to {out}\n")
    return 0 if failed == 0 else 1


def _read(path: pathlib.Path) -> dict:
    if not path.is_file():
        raise ValueError(f"{path} does not exist: begin from `meanfield sweep --example > {path}`")
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no TOML: {error}; `meanfield sweep --example` shows a file") from error
    if unknown := set(config) - {"name", "model", "grid", "figure"}:
        raise ValueError(f"{path}: {min(unknown)!r} is unknown: a sweep has name, [model], [grid] and [[figure]]")
    for table in ("model", "grid"):
        if not isinstance(config.get(table), dict) or not config[table]:
            raise ValueError(f"{path}: the table [{table}] is missing; `meanfield sweep --example` shows one")
    return config


def _model(table: dict) -> Model:
    known = {field.name for field in fields(Model)}
    if unknown := set(table) - known:
        raise ValueError(f"[model] has {min(unknown)!r}, which is unknown: use {', '.join(map(repr, sorted(known)))}")
    if "kernel" not in table:
        raise ValueError("[model] needs a kernel, such as kernel = 'ExpDot(beta, shift=1)'")
    return Model(**{name: tuple(value) if isinstance(value, list) else value for name, value in table.items()})


def _axis(name: str, values: object) -> np.ndarray:
    """An axis from a list, a number, {count} or {start, stop, num, spacing}."""
    if isinstance(values, dict):
        match sorted(values):
            case ["count"]:
                return np.arange(int(values["count"]))
            case ["num", "start", "stop"] | ["num", "spacing", "start", "stop"]:
                spacing = values.get("spacing", "linear")
                if spacing not in ("linear", "log"):
                    raise ValueError(f"[grid] {name}: spacing={spacing!r} is 'linear' or 'log'")
                make = np.linspace if spacing == "linear" else np.geomspace
                return make(float(values["start"]), float(values["stop"]), int(values["num"]))
        raise ValueError(f"[grid] {name} has {sorted(values)}: give a list, {{count}} or {{start, stop, num, spacing}}")
    return np.atleast_1d(np.asarray(values))


def _figure(ds, figure: dict, out: pathlib.Path, number: int) -> None:
    known = {"variable", "x", "y", "spread", "at", "title", "file"}
    if unknown := set(figure) - known:
        raise ValueError(
            f"[[figure]] has {min(unknown)!r}, which is unknown: use {', '.join(map(repr, sorted(known)))}"
        )
    if "variable" not in figure:
        raise ValueError(f"[[figure]] {number} names no variable: use one of {', '.join(map(str, ds.data_vars))}")
    file = figure.pop("file", f"{number:02d}-{figure['variable']}.png")
    if isinstance(figure.get("spread"), list):
        figure["spread"] = tuple(figure["spread"])
    variable = ds[figure["variable"]]
    numbers = {"values": variable.values} | {str(name): c.values for name, c in variable.coords.items()}
    plot.save(
        plot.sweep(ds, **figure),
        out / file,
        numbers | {"ok": ds["ok"].values, "attrs": np.array(json.dumps(_plain(ds.attrs)))},
    )


def _plain(attributes: dict) -> dict:
    return {name: value if isinstance(value, (str, int, float)) else str(value) for name, value in attributes.items()}
