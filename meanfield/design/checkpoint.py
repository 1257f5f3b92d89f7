"""Fits on disk: an Orbax checkpoint every so many steps, from which the same call goes on."""

from pathlib import Path

import jax
import numpy as np

from .._types import PyTree
from .record import Record

_KEPT = 2  # the last two, so that one damaged by a kill leaves another


class Saver:
    """Writes and reads the checkpoints of one fit in a folder."""

    def __init__(self, folder: Path, every: int):
        try:
            import orbax.checkpoint as ocp
        except ImportError as error:
            raise ImportError("checkpoint= needs Orbax: pip install 'meanfield[design]'") from error
        self._ocp, self._every, self._folder = ocp, max(1, every), folder
        options = ocp.CheckpointManagerOptions(max_to_keep=_KEPT, enable_async_checkpointing=False)
        handlers = {"arrays": ocp.StandardCheckpointHandler(), "numbers": ocp.JsonCheckpointHandler()}
        self._manager = ocp.CheckpointManager(folder.absolute(), options=options, item_handlers=handlers)

    def maybe_save(self, record: Record) -> None:
        if record.updates % self._every == 0:
            self.save(record)

    def save(self, record: Record) -> None:
        """Orbax writes beside and renames, so that a kill leaves the former checkpoint."""
        if record.updates in self._manager.all_steps() or record.best is None:
            return
        ocp = self._ocp
        numbers = {
            "history": record.history,
            "norms": record.norms,
            "best_at": record.best_at,
            "updates": record.updates,
        }
        arrays = {"free": _listed(record.free), "state": _listed(record.state), "best": _listed(record.best)}
        parts = ocp.args.Composite(arrays=ocp.args.StandardSave(arrays), numbers=ocp.args.JsonSave(numbers))
        self._manager.save(record.updates, args=parts)

    def restore(self, record: Record) -> Record:
        """The newest checkpoint, or `record` where there is none; refused where it is of other parameters."""
        step = self._manager.latest_step()
        if step is None:
            return record
        ocp = self._ocp
        like = {"free": _listed(record.free), "state": _listed(record.state), "best": _listed(record.free)}
        spec = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
        stored = self._manager.item_metadata(step)["arrays"].tree
        if differs := _first_difference(spec, stored):
            raise ValueError(f"checkpoint={str(self._folder)!r} is of another fit ({differs}): give another folder")
        parts = ocp.args.Composite(arrays=ocp.args.StandardRestore(spec), numbers=ocp.args.JsonRestore())
        found = self._manager.restore(step, args=parts)
        arrays, numbers = found["arrays"], found["numbers"]
        updates, best_at = int(numbers["updates"]), int(numbers["best_at"])
        best = _unlisted(record.free, arrays["best"]) if best_at < updates else None
        return Record(
            _unlisted(record.free, arrays["free"]),
            _unlisted(record.state, arrays["state"]),
            list(numbers["history"])[:updates],  # the state after the last update is evaluated again
            list(numbers["norms"])[:updates],
            best,
            0 if best is None else best_at,
            updates=updates,
        )


def _listed(tree: PyTree) -> dict[str, jax.Array]:
    return {f"{i:04d}": leaf for i, leaf in enumerate(jax.tree.leaves(tree))}


def _unlisted(like: PyTree, leaves: dict) -> PyTree:
    return jax.tree.unflatten(jax.tree.structure(like), [leaves[name] for name in sorted(leaves)])


def _first_difference(spec: dict, stored: dict) -> str | None:
    for part, leaves in spec.items():
        there = stored[part]
        if len(leaves) != len(there):
            return f"{part} has {len(leaves)} arrays, the checkpoint {len(there)}"
        for name, leaf in leaves.items():
            if tuple(there[name].shape) != leaf.shape or np.dtype(there[name].dtype) != leaf.dtype:
                return f"{part} {name} is {leaf.dtype}{list(leaf.shape)}, the checkpoint {there[name].dtype}{list(there[name].shape)}"
    return None
