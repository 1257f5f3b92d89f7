"""Results of single batches on disk: written atomically, read back only if whole and of the same run."""

import hashlib
import json
import pathlib
import zipfile
from typing import Any

import jax
import numpy as np

from ..files import atomic, write_json
from .model import Model


def identity(model: Model, ids: np.ndarray, mask: np.ndarray, *choices: object) -> str:
    """A digest of everything that a batch's results depend on."""
    digest = hashlib.sha256(repr((model.spec, str(model.dtype), choices)).encode())
    weights = (
        model.weights.part("exit"),
        model.weights.layer(model.spec.layers - 1),
        model.weights.lookup(ids[:1], model.dtype),
    )
    for array in [ids, mask, *jax.tree.leaves(weights)]:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class BatchStore:
    """A folder of one run's batches; another run's folder is refused."""

    def __init__(self, folder: str | pathlib.Path, run: str):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        manifest = self.folder / "run.identity.json"
        if manifest.exists():
            try:
                found = json.loads(manifest.read_text()).get("identity")
            except ValueError:
                found = None
            if found != run:
                raise ValueError(
                    f"out={str(folder)!r} holds the batches of another model, text or setting: choose another folder"
                )
        else:
            write_json(manifest, {"identity": run})

    def read(self, number: int) -> dict[str, np.ndarray] | None:
        """Batch `number`, or None where it is absent or damaged."""
        try:
            with np.load(self._path(number), allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (FileNotFoundError, zipfile.BadZipFile, ValueError, EOFError, OSError):
            return None

    def write(self, number: int, arrays: dict[str, np.ndarray]) -> None:
        """Stores batch `number` by a temporary file and a rename."""
        named: dict[str, Any] = dict(arrays)  # savez has a boolean argument besides the arrays
        with atomic(self._path(number)) as temporary:
            np.savez(temporary, **named)

    def _path(self, number: int) -> pathlib.Path:
        return self.folder / f"batch-{number:05d}.npz"
