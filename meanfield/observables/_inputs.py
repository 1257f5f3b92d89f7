"""Checked inputs of observables: tokens with leading batch axes (times, seeds) and the weights of the tokens."""

import jax.numpy as jnp
import numpy as np

from .. import _check
from .._types import AnyArray, Array, Float, Weights

Clouds = Float[AnyArray, "*batch n d"]


def points(x: Clouds, name: str = "x") -> Float[Array, "*batch n d"]:
    """Tokens (…, n, d) as a JAX array; a NaN token is an error wherever the value is known."""
    x = _check.as_array(x, name)
    if x.ndim < 2:
        raise ValueError(f"{name} has shape {x.shape}: pass tokens (n, d), or (T, n, d) for every saved time")
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"{name} has dtype {x.dtype}: pass floating tokens, e.g. {name}.astype(float)")
    if _check.is_concrete(x):
        bad = ~np.isfinite(np.asarray(x)).all(axis=-1)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} has {int(bad.sum())} tokens with NaN or infinite entries, the first at index {where}: "
                "drop them (rows of times that a flow did not reach are NaN)"
            )
    return x


def masses(weights: Weights | None, x: Float[Array, "*batch n d"], name: str = "weights") -> Float[Array, " n"]:
    """The weights (n,) of the tokens in their dtype, uniform by default."""
    n = x.shape[-2]
    if weights is None:
        return jnp.full(n, 1 / n, x.dtype)
    weights = _check.as_array(weights, name)
    if weights.shape != (n,):
        raise ValueError(f"{name} has shape {weights.shape} but there are {n} tokens: pass rho.weights of these tokens")
    if _check.is_concrete(weights):
        _check.simplex(weights, name)
    return weights.astype(x.dtype)
