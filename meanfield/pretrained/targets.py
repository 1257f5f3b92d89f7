"""What the influence is a gradient of, at the last position: a scalar per sequence."""

import functools
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from .._types import Array, Float, Int
from .model import Model, leave
from .spec import Spec
from .statistics import safe_norm
from .weights import Params

Target = Literal["probability", "log_probability", "logit", "norm"]
TARGETS: tuple[Target, ...] = ("probability", "log_probability", "logit", "norm")


def target_gradient(
    model: Model, x: Float[Array, "B D"], target: Target, token: Int[Array | np.ndarray, " B"] | None
) -> tuple[Float[Array, " B"], Int[Array, " B"], Float[Array, "B D"]]:
    """Value, token and gradient with respect to the last position's stream x after the last block.

    "probability" (published), "log_probability" and "logit" are of the argmax token, or of `token` (B,) where given; "norm" is
    ‖x‖. The head enters by two products only, so that a streamed head is read slice by slice.
    """
    params = model.weights.part("exit")
    scores = model.weights.project(leave(model.spec, params, x))
    if target == "norm":
        return _norm(x, scores)
    value, token, back = _score_gradient(scores, token, target)
    return value, token, _leave_back(model.spec, params, x, model.weights.pull(back))


@jax.jit
def _norm(x: Float[Array, "B D"], scores: Float[Array, "B V"]):
    value, back = jax.vjp(safe_norm, x)
    return value, jnp.argmax(scores, axis=-1), back(jnp.ones_like(value))[0]


@functools.partial(jax.jit, static_argnums=2)
def _score_gradient(scores: Float[Array, "B V"], token: Int[Array | np.ndarray, " B"] | None, target: Target):
    token = jnp.argmax(scores, axis=-1) if token is None else token
    value, back = jax.vjp(lambda scores: _value(scores, token, target), scores)
    return value, token, back(jnp.ones_like(value))[0]


@functools.partial(jax.jit, static_argnums=0)
def _leave_back(spec: Spec, params: Params, x: Float[Array, "B D"], gradient: Float[Array, "B D"]):
    return jax.vjp(lambda x: leave(spec, params, x), x)[1](gradient)[0]


def _value(scores: Float[Array, "B V"], token: Int[Array | np.ndarray, " B"], target: Target) -> Float[Array, " B"]:
    chosen = jnp.take_along_axis(scores, token[:, None], axis=-1)[:, 0]
    if target == "logit":
        return chosen
    log_probability = chosen - jax.nn.logsumexp(scores, axis=-1)
    return log_probability if target == "log_probability" else jnp.exp(log_probability)
