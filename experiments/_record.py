"""What experiments share: sizes, starts, and how numbers and figures are written."""

import pathlib

import jax
import jax.numpy as jnp

import meanfield as mf

SIZES = (64, 128, 256)


def sizes(smoke: bool) -> tuple[int, ...]:
    """Numbers of tokens of a dynamics experiment."""
    return (12,) if smoke else SIZES


def times(end: float = 20.0, frames: int = 81) -> jax.Array:
    """Equispaced save times from 0."""
    return jnp.linspace(0.0, end, frames)


def start(n: int, seed: int, d: int = 3) -> jax.Array:
    """Independent uniform tokens (n, d) of a seed."""
    return mf.sphere.sample(jax.random.fold_in(jax.random.key(seed), n), (n, d))


def save_runs(out: pathlib.Path, runs: dict[str, mf.Trajectory]) -> None:
    """Writes all trajectories, one group each, to `out`/trajectories.zarr."""
    import xarray as xr

    tree = xr.DataTree.from_dict({name: run.to_xarray() for name, run in runs.items()})
    mf.files.write_zarr(out / "trajectories.zarr", tree)


def save_table(out: pathlib.Path, name: str, rows: list[dict]) -> None:
    """Writes rows of equal keys as `out`/`name`.csv."""
    head = list(rows[0])
    lines = [",".join(head)] + [
        ",".join(f"{row[key]:.10g}" if not isinstance(row[key], str) else row[key] for key in head) for row in rows
    ]
    mf.files.write_text(out / f"{name}.csv", "\n".join(lines) + "\n")


def worst(values) -> float:
    """The largest of measured numbers, NaN if any is NaN: a claim is as good as its worst case."""
    return float(jnp.max(jnp.asarray(list(values))))


def least(values) -> float:
    """The smallest of measured numbers, NaN if any is NaN."""
    return float(jnp.min(jnp.asarray(list(values))))
