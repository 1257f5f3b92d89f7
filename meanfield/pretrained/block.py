"""One block of the residual stream, with what a measurement needs to see."""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from .._types import Array, Float, Int
from .attention import Attention, Heads
from .layers import MLP, Context, Norm, context
from .spec import Spec


class Trace(NamedTuple):
    """base: what the attention contribution a is added to (the stream, but for "post-norm"); m: MLP contribution; middle: what the
    MLP's norm reads; all (B, n, D). heads: see `Heads`."""

    base: Float[Array, "B n D"]
    a: Float[Array, "B n D"]
    m: Float[Array, "B n D"]
    middle: Float[Array, "B n D"]
    heads: Heads


class Block(nn.Module):
    """x (B, n, D) → (next x, Trace); the residual wiring is the spec's."""

    spec: Spec

    @nn.compact
    def __call__(self, x, where: Context, depth):
        spec = self.spec
        h = Norm(spec, name="norm1")(x)
        a, heads = Attention(spec, name="attention")(h, where, depth)
        mlp = MLP(spec, name="mlp")
        if spec.wiring == "parallel-shared":
            m = mlp(h)
            return x + a + m, Trace(x, a, m, x, heads)
        norm2 = Norm(spec, name="norm2")
        if spec.wiring == "parallel":
            m = mlp(norm2(x))
            return x + a + m, Trace(x, a, m, x, heads)
        if spec.wiring == "post-norm":
            middle = h + a
            y = norm2(middle)
            m = mlp(y)
            return y + m, Trace(h, a, m, middle, heads)
        middle = x + a
        m = mlp(norm2(middle))
        return middle + m, Trace(x, a, m, middle, heads)


class Entrance(nn.Module):
    """Embedding look-up e (B, n, D) → stream entering the first block: learned positions, embedding norm."""

    spec: Spec

    @nn.compact
    def __call__(self, e, positions: Int[Array, "B n"]):
        if self.spec.positions is not None:
            table = self.param("positions", nn.initializers.normal(0.02), (self.spec.positions, self.spec.dim), e.dtype)
            e = e + table[positions].astype(e.dtype)
        if self.spec.embedding_norm:
            e = Norm(self.spec, name="norm")(e)
        return e


class Exit(nn.Module):
    """Stream after the last block → what the head reads."""

    spec: Spec

    @nn.compact
    def __call__(self, x):
        return Norm(self.spec, name="norm")(x)


def shapes(spec: Spec) -> dict[str, dict]:
    """Shapes of every parameter: {"block", "entrance", "exit"} of flax trees and "embedding", "head" matrices."""
    x = jax.ShapeDtypeStruct((1, 2, spec.dim), jnp.float32)
    positions = jax.ShapeDtypeStruct((1, 2), jnp.int32)

    def init(x, positions):
        where = context(spec, jnp.ones((1, 2), bool), x.dtype)
        key = jax.random.key(0)
        return {
            "block": Block(spec).init(key, x, where, jnp.zeros((), jnp.int32)).get("params", {}),
            "entrance": Entrance(spec).init(key, x, positions).get("params", {}),
            "exit": Exit(spec).init(key, x).get("params", {}),
        }

    tree = jax.tree.map(lambda leaf: tuple(leaf.shape), jax.eval_shape(init, x, positions))
    matrix = (spec.vocab, spec.dim)
    return tree | {"embedding": matrix} | ({} if spec.tied else {"head": matrix})
