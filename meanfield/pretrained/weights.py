"""Where a model's numbers are: in memory, or on disk and read layer by layer."""

import functools
from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, Int
from .checkpoint.layout import Checkpoint, unflatten

Params = dict[str, Any]
HEAD_ROWS = 16384


class Weights(eqx.Module):
    """A source of parameters. Shapes: ids (B, n), hidden (B, D), scores (B, V)."""

    @abstractmethod
    def part(self, name: str) -> Params:
        """Parameters of "entrance" or "exit"."""

    @abstractmethod
    def layer(self, t: int) -> Params:
        """Parameters of block t."""

    def within(self, t: int) -> "Params | Stacked":
        """Parameters of block t for a jitted function, which takes them out by `taken`: none are copied outside of it."""
        return self.layer(t)

    @abstractmethod
    def lookup(self, ids: Int[Array | np.ndarray, "B n"], dtype: np.dtype) -> Float[Array, "B n D"]:
        """Rows of the embedding."""

    @abstractmethod
    def project(self, hidden: Float[Array, "*b D"]) -> Float[Array, "*b V"]:
        """Scores of every token: hidden Hᵀ with H (V, D) the head."""

    @abstractmethod
    def pull(self, scores: Float[Array, "*b V"]) -> Float[Array, "*b D"]:
        """The transpose of `project`: scores H."""


class Stacked(NamedTuple):
    """One layer's parameters, still in the stack of all."""

    blocks: Params
    layer: int | Int[Array, ""]


def taken(params: Params | Stacked) -> Params:
    """The parameters themselves."""
    if not isinstance(params, Stacked):
        return params
    return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, params.layer, keepdims=False), params.blocks)


class Resident(Weights):
    """Parameters in memory, a differentiable pytree; `blocks` are stacked along a leading axis of layers."""

    embedding: Float[Array, "V D"]
    head: Float[Array, "V D"] | None
    entrance: Params
    exit: Params
    blocks: Params

    def part(self, name: str) -> Params:
        return self.entrance if name == "entrance" else self.exit

    def layer(self, t: int) -> Params:
        return _taken(self.within(t))

    def within(self, t: int) -> Stacked:
        return Stacked(self.blocks, t)

    def lookup(self, ids: Int[Array | np.ndarray, "B n"], dtype: np.dtype) -> Float[Array, "B n D"]:
        return _rows(self.embedding, ids, dtype)

    def project(self, hidden: Float[Array, "*b D"]) -> Float[Array, "*b V"]:
        return _times_transposed(hidden, self._head)

    def pull(self, scores: Float[Array, "*b V"]) -> Float[Array, "*b D"]:
        return _times(scores, self._head)

    @property
    def _head(self) -> Float[Array, "V D"]:
        return self.embedding if self.head is None else self.head


class Streamed(Weights):
    """Parameters on disk: a layer is in memory only while it is used, the embedding row by row, the head in slices."""

    checkpoint: Checkpoint = eqx.field(static=True)

    def part(self, name: str) -> Params:
        return _read(self.checkpoint, name)

    def layer(self, t: int) -> Params:
        return _read(self.checkpoint, "block", t)

    def lookup(self, ids: Int[Array | np.ndarray, "B n"], dtype: np.dtype) -> Float[Array, "B n D"]:
        name = self.checkpoint.layout.sources["embedding"].name
        rows = np.asarray(self.checkpoint.tensors.read(name)[np.asarray(ids)])
        if not np.isfinite(rows).all():
            raise ValueError(
                f"{self.checkpoint.tensors.path}: tensor {name} has NaN or infinite entries; the file is damaged"
            )
        return jnp.asarray(rows).astype(dtype)

    def project(self, hidden: Float[Array, "*b D"]) -> Float[Array, "*b V"]:
        parts = [jax.block_until_ready(_times_transposed(hidden, rows)) for rows in self._head_slices()]
        return jnp.concatenate(parts, axis=-1)

    def pull(self, scores: Float[Array, "*b V"]) -> Float[Array, "*b D"]:
        total, start = jnp.zeros((*scores.shape[:-1], self.checkpoint.spec.dim), scores.dtype), 0
        for rows in self._head_slices():
            total = jax.block_until_ready(total + _times(scores[..., start : start + rows.shape[0]], rows))
            start += rows.shape[0]
        return total

    def _head_slices(self):
        source = self.checkpoint.layout.sources["embedding" if self.checkpoint.spec.tied else "head"]
        matrix = self.checkpoint.tensors.read(source.name)
        for start in range(0, matrix.shape[0], HEAD_ROWS):
            yield jnp.asarray(np.asarray(matrix[start : start + HEAD_ROWS]))


def resident(checkpoint: Checkpoint) -> Resident:
    """All parameters of a checkpoint, in the files' own precision."""
    layers = range(checkpoint.spec.layers)
    blocks = {
        key.removeprefix("block/"): jnp.asarray(np.stack([checkpoint.read(key, t) for t in layers]))
        for key in checkpoint.keys("block")
    }
    return Resident(
        embedding=jnp.asarray(np.asarray(checkpoint.read("embedding"))),
        head=None if checkpoint.spec.tied else jnp.asarray(np.asarray(checkpoint.read("head"))),
        entrance=_read(checkpoint, "entrance"),
        exit=_read(checkpoint, "exit"),
        blocks=unflatten(blocks),
    )


def _read(checkpoint: Checkpoint, part: str, layer: int | None = None) -> Params:
    flat = {key.removeprefix(part + "/"): checkpoint.read(key, layer) for key in checkpoint.keys(part)}
    return unflatten({key: jnp.asarray(np.ascontiguousarray(value)) for key, value in flat.items()})


_taken = jax.jit(taken)


@functools.partial(jax.jit, static_argnums=2)
def _rows(
    embedding: Float[Array, "V D"], ids: Int[Array | np.ndarray, "B n"], dtype: np.dtype
) -> Float[Array, "B n D"]:
    return embedding[ids].astype(dtype)


@jax.jit
def _times_transposed(hidden: Float[Array, "*b D"], head: Float[Array, "V D"]) -> Float[Array, "*b V"]:
    return jnp.matmul(hidden, head.astype(hidden.dtype).T, precision="highest")


@jax.jit
def _times(scores: Float[Array, "*b V"], head: Float[Array, "V D"]) -> Float[Array, "*b D"]:
    return jnp.matmul(scores, head.astype(scores.dtype), precision="highest")
