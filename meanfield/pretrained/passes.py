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
from .weights import Params

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
    streams, layers = [], []
    for t in range(spec.layers):
        streams.append(x)
        x, seen = _up(spec, model.weights.layer(t), x, where, mask, keep, t)
        layers.append(jax.tree.map(np.asarray, seen))
        tick()
    last = jax.tree.map(np.asarray, _stream(x, mask))
    value, chosen, gradient = target_gradient(model, _last(x), target, token)
    gradient, start = _start(x, gradient)
    rows = {name: start for name in transitions}
    for t in reversed(range(spec.layers)):
        down = _down(spec, model.weights.layer(t), streams.pop(), where, mask, t, gradient, rows)
        gradient, rows = jax.block_until_ready(down)  # before the next layer is read, lest the weights of many pile up
        tick()
    influence = _arrive(spec, entrance, e, where, mask, gradient)
    return _collect(layers, last) | {
        "influence": np.asarray(influence),
        "target": np.asarray(value),
        "token": np.asarray(chosen),
        "prediction": _normalise(rows, transitions, np.asarray(mask)),
    }


@functools.partial(jax.jit, static_argnums=0)
def _up(spec: Spec, params: Params, x, where: Context, mask, keep, t):
    x_next, trace = apply_block(spec, params, x, where, t)
    with jax.default_matmul_precision("highest"):
        return x_next, layer_statistics(x, trace, where, mask, keep.astype(x.dtype))


@functools.partial(jax.jit, static_argnums=0)
def _down(spec: Spec, params: Params, x, where: Context, mask, t, gradient, rows: dict):
    _, pull, trace = jax.vjp(lambda x: apply_block(spec, params, x, where, t), x, has_aux=True)
    layer = Layer(spec, params, x, trace, mask, jnp.asarray(t, jnp.int32))
    with jax.default_matmul_precision("highest"):
        rows = {name: TRANSITIONS[name](layer, row) for name, row in rows.items()}
    return pull(gradient)[0], rows


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
    batch["attention"] = np.stack([seen.attention for seen in layers])
    return batch


def _normalise(rows: dict, transitions: tuple[str, ...], mask: np.ndarray) -> np.ndarray:
    profiles = []
    for name in transitions:
        row = np.abs(np.where(mask, np.asarray(rows[name], np.float64), 0))
        row = np.sqrt(row) if name in SQUARED else row
        profiles.append(row / row.sum(axis=1, keepdims=True))
    return np.stack(profiles, axis=1) if profiles else np.zeros((mask.shape[0], 0, mask.shape[1]))
