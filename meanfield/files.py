"""Files written whole or not at all."""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def atomic(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A temporary path with the same ending, renamed to `path` when the block succeeds and removed when it fails.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "numbers.txt"
        >>> with mf.files.atomic(path) as temporary:
        ...     _ = temporary.write_text("1 2 3")
        >>> path.read_text()
        '1 2 3'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = pathlib.Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: pathlib.Path, text: str) -> pathlib.Path:
    """Writes `text` to `path` atomically.

    Examples:
        >>> import pathlib, tempfile
        >>> mf.files.write_text(pathlib.Path(tempfile.mkdtemp()) / "a.txt", "text").read_text()
        'text'
    """
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def write_json(path: pathlib.Path, value: object) -> pathlib.Path:
    """Writes `value` as indented JSON atomically; NaN and infinities, which JSON lacks, become strings.

    Examples:
        >>> import pathlib, tempfile
        >>> mf.files.write_json(pathlib.Path(tempfile.mkdtemp()) / "a.json", {"gap": float("inf")}).read_text().split()
        ['{', '"gap":', '"inf"', '}']
    """
    return write_text(path, json.dumps(_json(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_zarr(path: pathlib.Path, data: Any) -> pathlib.Path:
    """Writes an `xarray.Dataset` or `xarray.DataTree` to the Zarr store `path`, replacing it whole.

    Examples:
        >>> import pathlib, tempfile
        >>> import xarray as xr
        >>> data = xr.Dataset({"order": ("time", [0.1, 1.0])})
        >>> mf.files.write_zarr(pathlib.Path(tempfile.mkdtemp()) / "run.zarr", data).name
        'run.zarr'
    """
    import xarray as xr

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.stem}-"))
    try:
        whole = isinstance(data, xr.DataTree)
        plain = data.map_over_datasets(_free_strings) if whole else _free_strings(data)
        plain.to_zarr(temporary / "new", consolidated=False)
        if path.exists():
            path.rename(temporary / "old")
        (temporary / "new").rename(path)
    finally:
        shutil.rmtree(temporary)
    return path


def _free_strings(data):
    """Strings of any length, which Zarr 3 specifies; NumPy's of a fixed length are an extension of one library."""
    return data.assign({name: v.astype(object) for name, v in data.variables.items() if v.dtype.kind == "U"})


def _json(value):
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
