"""The engine of `measure`: one batch up through the layers, and down again with the gradient and the predicted rows.

Going up, only the stream entering every layer is kept; going down, each layer is recomputed, so that one layer's attention is
in memory at a time. A layer's parameters are fetched when it is reached: from memory, or from disk.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Bool, Float, Int
from .layers import Context
from .model import Model, apply_block, contexts, enter
from .spec import Spec
from .statistics import layer_statistics, safe_norm, stream_statistics
from .targets import Target, target_gradient
from .transitions import SQUARED, TRANSITIONS, Layer
from .weights import Params, Stacked, taken

Batch = dict[str, np.ndarray]


def measure_batch(
    model: Model,
    ids: Int[np.ndarray, "B n"],
    mask: Bool[np.ndarray, "B n"],
    keep: Float[np.ndarray, " B"],
    target: Target,
    token: Int[np.ndarray, " B"] | None,
    transitions: tuple[str, ...],
    tick: Callable[[], Any],
) -> Batch:
    """All that one batch shows, per sequence (attention: summed over the sequences with `keep` 1)."""
    spec = model.spec
    where = contexts(spec, model.dtype, mask)
    e = model.weights.lookup(ids, model.dtype)
    entrance = model.weights.part("entrance")
    x = enter(spec, entrance, e, where)
    layers = []
    streams = np.empty((spec.layers, *x.shape), model.dtype)
    attention = np.empty((spec.layers, ids.shape[1], ids.shape[1]), model.dtype)
    for t in range(spec.layers):
        streams[t] = x
        x, attention[t], seen = _up(spec, model.weights.within(t), x, where, mask, keep, t)
        layers.append(jax.tree.map(np.asarray, seen))
        tick()
    last = jax.tree.map(np.asarray, _stream(x, mask))
    value, chosen, gradient = target_gradient(model, _last(x), target, token)
    gradient, start = _start(x, gradient)
    rows = {name: start for name in transitions}
    for t in reversed(range(spec.layers)):
        params, x = model.weights.within(t), jnp.asarray(streams[t])
        gradient = jax.block_until_ready(_down(spec, params, x, where, t, gradient))
        if rows:  # waited for, lest the weights of many layers pile up
            rows = jax.block_until_ready(_carry(spec, params, x, where, mask, t, rows))
        tick()
    influence = _arrive(spec, entrance, e, where, mask, gradient)
    return _collect(layers, last) | {
        "attention": attention,
        "influence": np.asarray(influence),
        "target": np.asarray(value),
        "token": np.asarray(chosen),
        "prediction": _normalise(rows, transitions, np.asarray(mask)),
    }


@functools.partial(jax.jit, static_argnums=0)
def _up(spec: Spec, params: Params | Stacked, x, where: Context, mask, keep, t):
    x_next, trace = apply_block(spec, params, x, where, t)
    with jax.default_matmul_precision("highest"):
        attention = jnp.einsum("bij,b->ij", trace.heads.mean, keep.astype(x.dtype))
        return x_next, attention, layer_statistics(x, trace, mask)


@functools.partial(jax.jit, static_argnums=0)
def _down(spec: Spec, params: Params | Stacked, x, where: Context, t, gradient):
    return jax.vjp(lambda x: apply_block(spec, params, x, where, t)[0], x)[1](gradient)[0]


@functools.partial(jax.jit, static_argnums=0)
def _carry(spec: Spec, params: Params | Stacked, x, where: Context, mask, t, rows: dict):
    # a program of its own: the attention of all heads and what the way down needs are not in memory together
    _, trace = apply_block(spec, params, x, where, t)
    layer = Layer(spec, taken(params), x, trace, mask, jnp.asarray(t, jnp.int32))
    with jax.default_matmul_precision("highest"):
        return {name: TRANSITIONS[name](layer, row) for name, row in rows.items()}


_stream = jax.jit(stream_statistics)


@jax.jit
def _last(x: Float[Array, "B n D"]) -> Float[Array, "B D"]:
    return x[:, -1]


@jax.jit
def _start(x: Float[Array, "B n D"], gradient: Float[Array, "B D"]):
    """The gradient at all positions, and the row e_n of every prediction: both live at the last position."""
    return jnp.zeros_like(x).at[:, -1].set(gradient), jnp.zeros(x.shape[:2], x.dtype).at[:, -1].set(1)


@functools.partial(jax.jit, static_argnums=0)
def _arrive(spec: Spec, entrance: Params, e, where: Context, mask, gradient) -> Float[Array, "B n"]:
    pulled = jax.vjp(lambda e: enter(spec, entrance, e, where), e)[1](gradient)[0]
    return jnp.where(mask, safe_norm(pulled), 0)


def _collect(layers: list, last) -> Batch:
    """Layer by layer to arrays with a leading sequence axis; the stream after the last block closes its statistics."""
    batch: Batch = {}
    for name in ("mixing_token", "mixing", "mixing_norms", "epsilon", "epsilon_mlp", "content"):
        batch[name] = np.stack([getattr(seen, name) for seen in layers], axis=1)
    for name in ("norms", "order", "dimension"):
        batch[name] = np.stack([getattr(s, name) for s in [*(seen.stream for seen in layers), last]], axis=1)
    return batch


def _normalise(rows: dict, transitions: tuple[str, ...], mask: np.ndarray) -> np.ndarray:
    profiles = []
    for name in transitions:
        row = np.abs(np.where(mask, np.asarray(rows[name], np.float64), 0))
        row = np.sqrt(row) if name in SQUARED else row
        profiles.append(row / row.sum(axis=1, keepdims=True))
    return np.stack(profiles, axis=1) if profiles else np.zeros((mask.shape[0], 0, mask.shape[1]))
