"""Frozen prefix tokens: visible to every token, without label, gauge or factor."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from . import _check
from ._types import Array, Float, Tokens, Weights


class Prefix(eqx.Module):
    """m frozen tokens p_k ∈ S^{d-1} with weights c_k: adds Σ_i w_i Σ_k c_k φ(⟨x_i, p_k⟩) to the energy (theory.md 1).

    `tokens` (m, d) unit rows, `weights` (m,) of any sum (they are strengths, not a law).

    Examples:
        >>> prefix = mf.Prefix(np.float32([[0, 0, 1]]), np.float32([0.5]))
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> mf.velocity(mf.USA(mf.ExpDot(1.0), prefix=prefix), x, mf.Marginal.circle(4)).shape
        (4, 3)
    """

    tokens: Float[Array, "m d"]
    weights: Float[Array, " m"]

    def __init__(self, tokens: Tokens, weights: Weights):
        self.tokens = _check.tokens(tokens, "prefix tokens", unit=True)
        self.weights = jnp.asarray(weights)
        if self.weights.shape != self.tokens.shape[:1]:
            raise ValueError(
                f"prefix weights have shape {self.weights.shape} but there are {self.tokens.shape[0]} prefix tokens: "
                "give every prefix token one weight"
            )
        if _check.is_concrete(self.weights) and not np.isfinite(np.asarray(self.weights)).all():
            raise ValueError("prefix weights contain NaN or infinite values: pass finite weights")
