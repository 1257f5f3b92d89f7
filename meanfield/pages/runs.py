"""Finds the trajectories in what `meanfield flow` or `meanfield experiment run` wrote."""

import json
import os
import pathlib
import re

import xarray as xr

STORES = (".zarr", ".nc")
ANGLES = ("circle", "uniform")


def read_runs(path: str | os.PathLike) -> dict[str, xr.Dataset]:
    """{name: dataset with x (time, token, coordinate)} of a .zarr or .nc store, or of all stores in a run's folder, by name.

    Raises `ValueError` where there are none.

    Examples:
        >>> import pathlib, tempfile
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> traj = mf.flow(mf.USA(mf.Dot()), x, mf.Marginal.circle(4), jnp.linspace(0.0, 2.0, 5))
        >>> store = mf.files.write_zarr(pathlib.Path(tempfile.mkdtemp()) / "run.zarr", traj.to_xarray())
        >>> [run.sizes["token"] for run in mf.pages.read_runs(store).values()]
        [4]
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise ValueError(f"{path} does not exist: pass the folder given to `meanfield flow --out`, or a .zarr in it")
    stores = [path] if path.suffix in STORES else sorted(p for p in path.iterdir() if p.suffix in STORES)
    found = {}
    for store in stores:
        for name, data in _groups(store):
            if "x" in data and data["x"].dims == ("time", "token", "coordinate"):
                found[name if len(stores) == 1 else f"{store.stem} {name}".strip()] = data
    if not found:
        kinds = ", ".join(store.name for store in stores) or "no .zarr or .nc"
        raise ValueError(
            f"{path} holds no trajectory ({kinds}): a run of `meanfield flow`, or one that keeps positions"
        )
    return dict(sorted(found.items(), key=lambda item: _natural(item[0])))


def has_angles(path: str | os.PathLike) -> bool:
    """Whether run.json beside the store says that labels are angles."""
    path = pathlib.Path(path)
    record = (path.parent if path.suffix in STORES else path) / "run.json"
    if not record.is_file():
        return False
    return json.loads(record.read_text("utf-8")).get("arguments", {}).get("labels") in ANGLES


def _groups(store: pathlib.Path):
    engine = "zarr" if store.suffix == ".zarr" else None
    options = {"consolidated": False} if engine == "zarr" else {}
    with xr.open_datatree(store, engine=engine, **options) as tree:
        for node in tree.subtree:
            if node.data_vars:
                yield node.path.strip("/"), node.to_dataset(inherit=False).load()


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts "n = 64" before "n = 128"."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
