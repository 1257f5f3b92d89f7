"""Continuation: the same kernel at a lower inverse temperature."""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._types import ScalarLike
from ...kernels import AbstractKernel, ExpDot


def cool(kernel: AbstractKernel, factor: ScalarLike) -> AbstractKernel:
    """`kernel` with the β of every `ExpDot` multiplied by `factor`; its maximisers are starts for larger β."""

    def one(part):
        return (
            eqx.tree_at(lambda k: k.beta, part, part.beta * jnp.asarray(factor, part.beta.dtype))
            if isinstance(part, ExpDot)
            else part
        )

    return jax.tree.map(one, kernel, is_leaf=lambda part: isinstance(part, ExpDot))
