"""A causal language model: a spec and its weights, and the pure functions of both."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._check import is_concrete
from .._types import Array, Bool, Float, Int, Key
from .block import Block, Entrance, Exit
from .layers import Context, context
from .spec import Spec
from .weights import Params, Resident, Stacked, Weights, taken

Ids = Int[Array | np.ndarray, "B n"]
Mask = Bool[Array | np.ndarray, "B n"] | Int[Array | np.ndarray, "B n"] | None


class Model(eqx.Module):
    """A decoder-only language model.

    `weights` are a differentiable pytree when they are in memory, else they are read from disk layer by layer. `dtype` is the
    precision of the arithmetic (float32 unless asked otherwise), whatever the files store. `tokenizer`: a `tokenizers.Tokenizer`
    or None.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> model = mf.pretrained.initialise(spec, jax.random.key(0))
        >>> bool(jnp.isfinite(model.logits(np.arange(6)[None])).all())
        True
    """

    spec: Spec = eqx.field(static=True)
    weights: Weights
    dtype: np.dtype = eqx.field(static=True)
    tokenizer: Any = eqx.field(static=True, default=None)

    def logits(self, ids: Ids, mask: Mask = None) -> Float[Array, "B n V"]:
        """Scores of the next token at every position.

        Args:
            ids: token ids (B, n).
            mask: (B, n), 1 or True for real tokens; padding anywhere. Positions count real tokens only.

        Returns:
            (B, n, vocab) in the model's dtype; rows of padding are finite and without meaning.

        Raises:
            ValueError: ids outside the vocabulary, more positions than the model has, a mask of another shape.
        """
        ids, mask = checked(self, ids, mask)
        if isinstance(self.weights, Resident):
            return _logits(self.spec, self.dtype, self.weights, ids, mask)
        where = contexts(self.spec, self.dtype, mask)
        x = enter(self.spec, self.weights.part("entrance"), self.weights.lookup(ids, self.dtype), where)
        for t in range(self.spec.layers):
            x = jax.block_until_ready(advance(self.spec, self.weights.layer(t), x, where, t))
        return self.weights.project(leave(self.spec, self.weights.part("exit"), x))

    def encode(self, text: str) -> np.ndarray:
        """Token ids of a text, without special tokens."""
        if self.tokenizer is None:
            raise ValueError(
                "this checkpoint has no tokenizer.json (or GGUF vocabulary) that can be read: pass token ids"
            )
        return np.asarray(self.tokenizer.encode(text, add_special_tokens=False).ids, np.int32)


def checked(model: Model, ids: Ids, mask: Mask) -> tuple[Int[Array, "B n"], Bool[Array, "B n"]]:
    """ids as int32 and mask as bool, after the checks that `Model.logits` names."""
    if not isinstance(model, Model):
        raise ValueError(f"model is a {type(model).__name__}: pass mf.pretrained.load(path)")
    spec = model.spec
    if ids.ndim != 2 or ids.shape[1] < 1 or ids.shape[0] < 1:
        raise ValueError(
            f"ids has shape {ids.shape}: pass token ids (sequences, length), e.g. ids[None] for one sequence"
        )
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise ValueError(f"ids has dtype {ids.dtype}: token ids are integers, e.g. model.encode(text)")
    if is_concrete(ids):
        low, high = int(np.min(np.asarray(ids))), int(np.max(np.asarray(ids)))
        if low < 0 or high >= spec.vocab:
            bad = low if low < 0 else high
            raise ValueError(
                f"ids has the token {bad}, outside the vocabulary 0 … {spec.vocab - 1}: use this model's tokenizer"
            )
    if spec.positions is not None and ids.shape[1] > spec.positions:
        raise ValueError(
            f"ids has length {ids.shape[1]}, the model has {spec.positions} learned positions: cut the sequences"
        )
    if mask is None:
        mask = np.ones(ids.shape, bool)
    if mask.shape != ids.shape:
        raise ValueError(f"mask has shape {mask.shape}, ids {ids.shape}: give every token one entry")
    return jnp.asarray(ids).astype(jnp.int32), jnp.asarray(mask).astype(bool)


@functools.partial(jax.jit, static_argnums=(0, 1))
def contexts(spec: Spec, dtype: np.dtype, mask: Bool[Array | np.ndarray, "B n"]) -> Context:
    """What every block sees besides the stream."""
    return context(spec, mask, dtype)


@functools.partial(jax.jit, static_argnums=0)
def enter(spec: Spec, params: Params, e: Float[Array, "B n D"], where: Context) -> Float[Array, "B n D"]:
    """Embedding look-up → stream entering the first block."""
    with jax.default_matmul_precision("highest"):
        entered: Any = Entrance(spec).apply({"params": params}, e, where.positions)
        return entered


@functools.partial(jax.jit, static_argnums=0)
def leave(spec: Spec, params: Params, x: Float[Array, "*b D"]) -> Float[Array, "*b D"]:
    """Stream after the last block → what the head reads."""
    left: Any = Exit(spec).apply({"params": params}, x)
    return left


def apply_block(
    spec: Spec, params: Params | Stacked, x: Float[Array, "B n D"], where: Context, t: int | Int[Array, ""]
):
    """Block t: (next stream, Trace)."""
    with jax.default_matmul_precision("highest"):
        return Block(spec).apply({"params": taken(params)}, x, where, jnp.asarray(t, jnp.int32))


@functools.partial(jax.jit, static_argnums=0)
def advance(spec: Spec, params: Params, x: Float[Array, "B n D"], where: Context, t: int | Int[Array, ""]):
    """The stream after block t."""
    return apply_block(spec, params, x, where, t)[0]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _logits(spec: Spec, dtype: np.dtype, weights: Resident, ids: Int[Array, "B n"], mask: Bool[Array, "B n"]):
    where = context(spec, mask, dtype)
    x = enter(spec, weights.entrance, weights.lookup(ids, dtype), where)

    def step(x, layer):
        params, t = layer
        return apply_block(spec, params, x, where, t)[0], None

    x, _ = jax.lax.scan(step, x, (weights.blocks, jnp.arange(spec.layers, dtype=jnp.int32)))
    return weights.project(leave(spec, weights.exit, x))


def initialise(spec: Spec, key: Key[Array, ""] | Int[Array, "2"], dtype: Any = None) -> Model:
    """A model of that spec with random weights (normal 0.02, norms 1), to be trained: `model.weights` is a pytree.

    Nothing that `meanfield.pretrained.load` returns is ever random.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> model = mf.pretrained.initialise(spec, jax.random.key(0))
        >>> model.logits(np.arange(6)[None]).shape
        (1, 6, 16)
    """
    dtype = np.dtype(dtype or np.float32)
    return Model(spec, _random(spec, dtype, key), dtype)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _random(spec: Spec, dtype: np.dtype, key: Key[Array, ""] | Int[Array, "2"]) -> Resident:
    keys = jax.random.split(key, 5)
    where = context(spec, jnp.ones((1, 2), bool), dtype)
    x = jnp.zeros((1, 2, spec.dim), dtype)

    def block(key):
        return Block(spec).init(key, x, where, jnp.zeros((), jnp.int32))["params"]

    return Resident(
        embedding=0.02 * jax.random.normal(keys[0], (spec.vocab, spec.dim), dtype),
        head=None if spec.tied else 0.02 * jax.random.normal(keys[1], (spec.vocab, spec.dim), dtype),
        entrance=Entrance(spec).init(keys[2], x, where.positions).get("params", {}),
        exit=Exit(spec).init(keys[3], x)["params"],
        blocks=jax.lax.map(block, jax.random.split(keys[4], spec.layers)),
    )
