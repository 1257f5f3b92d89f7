"""Hugging Face folders: config.json and safetensors, one file or sharded; memory-mapped, nothing unpickled."""

import json
import pathlib
from typing import Any

import ml_dtypes
import numpy as np

from .tensors import Tensors

_DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
_LARGEST_JSON = 64 * 2**20


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """A JSON object of bounded size, or an error naming the file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing")
    if path.stat().st_size > _LARGEST_JSON:
        raise ValueError(f"{path} has {path.stat().st_size} bytes; a configuration or index of this size is refused")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a {type(value).__name__}; a JSON object is expected")
    return value


class Safetensors(Tensors):
    """The tensors of a folder's safetensors files, memory-mapped."""

    def __init__(self, folder: pathlib.Path):
        self.path = str(folder)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._where: dict[str, tuple[pathlib.Path, np.dtype, int]] = {}
        weight_map = _index(folder)
        files = sorted(set(weight_map.values())) if weight_map else ["model.safetensors"]
        for file in files:
            self._open(folder / file)
        for name, file in (weight_map or {}).items():
            if name not in self._where or self._where[name][0] != folder / file:
                raise ValueError(f"{folder}: the index puts {name} into {file}, which does not have it")

    def read(self, name: str) -> np.ndarray:
        """The tensor as a view of the mapped file."""
        path, dtype, offset = self._where[name]
        shape = self.shapes[name]
        if 0 in shape:
            return np.zeros(shape, dtype)
        return np.memmap(path, dtype, mode="r", offset=offset, shape=shape)

    def _open(self, path: pathlib.Path) -> None:
        from safetensors import SafetensorError, safe_open

        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: the index names it; download this shard again")
        try:
            with safe_open(path, "numpy"):  # the library checks header, offsets, overlaps and length
                pass
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is not a valid safetensors file: {error}") from error
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            if name in self.shapes:
                raise ValueError(f"{self.path}: tensor {name} is in two files, one of them {path.name}")
            if entry["dtype"] not in _DTYPES:
                if entry["dtype"] not in (
                    "BOOL",
                    "U8",
                    "I64",
                    "I32",
                ):  # buffers; refused later if a parameter needs one
                    raise ValueError(
                        f"{path}: tensor {name} has dtype {entry['dtype']}; only {', '.join(_DTYPES)} are read"
                    )
                entry["dtype"] = "F32"
                self.shapes[name] = (-1,)
                continue
            self.shapes[name] = tuple(entry["shape"])
            self._where[name] = (path, _DTYPES[entry["dtype"]], 8 + length + entry["data_offsets"][0])


def _index(folder: pathlib.Path) -> dict[str, str] | None:
    path = folder / "model.safetensors.index.json"
    if not path.exists():
        if (folder / "model.safetensors").is_file():
            return None
        pickled = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for p in folder.glob(pattern))
        found = f" (found {', '.join(pickled[:3])}: pickled weights are never opened)" if pickled else ""
        raise ValueError(f"{folder} has no model.safetensors{found}; convert the checkpoint to safetensors first")
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"{path}: weight_map is missing or empty")
    for name, file in weight_map.items():
        plain = isinstance(file, str) and file == pathlib.PurePath(file).name and file.endswith(".safetensors")
        if not plain or "\\" in file or (folder / file).resolve().parent != folder.resolve():
            raise ValueError(
                f"{path}: {name} is put into {file!r}; an index may name only .safetensors files of its own folder"
            )
    return weight_map
