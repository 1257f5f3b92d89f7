"""A learnable auxiliary marginal: where the labels lie and how much each weighs."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Array, Float, Labels, Weights
from ..marginal import Marginal


class FreeMarginal(eqx.Module):
    """ρ = Σ_i softmax(`logits`)_i δ_{ξ_i}: labels and weights as free parameters; call it to get the `Marginal`.

    - `labels`: as of `mf.Marginal`; floating ones are fitted, integer ones stay.
    - `weights` (n,): where to start, positive with sum 1, default uniform. `Marginal.weights` of a call stay on the simplex.

    Keep one of them by `jax.lax.stop_gradient` in the loss, or by `optax.masked`.

    Examples:
        >>> free = mf.design.FreeMarginal(jnp.linspace(0.0, 1.0, 4))
        >>> print(free().weights)
        [0.25 0.25 0.25 0.25]
    """

    labels: Labels
    logits: Float[Array, " n"]

    def __init__(self, labels: Labels, weights: Weights | None = None):
        start = Marginal(labels, weights)
        if weights is not None and not bool(jnp.all(start.weights > 0)):
            raise ValueError("weights of a free marginal are positive at the start: a weight of 0 has no gradient")
        self.labels = start.labels
        self.logits = jnp.log(start.weights)

    def __call__(self) -> Marginal:
        return Marginal(self.labels, jax.nn.softmax(self.logits))
