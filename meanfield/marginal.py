"""The auxiliary marginal ρ: frozen labels with weights."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from . import _check
from ._types import Array, Float, Labels, PRNGKey, Real, ScalarLike, Weights


class Marginal(eqx.Module):
    """ρ = Σ_i w_i δ_{ξ_i}: n frozen labels ξ_i ∈ A with weights w_i ≥ 0, Σ w_i = 1 (theory.md 1; arXiv 2605.30229).

    Args:
        labels: array (n,) or (n, …), or a pytree of such with the same n (a position and a prompt, say). Integer labels
            stay integers; floating labels follow the dtype of the tokens they are used with.
        weights: (n,), non-negative with sum 1; uniform by default.

    Raises:
        ValueError: when lengths are unequal, labels are NaN, weights are negative or weights do not sum to 1.

    Examples:
        >>> rho = mf.Marginal(jnp.asarray([0.0, 1.0, 2.0]), np.float32([0.5, 0.25, 0.25]))
        >>> rho.n, float(rho.weights.sum())
        (3, 1.0)
    """

    labels: Labels
    weights: Float[Array, " n"]

    def __init__(self, labels: Labels, weights: Weights | None = None):
        self.labels = jax.tree.map(jnp.asarray, labels)
        leaves = jax.tree.leaves(self.labels)
        lengths = sorted({leaf.shape[0] if leaf.ndim else 0 for leaf in leaves})
        if len(lengths) != 1 or lengths[0] == 0:
            raise ValueError(
                f"labels must share one leading length n ≥ 1, got leading lengths {lengths}: pass an array (n,), or "
                "mf.Marginal.circle(n), mf.Marginal.positions(n), mf.Marginal.interval(n)"
            )
        for leaf in leaves:
            if _check.is_concrete(leaf) and not np.isfinite(np.asarray(leaf)).all():
                raise ValueError("labels contain NaN or infinite values: every token needs a finite label")
        n = lengths[0]
        self.weights = jnp.full(n, 1 / n) if weights is None else jnp.asarray(weights)
        if self.weights.shape != (n,):
            raise ValueError(f"weights has shape {self.weights.shape} but there are {n} labels: pass {n} weights")
        if not jnp.issubdtype(self.weights.dtype, jnp.floating):
            raise ValueError(f"weights has dtype {self.weights.dtype}: pass floating weights that sum to 1")
        if weights is not None and _check.is_concrete(weights):
            _check.simplex(weights)

    @property
    def n(self) -> int:
        """Number of labels."""
        return self.weights.shape[0]

    @classmethod
    def circle(cls, n: int) -> "Marginal":
        """n equispaced angles 2πi/n, i = 0 … n−1."""
        return cls(2 * np.pi / _count(n) * jnp.arange(n, dtype=float))

    @classmethod
    def interval(cls, n: int, low: ScalarLike = 0.0, high: ScalarLike = 1.0) -> "Marginal":
        """n equispaced labels from `low` to `high`, ends included."""
        return cls(jnp.linspace(low, high, _count(n)))

    @classmethod
    def positions(cls, n: int) -> "Marginal":
        """Integer positions 0, 1, …, n−1."""
        return cls(jnp.arange(_count(n)))

    @classmethod
    def sample(cls, key: PRNGKey, n: int, sampler: Callable[..., Real[Array, "n ..."]]) -> "Marginal":
        """n labels drawn by `sampler(key, n)`, with uniform weights."""
        return cls(sampler(key, _count(n)))


def _count(n: int) -> int:
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n={n!r}: the number of labels must be a positive integer")
    return int(n)
